# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector address_holders: who has the ports that programs of this node could not listen at.

The ports are those of messages that other collectors read. Without such a message it opens nothing.
"""

from ...logs import document_texts
from ...shared import address_in_use
from ...system import files, listeners, procfs
from ..base import Absent

# The programs of these run in the network of the node.
OF_NODE = (
    "component_end",
    "component_units",
    "kubelet_end",
    "runtime",
    "component_restart",
    "unit_start",
    "repeated_errors",
    "failed_units",
)
OF_PODS = "system_pods"
MAX_ADDRESSES, MAX_PROCESSES = 8, 5000
_KINDS = (listeners.LISTEN, listeners.DATAGRAM, listeners.CONNECTION)  # what tells most first


def collect(context):
    """Return {addresses: rows} of the addresses that a message says to be in use.

    A row is {protocol, address, port, unseen, holders}, a holder {kind, address, peer, pid, comm,
    unit, pod_uid, static, container_id, started_at}, with pid None where no process has the socket.

    unseen: whether a process may have been missed; kind: listen, datagram, or connection for one
    that leads from this port to another machine.
    """
    context.source = "/proc/net/tcp, /proc/net/udp, /proc/*/fd"
    places = _named(context.data)
    if not places:
        raise Absent("no message says that an address is in use")
    sockets = listeners.bound({port for _protocol, _address, port in places})
    context.truncated = len(places) > MAX_ADDRESSES
    chosen = {place: _colliding(place, sockets) for place in places[:MAX_ADDRESSES]}
    inodes = {row["inode"]: row["inode"] for rows in chosen.values() for row in rows}
    processes, complete = listeners.holders(inodes)
    by_inode = {row["port"]: row for row in processes}
    return {"addresses": [_row(*item, by_inode, complete) for item in chosen.items()]}


def _named(data):
    """Return the addresses of all messages, without those in networks of pods."""
    rows, foreign = [], []
    for name in OF_NODE:
        rows += _addresses(data.get(name))
    answer = data.get(OF_PODS) or {}
    for pod in (answer.get("pods") or []) + (answer.get("running") or []):
        addresses = _addresses(pod)
        if addresses and in_network_of_node(pod.get("path") or ""):
            rows += addresses
        else:
            foreign += addresses
    return [row for row in dict.fromkeys(rows) if row not in foreign]


def _addresses(answer):
    texts = document_texts.having(answer, address_in_use.MARKS)
    return [row for text in texts for row in address_in_use.find(text)]


def in_network_of_node(path, proc="/proc"):
    """Return whether the pod with this log runs in the network of this program.

    It does not count where no process of that pod shows it.
    """
    uid = _uid(path)
    network = procfs.link("self", "ns/net", proc)
    if not uid or network is None:
        return False
    for name in [name for name in files.names(proc) if name.isdecimal()][:MAX_PROCESSES]:
        group = files.text(f"{proc}/{name}/cgroup") or ""
        if uid in group.replace("_", "-"):
            return procfs.link(name, "ns/net", proc) == network
    return False


def _uid(path):
    """Return the uid of the pod that a path below the folder of the logs of pods has, or ""."""
    folder = path.rpartition("/")[0].rpartition("/")[0].rpartition("/")[2]
    uid = folder.rpartition("_")[2]
    if len(uid) in (32, 36):
        return uid
    return ""


def _colliding(place, sockets):
    """Return the sockets that keep a program from listening there: those that listen, if any do."""
    protocol, address, port = place
    rows = [
        row
        for row in sockets
        if (row["protocol"], row["port"]) == (protocol, port)
        and address_in_use.collide(address, row["address"])
    ]
    for kind in _KINDS:
        chosen = [row for row in rows if row["kind"] == kind]
        if chosen:
            return chosen[:3]
    return []


def _row(place, sockets, by_inode, complete):
    protocol, address, port = place
    holders = [_holder(socket, by_inode.get(socket["inode"])) for socket in sockets]
    unseen = not complete and any(holder["pid"] is None for holder in holders)
    return {
        "protocol": protocol,
        "address": address[:64],
        "port": port,
        "unseen": unseen,
        "holders": holders,
    }


def _holder(socket, process):
    process = process or {"comm": "", **dict.fromkeys(("pid", "unit", "pod_uid", "static"))}
    row = {name: process[name] for name in ("pid", "comm", "unit", "pod_uid", "static")}
    row.update({name: socket[name] for name in ("kind", "address", "peer")})
    row.update(container_id=None, started_at=None)
    if row["pid"] is not None:
        group = procfs.cgroup(files.text(f"/proc/{row['pid']}/cgroup") or "")
        row.update(container_id=group["container_id"], started_at=procfs.started_at(row["pid"]))
    return row
