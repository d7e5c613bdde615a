# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network configuration of a node's pods."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import cni
from tests.unit.support import answers, cni_evidence


@pytest.fixture
def raw(world):
    data = cni_evidence.cni(world)
    cni_evidence.reserve(data, addresses=4, leaked=2)
    return data


def test_files_programs_and_reservations(raw):
    answer = answers.typed(cni.Cni, raw)
    assert (answer.files[0].plugins, answer.files[0].ipam[0].type) == (
        ("bridge", "portmap"),
        "host-local",
    )
    assert "bridge" in answer.programs
    assert (answer.reservations[0].addresses, answer.reservations[0].leaked) == (4, 2)


def test_what_is_not_known_is_none(raw):
    decoded = answers.changed(cni.Cni, raw, "bin_dirs", value=None)
    assert (decoded.malformed, decoded.answer.bin_dirs) == ((), None)
    decoded = answers.changed(cni.Cni, raw, "reservations", 0, "leaked", value=None)
    assert (decoded.malformed, decoded.answer.reservations[0].leaked) == ((), None)


def test_a_count_of_another_type_is_refused(raw):
    decoded = answers.changed(cni.Cni, raw, "reservations", 0, "addresses", value="4")
    assert decoded.malformed == ("reservations[0].addresses",)
