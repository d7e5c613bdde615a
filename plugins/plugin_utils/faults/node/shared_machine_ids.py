# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find machines that have one machine id: a part of KM530.

An image or a template that brings /etc/machine-id gives it to each machine that is made of it. The
boot id is the kernel's: what shares it too is one machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...evidence.document import one_line
from ...models import machine
from ...models.api_node import NodeView, and_others, views
from ...models.cluster import Cluster, Host
from ...models.result import EvidenceRef
from ..base import Detection

PATH = "/etc/machine-id"
POSTED = ("True", "False")  # the state of a Node whose kubelet the API hears
MAX_HITS, SHOWN = 10, 3


class _Owner(NamedTuple):
    """A machine with its ids; host: where they were read, None where its Node has them."""

    name: str
    machine_id: str
    boot_id: str
    host: Host | None


def hits(cluster: Cluster) -> Iterator[Detection]:
    """Yield the first machine ids that more than one running machine has."""
    by_id: dict[str, dict[str, _Owner]] = {}
    for owner in _owners(cluster):
        by_id.setdefault(machine.bare(owner.machine_id), {}).setdefault(owner.name, owner)
    shared = [list(owners.values()) for owners in by_id.values()]
    apart = [owners for owners in shared if len({owner.boot_id for owner in owners}) > 1]
    for owners in apart[:MAX_HITS]:
        yield _hit(cluster, owners)


def _owners(cluster: Cluster) -> Iterator[_Owner]:
    """Yield each machine whose kubelet runs, by what its host has now before what its Node has."""
    nodes = [view for view in views(cluster) if view.ready in POSTED]
    posted = {view.host.host for view in nodes if view.host is not None}
    by_host = {host.host: owner for host in cluster.hosts for owner in _of_host(host, posted)}
    yield from by_host.values()
    for view in nodes:
        if view.host is None or view.host.host not in by_host:
            yield from _of_node(view)


def _of_host(host: Host, posted: set[str]) -> Iterator[_Owner]:
    """Yield the ids of a host that is a node, where both were read."""
    machine_id, boot_id = host.machine.machine_id, host.machine.boot_id
    if host.host not in posted and host.kubelet_started is None:
        return
    if machine_id and boot_id:
        yield _Owner(host.node or host.host, machine_id, boot_id, host)


def _of_node(view: NodeView) -> Iterator[_Owner]:
    machine_id, boot_id = machine.whole_id(view.machine_id), machine.whole_id(view.boot_id)
    if machine_id and boot_id:
        yield _Owner(view.name, machine_id, boot_id, None)


def _hit(cluster: Cluster, owners: Sequence[_Owner]) -> Detection:
    names = and_others([owner.name for owner in owners])
    machine_id = one_line(owners[0].machine_id, 64)
    host = next((owner.host for owner in owners if owner.host is not None), None)
    return Detection(
        f"{names} have the same machine id {machine_id} ({PATH}): each got it from the image,"
        " template or machine that it was made of. What derives from the machine id is the same on"
        " them too: with systemd the client id for DHCP and the MAC addresses of interfaces such as"
        " flannel.1, vxlan.calico and bridges",
        tuple(_proof(cluster, owner) for owner in owners[:SHOWN]),
        "on all of them but one, one after the other: drain the node, rm -f"
        f" {PATH} /var/lib/dbus/machine-id, systemd-machine-id-setup, and reboot. Where a machine"
        " gets its address by DHCP, reserve that address first: it may get another one. Empty the"
        f" file in the image (truncate -s 0 {PATH}), and look for other names there that every"
        " machine needs for itself (/etc/iscsi/initiatorname.iscsi, /etc/nvme/hostnqn, the keys of"
        " /etc/ssh)",
        host=_host_name(host),
        node=owners[0].name,
        component="machine-id",
    )


def _host_name(host: Host | None) -> str | None:
    if host is None:
        return None
    return host.host


def _proof(cluster: Cluster, owner: _Owner) -> EvidenceRef:
    text = one_line(f"{owner.machine_id}; boot id {owner.boot_id}", 200)
    if owner.host is not None:
        return EvidenceRef("file", owner.host.host, path=PATH, text=text)
    return EvidenceRef(
        "api", cluster.api_host, object=f"Node {owner.name}", text=f"machineID {text}"
    )
