# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""At which interface each address of a machine is."""

import struct
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import link_addresses

# Linux 6.1: a global address, a link-local one, and a line that was cut.
IF_INET6 = """fd000000000000000000000000000002 03 40 00 80     eth0
fe80000000000000020c29fffe0a0b0c 03 40 20 80     eth0
fd0000000000000000000000000000
"""


def row(name, address, size=link_addresses.ROW_SIZE):
    packed = name.encode().ljust(16, b"\0") + struct.pack("=HH", 2, 0)
    return (packed + bytes(int(part) for part in address.split("."))).ljust(size, b"\0")


def test_the_addresses_of_this_machine():
    pairs = link_addresses.ipv4()
    assert ("127.0.0.1", "lo") in pairs
    names = {name.partition(":")[0] for _address, name in pairs}
    assert names <= {path.name for path in Path("/sys/class/net").iterdir()}


def test_the_size_of_a_structure():
    of_map = {4: 16, 8: 24}[struct.calcsize("P")]  # struct ifmap, by the size of a pointer
    assert link_addresses.NAME_SIZE + of_map == link_addresses.ROW_SIZE


def test_the_structures_of_the_kernel():
    data = row("eth0", "192.0.2.11") + row("eth0:vip", "192.0.2.100") + b"cut"
    assert link_addresses.rows(data) == [("192.0.2.11", "eth0"), ("192.0.2.100", "eth0:vip")]
    assert link_addresses.rows(b"") == []


def test_a_kernel_that_refuses():
    def refuse(*_arguments):
        raise OSError(22, "Invalid argument")

    assert link_addresses.ipv4(control=refuse) is None


@pytest.mark.parametrize(("text", "found"), [(IF_INET6, [("fd00::2", "eth0")]), ("", [])])
def test_addresses_of_ipv6(text, found):
    assert link_addresses.ipv6(text) == found


@pytest.mark.parametrize(
    "line",
    [
        "fd0000000000000000000000000000 03 40 00 80 eth0",
        "fd000000000000000000000000000002 03 40 00 80",
        "fd000000000000000000000000000002 03 40 20 80 eth0",
    ],
)
def test_lines_of_ipv6_that_are_cut_or_of_one_link(line):
    assert link_addresses.ipv6(line + "\n") == []
