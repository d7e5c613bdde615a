# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Host and time in findings about a Node."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.node import wording


def test_a_node_has_the_name_of_its_host() -> None:
    view = SimpleNamespace(host=SimpleNamespace(host="w1"))
    assert wording.host_name(view) == "w1"


def test_a_node_that_is_no_host_of_the_run_has_no_name() -> None:
    assert wording.host_name(SimpleNamespace(host=None)) is None


@pytest.mark.parametrize(
    ("time", "clause"),
    [
        ("2026-11-25T10:00:00Z", " since 2026-11-25T10:00:00Z"),
        ("", ""),
        (None, ""),
        ("a\nb", " since a b"),
    ],
)
def test_the_clause_of_a_time_is_one_line(time: object, clause: str) -> None:
    assert wording.since(time) == clause


def test_a_long_time_is_cut() -> None:
    assert len(wording.since("9" * 500)) < 60
