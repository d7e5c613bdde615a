# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macro of the container runtime: docker and CRI-O in the place of the base's containerd."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import bare
from .cluster import BuildError, Evidence

BASE_FLAGS = (
    "--container-runtime=remote --container-runtime-endpoint=/run/containerd/containerd.sock"
)
CRIO = "/var/run/crio/crio.sock"
# kind: the unit, its program, what the kubelet is told, what the runtime's record says.
KINDS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "docker": (
        "docker.service",
        "dockerd",
        "--network-plugin=cni",
        {"endpoint": None, "docker": None, "path": "/var/run/docker.sock", "calls": {}},
    ),
    "crio": (
        "crio.service",
        "crio",
        f"--container-runtime=remote --container-runtime-endpoint=unix://{CRIO}",
        {"endpoint": CRIO, "docker": None, "path": CRIO},
    ),
}


def runtime(evidence: Evidence, kind: str, hosts: Iterable[str] = ()) -> None:
    """Give hosts, or all, another runtime than containerd."""
    if kind not in KINDS:
        raise BuildError(f"there is no runtime {kind}")
    unit, program, flags, told = KINDS[kind]
    for host in hosts or evidence.hosts:
        _cri(evidence, host, kind)
        data = evidence.data(host, "runtime")
        data.update(told, kind=kind, config=None, metadata=None)
        name, path = unit.partition(".")[0], f"/usr/lib/systemd/system/{unit}"
        data["units"][0].update(name=unit, fragment_path=path)
        _tell(evidence, host, flags)
        limits = evidence.data(host, "limits")
        for row in limits["units"]:
            if row["name"] == "containerd.service":
                row.update(name=unit, fragment_path=path, sets=[])
        for row in limits["processes"]:
            if row["role"] == "runtime":
                row.update(comm=program, unit=unit)
        folders = {"docker": "/var/lib/docker", "crio": "/var/lib/containers"}
        for row in evidence.data(host, "pressure")["filesystems"]:
            if row["name"] == "imagefs":
                row["path"] = folders[name]


def _cri(evidence: Evidence, host: str, kind: str) -> None:
    """Let the runtime answer calls of the CRI, which docker does not know."""
    if kind == "docker":
        evidence.answer(host, "cri", "absent", bare.UNANSWERED)
    else:
        evidence.data(host, "cri").update(name="cri-o", config=None, cni_error=None, files=[])


def _tell(evidence: Evidence, host: str, flags: str) -> None:
    """Replace what the kubelet is told of its runtime, where it is a flag."""
    kubelet = evidence.data(host, "kubelet")
    endpoint = "unix:///run/containerd/containerd.sock"
    if kubelet["config"] and f"containerRuntimeEndpoint: {endpoint}" in kubelet["config"]["text"]:
        text = kubelet["config"]["text"].replace(endpoint, f"unix://{CRIO}")
        kubelet["config"]["text"] = text
        return
    old, new = BASE_FLAGS.split(" "), flags.split(" ")
    for holder in [kubelet, kubelet["process"] or {}]:
        if old[0] in holder.get("argv", []):
            at = holder["argv"].index(old[0])
            holder["argv"][at : at + len(old)] = new
    for record in kubelet["unit"]["environment_files"]:
        record["text"] = record["text"].replace(BASE_FLAGS, flags)
    for pair in kubelet["unit"]["split_variables"]:
        pair[1] = pair[1] and pair[1].replace(BASE_FLAGS, flags)
