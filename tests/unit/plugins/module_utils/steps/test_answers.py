# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of a step is bounded, and says in check mode that nothing was done."""

from ansible_collections.kubemend.remediation.plugins.module_utils.steps import answers


def test_the_reason_is_one_bounded_line() -> None:
    answer = answers.answer_of("failed", "a\nb" + "c" * 5000)
    assert "\n" not in answer["reason"]
    assert len(answer["reason"]) <= 1010
    assert answers.answer_of("done", None)["reason"] == ""


def test_what_is_missing_is_empty_and_never_shared() -> None:
    answer = answers.answer_of("done", "")
    assert (answer["changed"], answer["seen"], answer["journal"], answer["notes"]) == (
        False,
        {},
        None,
        [],
    )
    answer["seen"]["x"] = 1
    answer["notes"].append("x")
    assert answers.answer_of("done", "")["seen"] == {}
    assert answers.answer_of("done", "")["notes"] == []


def test_check_mode_skips_and_says_what_would_change() -> None:
    answer = answers.in_check_mode("a.conf would be written", True, ("a note",))
    assert (answer["state"], answer["changed"], answer["notes"]) == ("skipped", True, ["a note"])
    assert answer["reason"].startswith("check mode")
    assert answer["reason"].endswith("a.conf would be written")
    assert answers.in_check_mode()["changed"] is False
