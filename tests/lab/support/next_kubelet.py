# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet of another release, tried with the command line and the configuration of a node.

Its kubeconfig does not exist: it ends where it would first ask the API, and has changed nothing.
"""

from __future__ import annotations

import re
import shlex

import yaml

from tests.lab.cluster import gobuild
from tests.lab.cluster.clusters import Cluster
from tests.lab.support import program

PROGRAM, CONFIG = "/root/next-kubelet", "/root/next-kubelet.yaml"
KUBECONFIGS = ("--kubeconfig", "--bootstrap-kubeconfig")
GONE = "/nonexistent/kubelet.conf"
SECONDS = 120
_FLAG = re.compile(r"unknown flag: (--[\w-]+)")


def argv(cluster: Cluster, node: str) -> list[str]:
    """Return the command line of the kubelet that runs."""
    text = cluster.exec(node, "tr '\\0' '\\n' </proc/$(pidof kubelet)/cmdline").stdout.decode()
    return text.splitlines()


def place(cluster: Cluster, node: str, k8s: str) -> None:
    """Put the kubelet of a release beside the one of the node."""
    data = (gobuild.components(k8s) / "kubelet").read_bytes()
    cluster.write(node, PROGRAM, data, mode="755")


def refused(cluster: Cluster, node: str, k8s: str) -> set[str]:
    """Return the flags and feature gates that the kubelet of a release refuses of a node.

    It names one at a time, so each is left out once it was named.
    """
    place(cluster, node, k8s)
    words = argv(cluster, node)[1:]
    (path,) = [word.partition("=")[2] for word in words if word.startswith("--config=")]
    settings = yaml.safe_load(cluster.read(node, path))
    found: set[str] = set()
    while True:
        text = _tried(cluster, node, words, settings)
        named = {name for form in (_FLAG, program.UNKNOWN_GATE, program.LOCKED_GATE)
                 for name in form.findall(text)} - found  # fmt: skip
        if not named:
            # It came as far as what it cannot have: nothing else stops it before.
            assert GONE in text, text[-3000:]
            return found
        found |= named
        words = [word for word in words if word.partition("=")[0] not in found]
        gates = settings.get("featureGates", {})
        settings["featureGates"] = {name: gates[name] for name in gates if name not in found}


def _tried(cluster: Cluster, node: str, words: list[str], settings: dict) -> str:
    cluster.write(node, CONFIG, yaml.safe_dump(settings))
    others = [word for word in words if word.partition("=")[0] not in (*KUBECONFIGS, "--config")]
    files = [f"{flag}={GONE}" for flag in KUBECONFIGS]
    line = shlex.join([PROGRAM, *others, f"--config={CONFIG}", *files])
    done = cluster.exec(node, f"timeout {SECONDS} {line} 2>&1", SECONDS * 2, check=False)
    return done.stdout.decode(errors="replace")
