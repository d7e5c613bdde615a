# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/verification.md says of each recording what is broken in it."""

from __future__ import annotations

import pytest

from tests.docs import verification


def _rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_recording_says_what_is_broken():
    rows = _rows(verification.page())
    names = {row[0] for row in rows}
    assert {name for _version, name, _folder in verification._recorded()} <= names
    assert [row[0] for row in rows if "None" in row or "" in row[:2]] == []


def test_a_recording_without_a_title_is_refused(monkeypatch):
    monkeypatch.delitem(verification.OTHERS, "component-restarted")
    with pytest.raises(ValueError, match="component-restarted"):
        verification.page()
