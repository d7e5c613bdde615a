# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find nodes that flannel does not reach as their Nodes tell: a part of KM532.

flannel of a node writes its address and the MAC address of its tunnel into annotations of the Node,
once at its start. The other nodes send packets for its pods there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...evidence.document import one_line
from ...models.api_node import NodeView, and_others
from ...models.cluster import Cluster
from ...models.result import EvidenceRef
from ..base import Detection
from . import wording

ADDRESS, BACKEND = "flannel.alpha.coreos.com/public-ip", "flannel.alpha.coreos.com/backend-data"
RESTART = (
    "restart flannel on the node, which writes the annotation again: kubectl -n kube-flannel delete"
    " pod -l app=flannel --field-selector spec.nodeName=NODE (k3s and RKE2: restart their unit)"
)
READY = "True"
MAX_HITS = 10
SHOWN = 3


def hits(cluster: Cluster, nodes: Sequence[NodeView]) -> Iterator[Detection]:
    """Yield what the annotations of flannel tell that is not so."""
    yield from _same_address(cluster, nodes)
    differ = [row for view in nodes for row in _other_mac(view)]
    for view, interface, present in differ[:MAX_HITS]:
        yield _of_mac(cluster, view, interface, present)


def _same_address(cluster: Cluster, nodes: Sequence[NodeView]) -> Iterator[Detection]:
    """Yield the addresses by which flannel reaches more than one node that is Ready.

    A machine that was renamed has its former Node still, with the same address.
    """
    by_address: dict[str, list[NodeView]] = {}
    for view in nodes:
        address = (view.plugin_addresses or {}).get(ADDRESS, "")
        if address and view.ready == READY:
            by_address.setdefault(address, []).append(view)
    shared = [(address, views) for address, views in by_address.items() if len(views) > 1]
    for address, views in shared[:MAX_HITS]:
        names = and_others([view.name for view in views], SHOWN)
        shown = one_line(address, 60)
        yield Detection(
            f"flannel reaches {names} by one and the same address {shown}, so that packets for pods"
            " of other nodes do not arrive: it took the interface of the default route, which has"
            " this address on each of these machines (the NAT of VirtualBox and Vagrant has"
            " 10.0.2.15)",
            tuple(_proof(cluster, view, f"{ADDRESS}: {shown}") for view in views[:SHOWN]),
            "name the interface of the network between the nodes: --iface=NAME or"
            " --iface-can-reach=ADDRESS in the arguments of the DaemonSet kube-flannel-ds, of k3s"
            " --flannel-iface=NAME; give kubelets its address too (--node-ip), and restart flannel",
            host=wording.host_name(views[0]),
            node=views[0].name,
            component=ADDRESS,
            severity="critical",
        )


def _other_mac(view: NodeView) -> Iterator[tuple[NodeView, str, str]]:
    """Yield the interface of a node's tunnel and its MAC address, where its Node has another."""
    if view.vtep is None or view.host is None or not view.vtep.mac:
        return
    name = f"flannel.{view.vtep.vni}"
    for interface in view.host.network.answer.interfaces:
        mac = interface.mac or ""
        if interface.name == name and mac and mac.lower() != view.vtep.mac.lower():
            yield view, name, mac


def _of_mac(cluster: Cluster, view: NodeView, interface: str, present: str) -> Detection:
    mac = one_line(view.vtep.mac if view.vtep is not None else "", 40)
    return Detection(
        f"the Node has {mac} as the MAC address of flannel's tunnel, and {interface} has"
        f" {one_line(present, 40)}: it was changed after flannel's start, so that the node drops"
        " packets that other nodes send to its pods",
        (
            _proof(cluster, view, f"{BACKEND}: VtepMAC {mac}"),
            EvidenceRef(
                "file",
                view.host.host if view.host is not None else None,
                path=f"/sys/class/net/{interface}/address",
                text=one_line(present, 40),
            ),
        ),
        f"{RESTART}. So that it does not come back: systemd from 242 on gives new interfaces a MAC"
        " address of its own (MACAddressPolicy=persistent); a file"
        " /etc/systemd/network/10-flannel.link with [Match] OriginalName=flannel.* and [Link]"
        " MACAddressPolicy=none keeps flannel's; newer releases of flannel (its pull request 1796)"
        " end at their start where it differs. See"
        " https://github.com/flannel-io/flannel/issues/1155",
        host=wording.host_name(view),
        node=view.name,
        component=interface,
        severity="critical",
    )


def _proof(cluster: Cluster, view: NodeView, text: str) -> EvidenceRef:
    return EvidenceRef("api", cluster.api_host, object=f"Node {view.name}", text=text)
