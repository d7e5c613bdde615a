# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of earlier runs."""

from __future__ import annotations

import pytest
from kubemend import runs
from kubemend.wrong_input import WrongInput

OLD, NEW = "20261126T090000Z-1a2b3c", "20261127T090000Z-1a2b3c"


@pytest.fixture(name="root", autouse=True)
def _root(tmp_path):
    root = tmp_path / ".kubemend" / "runs"
    for name in (OLD, NEW):
        (root / name).mkdir(parents=True)
        (root / name / "report.json").write_text(f'{{"run": "{name}"}}', encoding="utf-8")
        (root / name / "report.txt").write_text(f"run {name}\n", encoding="utf-8")
    (root / "notes").mkdir()
    return root


def test_the_newest_run_is_shown():
    assert runs.names() == [NEW, OLD]
    assert runs.report(None, None) == runs.report("last", "terminal") == f"run {NEW}"
    assert runs.report(OLD, None) == f"run {OLD}"
    assert runs.report(OLD, "json") == f'{{"run": "{OLD}"}}'


def test_a_run_that_is_not_done_is_passed_over(root):
    (root / NEW / "report.json").unlink()
    assert runs.report(None, None) == f"run {OLD}"


def test_a_folder_of_a_run_is_read(root):
    assert runs.report(str(root / OLD), None) == f"run {OLD}"


@pytest.mark.parametrize(
    ("run", "name", "sentence"),
    [
        (OLD, "prometheus", "has no kubemend.prom"),
        (OLD, "github", "no report has the format github"),
        ("20261125T090000Z-1a2b3c", None, f"the nearest one is {OLD[:4]}"),
        ("yesterday", None, "is no id of a run and no folder"),
    ],
)
def test_wrong_input_is_one_sentence(run, name, sentence):
    with pytest.raises(WrongInput, match=sentence):
        runs.report(run, name)


def test_without_a_run_one_sentence(root, monkeypatch):
    monkeypatch.setenv("HOME", str(root))
    with pytest.raises(WrongInput, match="no run has left a report"):
        runs.report(None, None)


def test_the_words_of_a_run():
    assert runs.is_run("last")
    assert runs.is_run(OLD)
    assert not runs.is_run("m1")
