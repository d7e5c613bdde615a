# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The measured address that a message is about."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    address_holders,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import taken_addresses
from tests.unit.support import answers, taken_ports

ROWS = [taken_ports.row(10259, "127.0.0.1", pid=7), taken_ports.row(10259, pid=8)]
IN_USE = "bind: address already in use"


def first(*texts, rows=ROWS):
    answer = answers.typed(address_holders.AddressHolders, {"addresses": list(rows)})
    row = taken_addresses.first(texts, answer)
    return row and row.holders[0].pid


def test_the_address_counts_with_its_host_part():
    assert first(f"listen tcp 127.0.0.1:10259: {IN_USE}") == 7
    assert first("well", f"listen tcp 0.0.0.0:10259: {IN_USE}") == 8
    assert first(f"listen tcp 10.0.0.1:10259: {IN_USE}") is None
    assert first(f"listen udp 0.0.0.0:10259: {IN_USE}") is None
    assert first(f"listen tcp 0.0.0.0:10259: {IN_USE}", rows=()) is None
