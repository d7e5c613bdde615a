# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses that messages of many programs say to be in use."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import address_in_use

IN_USE = "bind: address already in use"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (f"failed to listen on 0.0.0.0:10250: listen tcp 0.0.0.0:10250: {IN_USE}",
         [("tcp", "0.0.0.0", 10250)]),
        (f'err="listen tcp :9100: {IN_USE}"', [("tcp", "", 9100)]),
        (f"Listen: listen udp 169.254.25.10:53: {IN_USE}", [("udp", "169.254.25.10", 53)]),
        (f"listen tcp6 [::1]:10249: {IN_USE}", [("tcp", "::1", 10249)]),
        (f"listen tcp 10.0.0.1:2380: {IN_USE}; listen tcp 10.0.0.1:2379: {IN_USE}",
         [("tcp", "10.0.0.1", 2379), ("tcp", "10.0.0.1", 2380)]),
        ("cannot bind socket (Address already in use) for [0.0.0.0:6443]",
         [("tcp", "0.0.0.0", 6443)]),
        ("nginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address already in use)",
         [("tcp", "0.0.0.0", 80)]),
        ("cannot bind '0.0.0.0:9964': Address already in use", [("tcp", "0.0.0.0", 9964)]),
        ("Bind for 0.0.0.0:6443 failed: port is already allocated", [("tcp", "0.0.0.0", 6443)]),
        ("port 80 is already in use. Please check the flag --http-port", [("tcp", "", 80)]),
        ("dnsmasq: failed to create listening socket for port 53: Address already in use",
         [("tcp", "", 53)]),
        ("listen unix /run/a.sock: bind: address already in use", []),
        (f"listen tcp :99999: {IN_USE}", []),
        ("the name is already in use", []),
        ("listen tcp :80: bind: permission denied", []),
    ],
)  # fmt: skip
def test_messages_of_many_programs(text, rows):
    assert address_in_use.find(text) == rows


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("", "127.0.0.1", True),
        ("127.0.0.1", "::", True),
        ("127.0.0.1", "127.0.0.1", True),
        ("169.254.25.10", "127.0.0.53", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("fe80::1%eth0", "fe80::1", True),
    ],
)
def test_addresses_of_which_only_one_program_can_have_a_port(one, other, is_same):
    assert address_in_use.collide(one, other) is is_same
    assert address_in_use.collide(other, one) is is_same
