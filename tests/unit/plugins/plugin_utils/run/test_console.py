# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress goes where the operator wants it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import console
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import patience
from tests.unit.support.drain_answer import DRAINED


def test_progress_goes_where_the_operator_wants_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script, told = [("ok", "", {"state": "at_work", "reason": "3 left"}), ("ok", "", DRAINED)], []
    assert (
        patience.patiently(
            lambda asked: script.pop(0), {"patience": 1, "timeout": 60}, told.append
        )[2]
        == DRAINED
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


@pytest.mark.parametrize("callback", ["ansible.builtin.default", "ansible.posix.json"])
def test_what_happens_meanwhile_is_on_stderr_which_no_pipe_keeps_back(
    callback: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console.constants.config, "get_config_value", lambda _name: callback)
    console.tell("w1: 12 pods left")
    assert tuple(capsys.readouterr()) == ("", "w1: 12 pods left\n")


def test_a_held_report_is_shown_once_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    console.show_held(str(tmp_path))
    assert tuple(capsys.readouterr()) == ("", "")
    console.hold(str(tmp_path), ["one\ntwo\n", "three"])
    assert stat.S_IMODE((tmp_path / console.HELD).stat().st_mode) == 0o600
    assert tuple(capsys.readouterr()) == ("", "")
    console.show_held(str(tmp_path))
    assert capsys.readouterr().out == "one\ntwo\nthree\n"
    console.show_held(str(tmp_path))
    assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []
