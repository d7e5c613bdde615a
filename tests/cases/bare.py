# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macros of hosts that are no node: nothing is installed yet, or nobody answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import control_plane
from .cluster import Evidence

NOTHING_OF = {
    "kubelet": "neither a process nor a unit of a kubelet",
    "kubelet_end": "no unit of a kubelet",
    "manifests": "the kubelet has no folder of static pods",
    "component_http": "no scheduler or controller manager in this node's network",
    "component_end": (
        "no static pod of a component, or each of them runs and was not started recently"
    ),
    "component_restart": (
        "no static pod of a component, or each of them runs and was not started recently"
    ),
    "etcd": "neither an API server nor etcd runs here",
    "scheduler_log": "none of kube-scheduler runs here",
    "api_way": "no kubeconfig of a kubelet that names a server",
    "devices": "/var/lib/kubelet/device-plugins does not exist",
    "pressure": "no kubelet",
    "largest": "no kubelet",
    "cri": "no container runtime",
    "cni": "no kubelet",
}

UNANSWERED = "the container runtime answered no call of the CRI"
EMBEDDED = {
    "cri": UNANSWERED,
    "cni": "the runtime is part of another program, which has folders of its own",
}


def not_installed(
    evidence: Evidence, hosts: Iterable[str] = (), traces: Iterable[str] = ()
) -> None:
    """Let hosts, or all, have no kubelet and no component yet, only traces of an installer."""
    for host in hosts or evidence.hosts:
        for collector, reason in NOTHING_OF.items():
            evidence.answer(host, collector, "absent", reason)
        evidence.data(host, "instances")["processes"] = []
        evidence.data(host, "runtime")["endpoint"] = None
        evidence.data(host, "installer").update(paths=[], kubelet_exe=None, traces=list(traces))
        limits = evidence.data(host, "limits")
        limits["units"] = [row for row in limits["units"] if row["name"] != "kubelet.service"]
        limits["processes"] = [row for row in limits["processes"] if row["role"] != "kubelet"]
        evidence.data(host, "pinning").update(
            cpu_state=None, memory_state=None, pods=[], containers=[], kubelet_version=None
        )


def no_api(evidence: Evidence) -> None:
    """Let no host have a kubeconfig: nothing is known of the API."""
    for document in evidence.api:
        reason = "no kubeconfig found"
        document.update(status="error", reason=reason)
        for record in document["collectors"].values():
            record.update(status="error", data=None, source=None, error=reason)


def unreachable(evidence: Evidence, host: str, reason: str) -> None:
    """Let a host not answer."""
    document = evidence.hosts[host]
    document.update(status="unreachable", reason=reason, node=None, cluster_key=None, collectors={})
    for key in ("python", "euid"):
        document.pop(key, None)


def without(evidence: Evidence, hosts: Iterable[str]) -> None:
    """Let the cluster never have had these hosts."""
    gone = set(hosts)
    addresses = [address for host in gone for address in evidence.data(host, "system")["addresses"]]
    for document in evidence.api:
        _forget(document["collectors"], gone, addresses)
    for host in gone:
        del evidence.hosts[host]
    for document in evidence.hosts.values():
        record = document["collectors"]["etcd"]
        members = (record["data"] or {}).get("members", [])
        members[:] = [row for row in members if row["name"] not in gone]


def _forget(collectors: dict[str, Any], gone: set[str], addresses: list[str]) -> None:
    """Remove hosts from what the API tells."""
    nodes = collectors["nodes"]["data"]
    nodes["items"] = [item for item in nodes["items"] if item["name"] not in gone]
    states = collectors["pod_states"]["data"]
    states["nodes"] = [row for row in states["nodes"] if row["node"] not in gone]
    locks = collectors["locks"]["data"]
    locks["servers"] = [
        row for row in locks["servers"] if row["address"].rpartition(":")[0] not in addresses
    ]
    left = next((item["name"] for item in nodes["items"]), "")
    for row in [row for server in locks["servers"] for row in server["objects"]]:
        holder, _, identity = row["holder"].partition("_")
        row["holder"] = f"{left if holder in gone else holder}_{identity}"
    ends = collectors["endpoints"]["data"]
    ends["addresses"] = [row for row in ends["addresses"] if not _is_at(row, addresses)]


def _is_at(row: Any, addresses: list[str]) -> bool:
    return any(address in str(row) for address in addresses)


def no_component(evidence: Evidence, hosts: Iterable[str]) -> None:
    """Let no component of the control plane run on hosts, their last logs without a line."""
    for host in hosts:
        for component in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
            control_plane.gone(evidence, host, component)
            row = {"component": component, "running": False, "restart": None, "path": None}
            row |= {"first": None, "last": None, "lines": [], "kubelet": None}
            evidence.data(host, "component_end").setdefault("components", []).append(row)
        evidence.answer(host, "etcd", "absent", NOTHING_OF["etcd"])


def embedded_runtime(evidence: Evidence, host: str, path: str | None) -> None:
    """Let the runtime of a host be a part of its distribution's program: it has no unit."""
    for collector, reason in EMBEDDED.items():
        evidence.answer(host, collector, "absent", reason)
    evidence.data(host, "runtime").update(
        endpoint=path,
        kind="embedded",
        path=path,
        socket=None,
        asked=False,
        calls={},
        config=None,
        metadata=None,
        units=[],
    )
