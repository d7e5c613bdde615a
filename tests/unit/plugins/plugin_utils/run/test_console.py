# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress goes where the operator wants it."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import console
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import patience

DONE = {
    "state": "done",
    "reason": "w1 is drained",
    "changed": True,
    "seconds": 1,
    "seen": {},
    "journal": None,
    "notes": [],
}


def test_progress_goes_where_the_operator_wants_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script, told = [("ok", "", {"state": "at_work", "reason": "3 left"}), ("ok", "", DONE)], []
    assert (
        patience.patiently(
            lambda asked: script.pop(0), {"patience": 1, "timeout": 60}, told.append
        )[2]
        == DONE
    )
    assert told == ["3 left"]
    for callback, stream in (
        ("ansible.builtin.default", 0),
        ("ansible.posix.json", 1),
        ("ansible.posix.jsonl", 1),
    ):
        monkeypatch.setattr(
            console.constants.config, "get_config_value", lambda name, callback=callback: callback
        )
        console.show("12 left\n")
        assert capsys.readouterr()[stream] == "12 left\n"
