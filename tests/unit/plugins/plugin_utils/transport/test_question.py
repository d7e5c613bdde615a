# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One question, on whichever way it travels."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import question
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.watchdog import (
    TooLarge,
)

ASKED = question.Question("m1", "python3 -", b"", "MARK")


def test_the_last_mark_counts() -> None:
    assert ASKED.answer('MARK {"a": 1}\nMARK {"a": 2}\nmore', "") == {"a": 2}


@pytest.mark.parametrize(
    ("out", "err", "error"),
    [
        ("", "", question.NoAnswer),
        ("MARK {", "", question.NodeError),
        ("MARK []", "", question.NodeError),
        ("", "Unknown option: -I", question.OldPython),
        ("x" * (question.MAX_ANSWER + 1), "", TooLarge),
    ],
)
def test_what_is_no_answer(out: str, err: str, error: type[BaseException]) -> None:
    with pytest.raises(error):
        ASKED.answer(out, err)


def test_the_command_of_a_named_python_and_of_any() -> None:
    assert question.command("/x/python", "A=1", "MARK") == "A=1 /x/python -I -S -"
    assert "MARK" in question.command(None, "", "MARK")
    assert question.command(None, "A=1", "MARK").startswith("A=1 /bin/sh -c ")
