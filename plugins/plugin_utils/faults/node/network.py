# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Predicates about what a kubelet posts of its node: KM519 no network for pods, KM523 pressure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...evidence.document import one_line, shell_name
from ...models import ages
from ...models import pressure as node_pressure
from ...models.api_node import NodeView, and_others, views
from ...models.cluster import Cluster
from ...models.result import Missing, Proof
from ..base import Hit, Outcome, cluster_check
from . import taints as node_taints

# kubelets since 1.5 with docker, since 1.7 with a CRI; the runtime's own words stand behind
# "message:".
JOINING = 120.0  # seconds that a node which joins takes to get its network
_NETWORK = re.compile(
    r"NetworkReady=false|NetworkPluginNotReady|network plugin is not ready|cni plugin not"
    r" initialized|cni config uninitialized",
    re.IGNORECASE,
)
# What a network plugin calls the file that it writes: (part of its name, the plugin, its
# DaemonSet).
PLUGINS = (
    ("calico", "Calico", "calico-node"),
    ("canal", "Canal", "canal"),
    ("cilium", "Cilium", "cilium"),
    ("flannel", "Flannel", "kube-flannel-ds"),
    ("weave", "Weave Net", "weave-net"),
    ("kuberouter", "kube-router", "kube-router"),
    ("kube-router", "kube-router", "kube-router"),
    ("aws", "the VPC CNI of AWS", "aws-node"),
    ("antrea", "Antrea", "antrea-agent"),
    ("ovn", "OVN", "ovs-ovn or ovnkube-node"),
    ("kindnet", "kindnet", "kindnet"),
)
PRESSURES = {
    "MemoryPressure": (
        "memory",
        "memory-pressure",
        (
            "see which pods use more than they ask for (kubectl top pod, their limits), and what"
            " else runs on the machine; requests and limits, or more memory, end it"
        ),
    ),
    "DiskPressure": (
        "disk space or inodes",
        "disk-pressure",
        (
            "see df and df -i of the file systems of the kubelet and of the runtime; logs, images"
            " that nothing uses and emptyDirs are the usual cause"
        ),
    ),
    "PIDPressure": (
        "process ids",
        "pid-pressure",
        (
            "see which pod starts so many processes or threads (pids.current of its cgroup);"
            " podPidsLimit bounds one"
        ),
    ),
}


@cluster_check(
    "KM519",
    "Network of pods is not set up",
    severity="critical",
    applies="Nodes whose kubelet posts its conditions",
    needs=("kubelet",),
    cluster_needs=("nodes",),
    current_only=True,
)
def uninitialised(cluster: Cluster) -> Iterator[Outcome]:
    """KM519: a kubelet posts NotReady because its runtime has no network for pods."""
    if cluster.key is None:
        yield Outcome(applies=False, note="no Kubernetes found on these hosts")
        return
    hits, missing = [], list(cluster.missing("nodes"))
    for view in views(cluster):
        ready = view.condition("Ready") or {}
        if view.ready != "False" or _fresh(cluster, view):
            continue
        if ages.clocks(cluster).doubt:  # it may have joined a moment ago
            missing.append(Missing(cluster.api_host or "cluster API", "nodes", "error"))
        elif not isinstance(ready.get("message"), str):
            # an older release collected it
            missing.append(Missing(cluster.api_host or "cluster API", "nodes", "not_asked"))
        elif _NETWORK.search(ready["message"]):
            hits.append(_uninitialised(cluster, view, ready))
    yield Outcome(tuple(hits), tuple(dict.fromkeys(missing)))


def _fresh(cluster: Cluster, view: NodeView) -> bool:
    """Whether the node has just joined: the plugin's pod comes only then."""
    age = ages.age(cluster, view.created, "nodes")
    return age is not None and 0 <= age < JOINING


def _uninitialised(cluster: Cluster, view: NodeView, ready: Mapping[str, Any]) -> Hit:
    folder, proofs = _folder(view)
    plugin = _plugin(cluster)
    since = f" since {one_line(ready['since'], 40)}" if ready.get("since") else ""
    node = shell_name(view.name, "NODE")
    named = (
        f"the pod of {plugin[1]} ({plugin[0]})"
        if plugin
        else "the network plugin's pod (calico-node, cilium, kube-flannel-ds …)"
    )
    remedy = (
        f"see {named} on this node: kubectl get pods -A -o wide --field-selector"
        f" spec.nodeName={node}; why it does not run or what it logs is the cause (an image that"
        " cannot be pulled, a mount, the API that it does not reach)"
    )
    if folder.startswith("holds"):
        remedy += (
            "; if it runs, see the runtime's log: a configuration that it cannot read or whose"
            " program is missing (/opt/cni/bin), or a folder of its own"
        )
    elif plugin is None:
        remedy += _others(cluster, view)
    return Hit(
        f"{view.name} is NotReady{since} because it has no network for pods; its folder of CNI"
        f" configuration {folder}",
        (
            Proof(
                "api",
                cluster.api_host,
                object=f"Node {view.name}",
                text=f"{one_line(ready.get('reason'), 80)}: {one_line(ready['message'], 400)}",
            ),
            *proofs,
        ),
        remedy,
        host=view.host.host if view.host else None,
        node=view.name,
    )


