# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM532: check the networks that Nodes have for their pods, and the range they come from."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from ....module_utils.shared.text import counted
from ...evidence.document import one_line
from ...models import ages, pod_roles
from ...models import pod_networks as model
from ...models.api_node import NodeView, and_others, views
from ...models.cluster import Cluster
from ...models.pod_networks import Allocation, IpNetwork
from ...models.result import EvidenceRef
from ..base import CheckResult, Detection, cluster_check, without_kubernetes
from ..pods import system_pods
from . import dead_end_routes, flannel_tunnels, pod_bridges, wording

MANAGER = model.MANAGER
JOINING = 120.0  # seconds in which a Node gets its network
MAX_HITS = 10  # of one kind
SHOWN = 3
# Plugins that have networks of their own for pods, by a part of the names of their files.
OWN_NETWORKS = ("calico", "cilium", "aws", "ovn", "azure", "weave")
CALICO = "projectcalico.org/IPv4Address"


@cluster_check(
    "KM532",
    "Networks of pods do not fit the Nodes",
    severity="warning",
    applies="clusters whose controller manager, or another one, gives Nodes networks for pods",
    needs=("system", "instances", "kubelet", "network"),
    cluster_needs=("nodes",),
    current_only=True,
)
def unfit(cluster: Cluster) -> Iterator[CheckResult]:
    """KM532: report Nodes without a network for pods, with another's, or that are not reached."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    missing = list(cluster.missing("nodes") or cluster.cut("nodes"))
    nodes = views(cluster)
    if not missing and any(view.pod_cidrs is None for view in nodes):
        missing.append(cluster.missing_answer("nodes", "not_asked"))  # an older release collected
    hits = [
        *_twice(cluster, nodes),
        *_small(cluster, nodes),
        *_without(cluster, nodes),
        *_overlapping(cluster, nodes),
        *_other_addresses(cluster, nodes),
        *flannel_tunnels.hits(cluster, nodes),
        *dead_end_routes.hits(cluster, nodes),
        *pod_bridges.hits(cluster, nodes),
    ]
    yield CheckResult(tuple(hits), tuple(missing))


def _proof(cluster: Cluster, view: NodeView) -> EvidenceRef:
    shown = one_line(", ".join(view.pod_cidrs or ()) or "none", 200)
    return EvidenceRef("api", cluster.api_host, object=f"Node {view.name}", text=f"podCIDR {shown}")


def _has_own_networks(cluster: Cluster) -> bool:
    """Tell whether the network plugin may leave the networks of Nodes aside."""
    folders = [host.identity.networks for host in cluster.hosts if host.identity.networks]
    names = [name.lower() for folder in folders for name in folder.names]
    return any(part in name for name in names for part in OWN_NETWORKS)


# -- given twice ---------------------------------------------------------------------------------


def _twice(cluster: Cluster, nodes: Sequence[NodeView]) -> list[Detection]:
    pairs = list(model.shared(nodes))
    severity = "critical"
    if _has_own_networks(cluster):
        severity = "warning"
    return [
        Detection(
            f"two Nodes have the same network for pods (podCIDR {subnet}): {newer.name} and"
            f" {older.name}; their pods get the same addresses, and other nodes send the packets"
            " for both to one of them",
            (_proof(cluster, newer), _proof(cluster, older)),
            f"drain the newer Node ({newer.name}), delete it, and let its kubelet register again"
            " (restart it): a podCIDR cannot be changed. Update the controller manager first"
            f"{_release(cluster)}: kubernetes/kubernetes#127792 is a regression of v1.31 that does"
            " this. A Node whose podCIDR was set by hand does it too",
            host=wording.host_name(newer),
            node=newer.name,
            component=str(subnet),
            severity=severity,
        )
        for newer, older, subnet in pairs[:MAX_HITS]
    ]


def _release(cluster: Cluster) -> str:
    if cluster.version is None:
        return ""
    return f" (the cluster is {one_line(cluster.version, 40)})"


# -- the range -----------------------------------------------------------------------------------


def _small(cluster: Cluster, nodes: Sequence[NodeView]) -> list[Detection]:
    """Report a range that has fewer shares than there are Nodes."""
    sizes: dict[tuple[IpNetwork, int, int], list[Allocation]] = {}
    for allocation in model.allocations(cluster):
        for network, mask, rooms in allocation.rooms():
            if rooms < len(nodes):
                sizes.setdefault((network, mask, rooms), []).append(allocation)
    return [
        _too_small(cluster, nodes, network, mask, rooms, allocations)
        for (network, mask, rooms), allocations in sizes.items()
    ][:MAX_HITS]


def _too_small(
    cluster: Cluster,
    nodes: Sequence[NodeView],
    network: IpNetwork,
    mask: int,
    rooms: int,
    allocations: Sequence[Allocation],
) -> Detection:
    lacking = [view.name for view in nodes if view.pod_cidrs == ()]
    without = ""
    if lacking:
        without = f"; without a network: {and_others(lacking)}"
    places = tuple(
        EvidenceRef("process", allocation.host, object=MANAGER, text=f"--cluster-cidr={network}")
        for allocation in allocations
    )
    hosts = and_others([allocation.host for allocation in allocations])
    return Detection(
        f"--cluster-cidr={network} has room for {_nodes(rooms)} of /{mask} each, and there are"
        f" {len(nodes)}; a Node beyond that gets no podCIDR (event CIDRNotAvailable){without}",
        places,
        f"give every controller manager ({hosts}) a larger range, or smaller shares"
        " (--node-cidr-mask-size) where pods of a node fit into these: new Nodes get what the flags"
        " say, those that have a podCIDR keep it and have to be deleted and registered again. The"
        " range is also in the network plugin's configuration, in kube-proxy's (clusterCIDR), and"
        " in kubeadm's ConfigMap (networking.podSubnet); it must not overlap with the networks of"
        " machines and Services",
        host=allocations[0].host,
        component=MANAGER,
    )


def _nodes(count: int) -> str:
    return counted(count, "node") if count else "no node"


def _without(cluster: Cluster, nodes: Sequence[NodeView]) -> list[Detection]:
    """Report Nodes without a network where others have one, or where they should."""
    lacking = [view for view in nodes if view.pod_cidrs == () and not _joins(cluster, view)]
    with_network = [view for view in nodes if view.pod_cidrs]
    is_given = bool(model.allocations(cluster))
    if not (with_network or is_given):
        return []
    if not lacking or _small(cluster, nodes):
        return []
    cause = (
        "; no controller manager that answered is configured to give one"
        " (--allocate-node-cidrs=true)"
    )
    if is_given:
        cause = ", although the controller manager is configured to give one"
    return [_lacking(cluster, lacking, with_network, cause)]


def _lacking(
    cluster: Cluster, lacking: Sequence[NodeView], with_network: Sequence[NodeView], cause: str
) -> Detection:
    names = [view.name for view in lacking]
    return Detection(
        f"{and_others(names)} {_has(names)} no network for pods (podCIDR){cause}",
        tuple(_proof(cluster, view) for view in [*lacking[:SHOWN], *with_network[:1]]),
        "see the events of the Node (kubectl describe node NODE: CIDRNotAvailable) and the log"
        " of the controller manager (range_allocator, nodeipam); a network plugin that takes"
        " podCIDR (Flannel, kube-router, bridge) starts no pods there",
        host=wording.host_name(lacking[0]),
        node=lacking[0].name,
        component="podCIDR",
        because=system_pods.because(cluster, pod_roles.CLOUD),
        severity=_severity_without(cluster),
    )


def _severity_without(cluster: Cluster) -> str | None:
    if _has_own_networks(cluster):
        return "info"
    return None


def _has(names: Sequence[str]) -> str:
    if len(names) == 1:
        return "has"
    return "have"


def _joins(cluster: Cluster, view: NodeView) -> bool:
    """Tell whether a Node may still get its network."""
    age = ages.age(cluster, view.created, "nodes")
    return age is None or age < JOINING or bool(ages.clocks(cluster).doubt)


# -- overlaps ------------------------------------------------------------------------------------


def _overlapping(cluster: Cluster, nodes: Sequence[NodeView]) -> Iterator[Detection]:
    """Report networks of pods that overlap with the machines' addresses or with the Services'."""
    pod_subnets = {subnet for view in nodes for subnet in model.networks(view.pod_cidrs or ())}
    wide = {subnet for item in model.allocations(cluster) for subnet, _mask in item.ranges}
    yield from _with_services(cluster, pod_subnets | wide)
    yield from _with_machines(cluster, nodes, pod_subnets | wide)


def _with_services(cluster: Cluster, pod_subnets: set[IpNetwork]) -> Iterator[Detection]:
    ranges = {subnet: host for host, subnet in model.service_ranges(cluster)}
    for subnet, host in list(ranges.items())[:MAX_HITS]:
        hits = sorted(str(network) for network in pod_subnets if network.overlaps(subnet))
        if hits:
            yield Detection(
                f"the networks of pods {and_others(hits, SHOWN)} overlap with the range of Services"
                f" {subnet}: the address of a pod may also be that of a Service, and is not reached"
                " then",
                (
                    EvidenceRef(
                        "process",
                        host,
                        object=model.API_SERVER,
                        text=f"--service-cluster-ip-range={subnet}",
                    ),
                ),
                "give pods a range that no machine and no Service has: --cluster-cidr of the"
                " controller managers, the network plugin, kube-proxy; then register the Nodes"
                " again, one after the other",
                host=host,
                component=model.API_SERVER,
            )


def _with_machines(
    cluster: Cluster, nodes: Sequence[NodeView], pod_subnets: set[IpNetwork]
) -> Iterator[Detection]:
    merged = _merged(pod_subnets)
    addresses = ((view, address) for view in nodes for address in view.internal)
    hits = [
        (view, address) for view, address in addresses if _is_within(model.network(address), merged)
    ]
    if not hits:
        return
    shown = and_others([f"{view.name} {one_line(address, 60)}" for view, address in hits], SHOWN)
    yield Detection(
        f"addresses of machines lie in the networks of pods: {shown}; packets to them go to pods"
        " instead, or a pod gets the address of a machine",
        tuple(
            EvidenceRef(
                "api", cluster.api_host, object=f"Node {view.name}", text=f"InternalIP {address}"
            )
            for view, address in hits[:SHOWN]
        ),
        "give pods a range that no machine has (--cluster-cidr, the network plugin, kube-proxy),"
        " and register the Nodes again, one after the other",
        host=wording.host_name(hits[0][0]),
        node=hits[0][0].name,
        component="InternalIP",
    )


def _merged(pod_subnets: set[IpNetwork]) -> list[IpNetwork]:
    """Return the networks as few wide ones: a large cluster has one for each Node."""
    return [
        *ipaddress.collapse_addresses(
            item for item in pod_subnets if isinstance(item, ipaddress.IPv4Network)
        ),
        *ipaddress.collapse_addresses(
            item for item in pod_subnets if isinstance(item, ipaddress.IPv6Network)
        ),
    ]


def _is_within(address: IpNetwork | None, merged: Sequence[IpNetwork]) -> bool:
    return address is not None and any(address.overlaps(subnet) for subnet in merged)


# -- the network plugin's addresses --------------------------------------------------------------


def _other_addresses(cluster: Cluster, nodes: Sequence[NodeView]) -> Iterator[Detection]:
    """Report nodes that Calico reaches by another address than their Node has.

    All nodes may be told to use a second network. Where only some do, it was found by chance.
    """
    rows = [(view, (view.plugin_addresses or {}).get(CALICO, "")) for view in nodes]
    reached = [(view, text.partition("/")[0]) for view, text in rows if text and view.internal]
    differ = [(view, address) for view, address in reached if address not in view.internal]
    if not differ:
        return
    severity = "info"
    if len(differ) < len(reached):
        severity = "warning"
    shown = and_others(
        [
            f"{view.name} {one_line(address, 60)}, not {view.internal[0]}"
            for view, address in differ
        ],
        SHOWN,
    )
    yield Detection(
        f"Calico reaches nodes by other addresses than their InternalIP: {shown}; where these are"
        " of a network that does not connect the nodes, no BGP session is established",
        tuple(
            EvidenceRef(
                "api",
                cluster.api_host,
                object=f"Node {view.name}",
                text=f"{CALICO}: {one_line(address, 60)}; InternalIP {', '.join(view.internal)}",
            )
            for view, address in differ[:SHOWN]
        ),
        "if that network is not meant, set IP_AUTODETECTION_METHOD of the DaemonSet calico-node (or"
        " nodeAddressAutodetectionV4 of the operator's Installation) to kubernetes-internal-ip, or"
        " to interface=NAME or cidr=RANGE of the network of the nodes",
        host=wording.host_name(differ[0][0]),
        node=differ[0][0].name,
        component=CALICO,
        severity=severity,
    )
