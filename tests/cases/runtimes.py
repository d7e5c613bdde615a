# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macro of the container runtime: docker and CRI-O in the place of the base's containerd."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import bare, units
from .cluster import BuildError, Evidence

BASE_FLAGS = (
    "--container-runtime=remote --container-runtime-endpoint=/run/containerd/containerd.sock"
)
CRIO = "/var/run/crio/crio.sock"
CRI_DOCKERD = "/run/cri-dockerd.sock"
FOLDERS = {
    "docker": "/var/lib/docker",
    "cri-docker": "/var/lib/docker",
    "crio": "/var/lib/containers",
}
NAMES = {"crio": "cri-o", "cri-docker": "docker"}  # as the CRI tells them
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
    "cri-docker": (
        "cri-docker.service",
        "cri-dockerd",
        f"--container-runtime=remote --container-runtime-endpoint=unix://{CRI_DOCKERD}",
        {"endpoint": CRI_DOCKERD, "docker": None, "path": CRI_DOCKERD},
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
        path = f"/usr/lib/systemd/system/{unit}"
        data["units"][0].update(name=unit, fragment_path=path)
        _tell(evidence, host, flags, told["endpoint"])
        limits = evidence.data(host, "limits")
        for row in limits["units"]:
            if row["name"] == "containerd.service":
                row.update(name=unit, fragment_path=path, sets=[])
        for row in limits["processes"]:
            if row["role"] == "runtime":
                row.update(comm=program, unit=unit)
        for row in evidence.data(host, "pressure")["filesystems"]:
            if row["name"] == "imagefs":
                row["path"] = FOLDERS[kind]


def _cri(evidence: Evidence, host: str, kind: str) -> None:
    """Let the runtime answer calls of the CRI, which docker does not know."""
    if kind == "docker":
        evidence.answer(host, "cri", "absent", bare.UNANSWERED)
    else:
        evidence.data(host, "cri").update(name=NAMES[kind], config=None, cni_error=None, files=[])


def _tell(evidence: Evidence, host: str, flags: str, path: str | None) -> None:
    """Replace what the kubelet is told of its runtime, where it is a flag."""
    kubelet = evidence.data(host, "kubelet")
    endpoint = "unix:///run/containerd/containerd.sock"
    if kubelet["config"] and f"containerRuntimeEndpoint: {endpoint}" in kubelet["config"]["text"]:
        text = kubelet["config"]["text"].replace(endpoint, f"unix://{path}")
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


def runtime_down(
    evidence: Evidence,
    host: str,
    state: str = "failed",
    result: str = "exit-code",
    status: int = 1,
    restarts: int = 0,
) -> None:
    """Let the runtime's unit not run: activating, failed or inactive. Its socket is gone."""
    data = evidence.data(host, "runtime")
    unit = data["units"][0]
    changed = {"active_state": state, "sub_state": units.SUB_STATES[state], "result": result}
    unit.update(changed, exec_main_status=status, n_restarts=restarts, main_pid=0)
    data.update(socket="missing", asked=False, calls={})
    evidence.answer(host, "cri", "absent", bare.UNANSWERED)
    limits = evidence.data(host, "limits")
    limits["processes"] = [row for row in limits["processes"] if row["role"] != "runtime"]
    row = next(row for row in limits["units"] if row["name"] == unit["name"])
    row.update(changed, exec_main_status=status)
    started = evidence.data(host, "unit_start").setdefault("units", [])
    started.append(units.as_started(unit, evidence.now))
