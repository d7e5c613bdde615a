# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who listens on a port, by /proc."""

import os
import socket

from ansible_collections.kubemend.remediation.plugins.module_utils.system import listeners


def test_a_socket_of_this_process():
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        inodes = listeners.sockets({port})
        rows, complete = listeners.holders(inodes, seconds=30)
    assert [(row["port"], row["pid"]) for row in rows] == [(port, os.getpid())]
    assert rows[0]["comm"]
    assert complete is True


def test_a_socket_of_a_process_that_is_hidden():
    rows, complete = listeners.holders({"999999999999": 6443}, seconds=20)
    assert rows == []
    assert complete in (True, False)
    rows, complete = listeners.holders({"999999999999": 6443}, seconds=-1)
    assert complete is False


def test_a_table_of_sockets(tmp_path):
    table = tmp_path / "tcp"
    table.write_text(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid inode\n"
        "   0: 0100007F:192B 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1\n"
        "   1: 0100007F:192B 0100007F:8000 01 00000000:00000000 00:00000000 00000000 0 0 4712 1\n"
        "   2: 0100007F:zzzz 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4713 1\n"
        "cut off\n"
    )
    found = listeners.sockets({6443}, (str(table), str(tmp_path / "missing")))
    assert found == {"4711": 6443}


HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid inode\n"
REST = "00000000:00000000 00:00000000 00000000 0 0"


def test_sockets_of_all_kinds(tmp_path):
    tcp, udp = tmp_path / "tcp", tmp_path / "udp"
    tcp.write_text(
        f"{HEADER}"
        f"   0: 0100007F:280A 00000000:0000 0A {REST} 4711 1\n"
        f"   1: 0100007F:280A 0200000A:01BB 01 {REST} 4712 1\n"
        f"   2: 0100007F:280A 0200000A:01BB 06 {REST} 0 1\n"
        f"   3: 0100007F:0050 00000000:0000 0A {REST} 4714 1\n"
        f"   4: XX:280A 00000000:0000 0A {REST} 4715 1\n"
    )
    udp.write_text(f"{HEADER}   0: 00000000:280A 00000000:0000 07 {REST} 0 1\n")
    rows = listeners.bound({10250}, (str(tcp),), (str(udp), str(tmp_path / "missing")))
    found = [(row["inode"], row["kind"], row["address"], row["peer"]) for row in rows]
    assert found == [
        ("4711", listeners.LISTEN, "127.0.0.1", ""),
        ("4712", listeners.CONNECTION, "127.0.0.1", "10.0.0.2:443"),
        ("4715", listeners.LISTEN, "?", ""),
        ("0", listeners.DATAGRAM, "0.0.0.0", ""),
    ]


def test_addresses_of_the_kernel_s_table_for_ipv6():
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as holder:
        holder.bind(("::1", 0))
        holder.listen(1)
        port = holder.getsockname()[1]
        rows = listeners.bound({port})
    assert [(row["kind"], row["address"]) for row in rows] == [(listeners.LISTEN, "::1")]


def test_the_sockets_of_a_process(tmp_path):
    place = str(tmp_path / "a.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as holder:
        holder.bind(place)
        assert place not in listeners.unix_paths(os.getpid())  # it does not listen yet
        holder.listen(1)
        assert place in listeners.unix_paths(os.getpid())
    assert listeners.unix_paths(999999999) == []
