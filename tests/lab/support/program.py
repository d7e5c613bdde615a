# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a real component of one release says of flags and feature gates; it ends at once."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.lab.cluster import gobuild
from tests.next_release import compare

SECONDS = 120
NO_FILE = "--config=/nonexistent/config.yaml"
# What ends a component after it has taken its feature gates.
END = {
    "kubelet": NO_FILE,
    "kube-scheduler": NO_FILE,
    "kube-apiserver": "--version",
    "kube-controller-manager": "--version",
}
# The first one follows the text of the flag, in the same line.
LISTED_GATE = re.compile(r"\b([A-Z]\w+)=true\|false \((?:ALPHA|BETA)")
GROUPS = {"AllAlpha", "AllBeta"}
UNKNOWN_FLAG = "unknown flag"
UNKNOWN_GATE = re.compile(r"unrecognized feature gate: (\w+)")
UNKNOWN_API = re.compile(r"unknown api groups|group version \S+ that has not been registered")
NO_ETCD = "http://127.0.0.1:1"
LOCKED_GATE = re.compile(r"cannot set feature gate (\w+) to \w+, feature is locked to")


def said(k8s: str, component: str, *arguments: str) -> str:
    """Return what the component says of these arguments."""
    answer = subprocess.run(
        [str(gobuild.components(k8s) / component), *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={"PATH": "/usr/bin:/bin"},
    )
    return answer.stdout + answer.stderr


def takes_flag(k8s: str, component: str, name: str) -> bool:
    """Tell whether the component knows a flag, whatever it says of the value."""
    return UNKNOWN_FLAG not in said(k8s, component, f"--{name}=1", "--version")


def listed_flags(k8s: str, component: str) -> frozenset[str]:
    """Return the flags that the component lists itself: not the hidden ones."""
    return compare.listed(gobuild.components(k8s) / component)


def listed_gates(k8s: str, component: str) -> frozenset[str]:
    """Return the feature gates that the component lists itself: single alpha and beta ones."""
    return frozenset(LISTED_GATE.findall(said(k8s, component, "--help"))) - GROUPS


def refused_gates(k8s: str, component: str, gates: Mapping[str, str]) -> tuple[set, set]:
    """Return which of these gates the component does not know, and which it locks.

    It names one at a time, so each is left out once it was named.
    """
    unknown: set[str] = set()
    locked: set[str] = set()
    left = dict(gates)
    while left:
        pairs = ",".join(f"{name}={value}" for name, value in left.items())
        text = said(k8s, component, f"--feature-gates={pairs}", END[component])
        named = set(UNKNOWN_GATE.findall(text)), set(LOCKED_GATE.findall(text))
        unknown |= named[0]
        locked |= named[1]
        if not left.keys() & (named[0] | named[1]):
            break
        left = {name: value for name, value in left.items() if name not in unknown | locked}
    return unknown, locked


def takes_api(k8s: str, name: str, folder: Path) -> bool:
    """Tell whether the API server knows a group, or a version of one; it finds no etcd.

    folder: where it finds its key, and may write
    """
    group, _slash, version = name.partition("/")
    key = folder / "sa.key"
    if not key.exists():
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, timeout=SECONDS)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    text = said(
        k8s,
        "kube-apiserver",
        f"--runtime-config={group}/{version or 'v1alpha1'}=true",
        f"--etcd-servers={NO_ETCD}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        f"--cert-dir={folder}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
    )
    return UNKNOWN_API.search(text) is None


def reads_version(k8s: str, version: str, folder: Path) -> bool:
    """Tell whether the scheduler reads a configuration of this version; its kubeconfig is none."""
    config = folder / "scheduler.yaml"
    config.write_text(
        f"apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\n"
        "clientConnection:\n  kubeconfig: /nonexistent\n",
        encoding="utf-8",
    )
    return "no kind" not in said(k8s, "kube-scheduler", f"--config={config}")
