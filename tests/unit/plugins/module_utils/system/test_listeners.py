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
