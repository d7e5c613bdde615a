# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has an address, as the collector writes it."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    address_holders,
)
from tests.unit.support import answers, taken_ports

DATA = {"addresses": [taken_ports.row(10250, pid=77, unit="kubelet.service")]}


def test_an_address():
    answer = answers.typed(address_holders.AddressHolders, DATA)
    (row,) = answer.addresses
    assert (row.protocol, row.port, row.holders[0].pid) == ("tcp", 10250, 77)
    assert row.holders[0].unit == "kubelet.service"


def test_a_pid_that_is_a_text_is_malformed():
    decoded = answers.changed(
        address_holders.AddressHolders, DATA, "addresses", 0, "holders", 0, "pid", value="x"
    )
    assert decoded.malformed == ("addresses[0].holders[0].pid",)
