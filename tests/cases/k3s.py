# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macro of k3s: kubelet, components and runtime are parts of one program."""

from __future__ import annotations

from collections.abc import Iterable

from . import bare, paths
from .cluster import Evidence

PROGRAM = "/usr/local/bin/k3s"
NONE_HERE = (
    "manifests",
    "component_http",
    "component_end",
    "component_restart",
    "etcd",
    "scheduler_log",
    "api_way",
)
MAPS = {
    "kubeadm_config": 'configmaps "kubeadm-config" not found',
    "kubelet_configs": 'configmaps "kubelet-config" not found',
}


def k3s(evidence: Evidence, servers: Iterable[str] = ("m1", "m2", "m3")) -> None:
    """Make the cluster one of k3s, with these servers."""
    for host in evidence.hosts:
        is_server = host in servers
        unit = "k3s.service" if is_server else "k3s-agent.service"
        _kubelet(evidence, host, unit, "server" if is_server else "agent")
        _limits(evidence, host, unit)
        evidence.data(host, "instances")["processes"] = []
        for collector in NONE_HERE:
            evidence.answer(host, collector, "absent", bare.NOTHING_OF[collector])
        evidence.data(host, "installer").update(
            paths=["/etc/rancher/k3s", "/var/lib/rancher/k3s"], kubelet_exe=PROGRAM
        )
        bare.embedded_runtime(evidence, host, None)
        for row in evidence.data(host, "pressure")["filesystems"]:
            if row["name"] == "imagefs":
                row["path"] = "/var/lib/rancher/k3s/agent/containerd"
    for collector, reason in MAPS.items():
        evidence.answer(paths.API, collector, "absent", reason)
    for item in evidence.data(paths.API, "nodes")["items"]:
        item["kubelet_version"] += "+k3s1"
    evidence.data(paths.API, "server")["git_version"] += "+k3s1"


def _kubelet(evidence: Evidence, host: str, unit: str, role: str) -> None:
    kubelet = evidence.data(host, "kubelet")
    argv = [PROGRAM, role]
    kubelet.update(
        argv=argv,
        config=None,
        config_dropins=[],
        kubeconfig=None,
        client_certificate=None,
        ca=None,
        static_pod_path=None,
        static_pod_path_source=None,
        cni={"folder": "/etc/cni/net.d", "files": [], "error": "missing"},
    )
    kubelet["process"].update(argv=argv, exe=PROGRAM)
    kubelet["unit"].update(
        name=unit,
        fragment_path=f"/etc/systemd/system/{unit}",
        drop_in_paths=[],
        start_words=argv,
        split_variables=[],
        environment_files=[],
    )
    evidence.data(host, "pinning")["kubelet_version"] = None


def _limits(evidence: Evidence, host: str, unit: str) -> None:
    limits = evidence.data(host, "limits")
    rows = [row for row in limits["units"] if row["name"] != "containerd.service"]
    for row in rows:
        if row["name"] == "kubelet.service":
            row.update(name=unit, fragment_path=f"/etc/systemd/system/{unit}", drop_in_paths=[])
    limits["units"] = rows
    for row in limits["processes"]:
        if row["role"] in ("kubelet", "runtime"):
            row["unit"] = unit
        if row["role"] == "kubelet":
            row["comm"] = "k3s"
