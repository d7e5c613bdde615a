# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages of protobuf, as the CRI sends them."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import protobuf

# What containerd 2.2.1 sent as its version.
VERSION = b'\n\x050.1.0\x12\ncontainerd\x1a\x06v2.2.1"\x02v1'


def test_the_version_of_a_runtime():
    rows = protobuf.fields(VERSION)
    assert [protobuf.text(rows, number) for number in (1, 2, 3, 4, 5)] == [
        "0.1.0",
        "containerd",
        "v2.2.1",
        "v1",
        "",
    ]


def test_numbers_maps_and_what_is_passed_over():
    entry = protobuf.string(1, "config") + protobuf.string(2, "{}")
    data = b"\x08\xac\x02" + protobuf.message(2, entry) + b"\x19" + b"\0" * 8 + b"\x25" + b"\0" * 4
    rows = protobuf.fields(data)
    assert protobuf.integer(rows, 1) == 300
    assert protobuf.integer(rows, 7) == 0
    assert protobuf.pairs(rows, 2) == {"config": "{}"}


@pytest.mark.parametrize("length", [0, 1, 127, 128, 5000])
def test_a_text_is_read_as_it_was_written(length):
    data = protobuf.message(1, protobuf.string(3, "x" * length))
    inner = protobuf.values(protobuf.fields(data), 1)[0]
    assert protobuf.text(protobuf.fields(inner), 3) == "x" * length


@pytest.mark.parametrize("data", [b"\x08", b"\x08\x80", b"\x0a\x05abc", b"\x0b", b"\xff" * 12])
def test_what_is_no_message_is_refused(data):
    with pytest.raises(protobuf.Malformed):
        protobuf.fields(data)
