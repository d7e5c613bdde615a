# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The swap that is on, and what may switch it on at a boot."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import swap
from tests.unit.support import answers

SWAP = answers.recorded("v1.36.3-runtime-without-cri", "w1", "swap")


def test_a_host_without_swap():
    answer = answers.typed(swap.Swap, SWAP)
    assert answer.swaps == "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
    assert (answer.memory.swap_total_kib, answer.memory.swap_free_kib) == (0, 0)
    assert answer.memory.mem_available_kib == 22280380
    assert (answer.container, answer.systemd, answer.cmdline) == (True, 252, "-")


def test_what_may_switch_it_on():
    answer = answers.typed(swap.Swap, SWAP)
    assert (answer.fstab.path, answer.fstab.error) == ("/etc/fstab", None)
    target = next(unit for unit in answer.units if unit["Id"] == "swap.target")
    assert (target["WantedBy"], target["UnitFileState"]) == ("sysinit.target", "static")
    assert (answer.links, answer.own) == ({}, ())
    assert (answer.files[0].path, answer.files[0].error) == ("/etc/default/zramswap", "missing")


def test_a_unit_that_kubemend_masked():
    raw = {**SWAP, "links": {"dev-sda2.swap": "/dev/null"}, "own": ["dev-sda2.swap"]}
    answer = answers.typed(swap.Swap, raw)
    assert (answer.links, answer.own) == ({"dev-sda2.swap": "/dev/null"}, ("dev-sda2.swap",))


def test_a_property_of_a_unit_that_is_no_text_is_dropped():
    decoded = answers.changed(swap.Swap, SWAP, "units", 0, "WantedBy", value=None)
    assert decoded.malformed == ("units[0].WantedBy",)
    assert "WantedBy" not in decoded.answer.units[0]
    assert decoded.answer.units[0]["LoadState"] == "not-found"


@pytest.mark.parametrize("field", ["units", "files", "links", "own", "fstab"])
def test_a_part_of_another_type_is_unknown_and_not_empty(field):
    decoded = answers.changed(swap.Swap, SWAP, field, value="none")
    assert (decoded.malformed, getattr(decoded.answer, field)) == ((field,), None)


def test_the_version_of_systemd_is_a_number():
    decoded = answers.changed(swap.Swap, SWAP, "systemd", value="252")
    assert (decoded.malformed, decoded.answer.systemd) == (("systemd",), None)
