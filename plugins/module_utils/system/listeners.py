# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has a port of this node, by /proc."""

import os
import time

from ..shared.socket_kinds import CONNECTION, DATAGRAM, LISTEN
from . import files, procfs

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
DATAGRAMS = ("/proc/net/udp", "/proc/net/udp6")
LISTENS = "0A"
ACCEPTS = "00010000"  # the flags of a socket of /proc/net/unix that listens
BOUND = "07"  # of a datagram
CONNECTED = ("01", "02", "08")  # established, being established, closed by the other side
READ = 8 * 1024 * 1024
SECONDS, MAX_HOLDERS = 2.0, 10
KINDS = {
    "tcp": {LISTENS: LISTEN, **dict.fromkeys(CONNECTED, CONNECTION)},
    "udp": dict.fromkeys((BOUND, *CONNECTED), DATAGRAM),
}


def sockets(ports, tables=TABLES):
    """Return {inode: port} of the sockets that listen on one of these ports."""
    inodes = {}
    for table in tables:
        for line in (files.whole(table, READ) or "").splitlines():
            fields = line.split()
            if len(fields) < 10 or fields[3] != LISTENS:
                continue
            port = _port(fields[1])
            if port in ports:
                inodes[fields[9]] = port
    return inodes


def bound(ports, tables=TABLES, datagrams=DATAGRAMS):
    """Return [{inode, protocol, kind, address, port, peer}] of the sockets with these local ports.

    Of TCP these are those that listen, and connections, which a program that is to listen at the
    same port meets too. peer: where a connection leads to, else "".
    """
    rows = []
    for protocol, places in (("tcp", tables), ("udp", datagrams)):
        for table in places:
            for line in (files.whole(table, READ) or "").splitlines():
                row = _socket(line.split(), protocol, ports)
                if row is not None:
                    rows.append(row)
    return rows


def _socket(fields, protocol, ports):
    """Return a line of a table as a row, or None where it is of another port."""
    if len(fields) < 10 or _port(fields[1]) not in ports:
        return None
    kind = KINDS[protocol].get(fields[3])
    if kind is None:
        return None
    return {
        "inode": fields[9],
        "protocol": protocol,
        "kind": kind,
        "address": _address(fields[1].rpartition(":")[0]),
        "port": _port(fields[1]),
        "peer": _peer(fields[2], kind),
    }


def _peer(place, kind):
    if kind != CONNECTION:
        return ""
    return f"{_address(place.rpartition(':')[0])}:{_port(place)}"


def _address(word):
    """Return the address that the kernel prints as hexadecimal words in the machine's order."""
    import socket
    import struct

    try:
        raw = bytes.fromhex(word)
        words = struct.unpack(f">{len(raw) // 4}I", raw)
        raw = struct.pack(f"={len(words)}I", *words)
        return socket.inet_ntop({4: socket.AF_INET, 16: socket.AF_INET6}[len(raw)], raw)
    except (ValueError, KeyError, struct.error, OSError):
        return "?"


def _port(place):
    try:
        return int(place.rpartition(":")[2], 16)
    except ValueError:
        return None


def holders(inodes, proc="/proc", seconds=SECONDS):
    """Return ([{port, pid, comm, unit, pod_uid, static}], whether all processes were looked at).

    inodes: {inode: port}, or another value in place of the port. The search ends as soon as each
    socket is found, and at the time limit.
    """
    end, missing, rows, complete = time.monotonic() + seconds, dict(inodes), [], True
    for name in sorted(files.names(proc), reverse=True):
        if not name.isdecimal():
            continue
        if not missing or len(rows) >= MAX_HOLDERS:
            break
        if time.monotonic() > end:
            return rows, False
        try:
            held_inodes = _held(f"{proc}/{name}/fd", missing)
        except OSError as error:
            complete = complete and files.reason(error) == "missing"
            continue
        for inode in held_inodes:
            rows.append(_row(int(name), missing.pop(inode), proc))
    return rows, complete


def _held(folder, inodes):
    """Return which of these sockets a process has open."""
    held_inodes = set()
    for descriptor in os.listdir(folder):
        try:
            target = os.readlink(f"{folder}/{descriptor}")
        except OSError:
            continue
        if target.startswith("socket:[") and target[8:-1] in inodes:
            held_inodes.add(target[8:-1])
    return sorted(held_inodes)


def _row(pid, port, proc):
    group = procfs.cgroup(files.text(f"{proc}/{pid}/cgroup") or "")
    return {
        "port": port,
        "pid": pid,
        "comm": files.one_line(files.text(f"{proc}/{pid}/comm") or "", 64).strip(),
        "unit": group["unit"],
        "pod_uid": group["pod_uid"],
        "static": group["static"],
    }


def unix_paths(pid, proc="/proc"):
    """Return the paths of the sockets at which a process listens, as far as it may be looked at.

    They are those of the network namespace of this program.
    """
    rows = {}
    for line in (files.whole(f"{proc}/net/unix", READ) or "").splitlines():
        fields = line.split(None, 7)
        if len(fields) == 8 and fields[3] == ACCEPTS and fields[7].startswith("/"):
            rows[fields[6]] = fields[7]
    try:
        return sorted({rows[inode] for inode in _held(f"{proc}/{pid}/fd", rows)})
    except OSError:
        return []
