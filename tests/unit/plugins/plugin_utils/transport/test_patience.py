# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A connection that breaks is made again."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import patience
from tests.unit.support.drain_answer import DRAINED


def test_a_connection_that_breaks_while_it_works_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 0)
    at_work, lost = ("ok", "", {"state": "at_work", "reason": ""}), ("unreachable", "closed", {})
    script = [at_work, lost, lost, at_work, lost, ("ok", "", DRAINED)]
    assert patience.patiently(lambda asked: script.pop(0), {"patience": 1, "timeout": 60}) == (
        "ok",
        "",
        DRAINED,
    )
    assert not script
    script = [at_work, *[lost] * 9]
    assert patience.patiently(lambda asked: script.pop(0), {"patience": 1, "timeout": 60}) == lost
    assert len(script) == 9 - patience.BROKEN
