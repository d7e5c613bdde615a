# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Name in a finding who has the address at which a program could not listen."""

from __future__ import annotations

from dataclasses import replace

from ...module_utils.shared import socket_kinds
from ..evidence.answers.node.address_holders import AddressHolders, Holder, TakenAddress
from ..evidence.document import one_line, shell_name
from ..models import taken_addresses
from ..models.moments import moment
from ..models.result import EvidenceRef
from .base import Detection

SHOWN = 80
_OF_KERNEL = {"udp": "a tunnel such as VXLAN, Geneve or WireGuard", "tcp": "NFS"}
_RANGE = (
    "sysctl net.ipv4.ip_local_port_range shows which ports connections take: add {port} to"
    " net.ipv4.ip_local_reserved_ports in a file of /etc/sysctl.d (sysctl --system), so that no"
    " connection takes it again, and end that connection{end}"
)


def with_holder(hit: Detection, answer: AddressHolders) -> Detection:
    """Return a hit with the process that has an address of which its texts say that it is in use.

    answer: that of the host which the hit is of
    """
    row = taken_addresses.first((hit.summary, *(ref.text or "" for ref in hit.evidence)), answer)
    if row is None or row.unseen or row.port is None:
        return hit
    if not row.holders:
        return _of_none(hit, row)
    holder = row.holders[0]
    if holder.pid is None and holder.kind == socket_kinds.CONNECTION:
        return hit  # the rest of a connection whose process has ended
    return _of_holder(hit, row, holder)


def _of_none(hit: Detection, row: TakenAddress) -> Detection:
    sentence = (
        f"At the time of the audit nothing has port {row.port} ({row.protocol}) of this machine:"
        " what had it has ended"
    )
    if f"nothing has port {row.port}" in hit.summary:
        return hit
    return replace(hit, summary=f"{hit.summary}. {sentence}")


def _of_holder(hit: Detection, row: TakenAddress, holder: Holder) -> Detection:
    if holder.pid is not None and f"pid {holder.pid}" in hit.summary:
        return hit
    sentence = _sentence(row, holder)
    proof = EvidenceRef("process", hit.host, pid=holder.pid, text=_place(row, holder))
    return replace(
        hit,
        summary=f"{hit.summary}. {sentence}",
        evidence=(*hit.evidence, proof),
        remedy=f"{_advice(row, holder)}; {hit.remedy}",
    )


def _place(row: TakenAddress, holder: Holder) -> str:
    place = f"{row.protocol} {one_line(holder.address, 64)}:{row.port}"
    if holder.pid is None:
        return place
    return f"{place} {_name(holder)}"


def _sentence(row: TakenAddress, holder: Holder) -> str:
    """Return who has an address."""
    if holder.pid is None:
        device = _OF_KERNEL.get(row.protocol, "")
        return f"The kernel itself has port {row.port} ({row.protocol}): {device}, no process"
    if holder.kind == socket_kinds.CONNECTION:
        return (
            f"No program listens at port {row.port}: a connection of {_name(holder)} to"
            f" {one_line(holder.peer, SHOWN)} has it as its own port"
        )
    return (
        f"Port {row.port} ({row.protocol}) is held by {_name(holder)} at"
        f" {one_line(holder.address, 64)}{_since(holder)}"
    )


def _name(holder: Holder) -> str:
    """Return the name, the pid and the place of a process."""
    return f"{one_line(holder.comm, 60) or 'a process'} (pid {holder.pid}, {_owner(holder)})"


def _owner(holder: Holder) -> str:
    """Return the unit, the pod or the container that a process belongs to."""
    container = one_line(holder.container_id or "", 13)
    if holder.pod_uid:
        return f"{_container(container)}{_kind(holder)} {one_line(holder.pod_uid, 40)}"
    if container:
        return f"container {container} of no pod"
    return one_line(holder.unit or "no unit", SHOWN)


def _container(name: str) -> str:
    if not name:
        return ""
    return f"container {name} of "


def _kind(holder: Holder) -> str:
    if holder.static:
        return "static pod"
    return "pod"


def _since(holder: Holder) -> str:
    began = moment(holder.started_at)
    if began is None:
        return ""
    return f", since {began:%Y-%m-%dT%H:%M:%SZ}"


def _kernel_advice(row: TakenAddress) -> str:
    if row.protocol == "udp":
        return (
            "ip -d link show names the tunnels with their ports: ip link delete that of a network"
            " plugin which is gone, or give one of both another port"
        )
    return f"see rpcinfo -p and /proc/fs/nfsd for port {row.port}, or give one another port"


def _advice(row: TakenAddress, holder: Holder) -> str:
    """Return how the port becomes free."""
    if holder.pid is None:
        return _kernel_advice(row)
    unit = shell_name(holder.unit or "", "")
    if holder.kind == socket_kinds.CONNECTION:
        end = f" (ps -fp {holder.pid})"
        if unit:
            end = f" (systemctl restart {unit})"
        return _RANGE.format(port=row.port, end=end)
    if holder.pod_uid or holder.container_id:
        container = shell_name((holder.container_id or "")[:13], "ID")
        return (
            f"crictl ps --id {container} names the pod with that port: where it is left of an"
            f" earlier start, crictl stop {container}; else give one of both another port"
        )
    if unit:
        return (
            f"systemctl status {unit} shows what that is: systemctl disable --now {unit} where it"
            " does not belong on this machine, else give one of both another port"
        )
    return (
        f"ps -fp {holder.pid} shows what that is and who started it: kill {holder.pid} where it is"
        " a copy that was left, else give one of both another port"
    )