def _folder(view: NodeView) -> tuple[str, list[Proof]]:
    """What the host's folder holds, in words."""
    host = view.host
    networks = host.identity.networks if host is not None else None
    if host is None or networks is None or host.identity.inside:
        return "is not known here", []
    if networks.error and networks.error != "missing":
        return f"({networks.folder}) could not be listed: {networks.error}", []
    if networks.names:
        told = f"holds {and_others(networks.names)}"
    elif networks.empty:
        told = f"has only empty files: {and_others(networks.empty)}"
    else:
        told = "is empty" if not networks.error else "is not there"
    return f"{told} ({networks.folder})", [
        Proof("file", host.host, path=networks.folder, text=told)
    ]


def _others(cluster: Cluster, view: NodeView) -> str:
    """What the folders of other hosts say where no file names a plugin that is known here."""
    if view.host is None or view.host.identity.networks is None:
        return ""
    found = [
        (host.host, host.identity.networks.names)
        for host in cluster.hosts
        if host is not view.host and host.identity.networks
    ]
    if not found:
        return ""
    if not any(names for _host, names in found):
        return "; no other host that answered has any either: was a network plugin ever installed?"
    return "; others have " + and_others(
        [f"{', '.join(names)} ({host})" for host, names in found if names], 3
    )


def _plugin(cluster: Cluster) -> tuple[str, str] | None:
    """(what, its DaemonSet) of the network plugin, by the files that it wrote on any host."""
    names = [
        name
        for host in cluster.hosts
        if host.identity.networks
        for name in (*host.identity.networks.names, *host.identity.networks.empty)
    ]
    return next(
        (
            (title, pods)
            for part, title, pods in PLUGINS
            if any(part in name.lower() for name in names)
        ),
        None,
    )


@cluster_check(
    "KM523",
    "Node is short of memory, disk or PIDs",
    severity="warning",
    applies="Nodes whose kubelet posts its conditions",
    needs=("kubelet", "pressure", "largest"),
    cluster_needs=("nodes",),
    current_only=True,
)
def pressed(cluster: Cluster) -> Iterator[Outcome]:
    """KM523: a kubelet posts that its node is short of something."""
    if cluster.key is None:
        yield Outcome(applies=False, note="no Kubernetes found on these hosts")
        return
    missing, hits = list(cluster.missing("nodes")), []
    for view in views(cluster):
        found = [
            one
            for one in view.conditions
            if str(one.get("type")) in PRESSURES and one.get("status") == "True"
        ]
        if found:
            hits.append(_pressed(cluster, view, found))
        if not view.told and not missing:
            # an older release collected it
            missing.append(Missing(cluster.api_host or "cluster API", "nodes", "not_asked"))
    yield Outcome(tuple(hits), tuple(missing))


def _eased(condition: str, found: node_pressure.Pressure) -> list[str]:
    """What to say where no threshold is crossed by what the node says now."""
    rows = list(found.of(condition))
    if not any(mine and one.free is not None for one, mine, _crossed in rows):
        return []
    if condition == "MemoryPressure":
        return [
            "by MemAvailable no threshold is crossed now: the kubelet counts by control groups, and"
            " keeps the condition for five minutes"
        ]
    return [
        f"no threshold of {condition} is crossed now: the kubelet keeps the condition for five"
        " minutes, unless it was told otherwise"
    ]


def _pressed(cluster: Cluster, view: NodeView, found: list[Mapping[str, Any]]) -> Hit:
    words, advice, proofs, clauses = [], [], [], []
    for one in found:
        short, taint, what = PRESSURES[one["type"]]
        since = f" since {one_line(one['since'], 40)}" if one.get("since") else ""
        words.append(f"{short} ({one['type']}{since})")
        advice.append(what)
        carried = [
            node_taints.spelled(mark)
            for mark in view.taints
            if str(mark.get("key")) == f"node.kubernetes.io/{taint}"
        ]
        proofs.append(
            Proof(
                "api",
                cluster.api_host,
                object=f"Node {view.name}",
                text=one_line(
                    f"{one['type']} is True, {one.get('reason') or 'no reason'}"
                    + (f"; carries {', '.join(carried)}" if carried else ""),
                    300,
                ),
            )
        )
        if view.host is not None:
            crossed, more = node_pressure.told(one["type"], view.host.host, view.host.pressure)
            clauses += crossed or _eased(one["type"], view.host.pressure)
            proofs += more
    measured = f"; {'; '.join(clauses)}" if clauses else ""
    return Hit(
        f"{view.name} is short of {' and of '.join(words)}: its kubelet evicts pods, and no new"
        f" ones come{measured}",
        tuple(proofs),
        f"{'; '.join(advice)}. The kubelet takes the condition back itself, and the node lifecycle"
        " controller its taint",
        host=view.host.host if view.host else None,
        node=view.name,
    )
