# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of faults on a terminal."""

from __future__ import annotations

import itertools
import json

import pytest
from kubemend import collection, pages
from kubemend.wrong_input import WrongInput


@pytest.mark.parametrize("code", ["KM101", "km101"])
def test_a_page_is_shown_without_what_generates_it(code):
    lines = pages.explain(code).splitlines()
    assert lines[0] == "# KM101 Leader election disabled"
    assert not any("<!--" in line for line in lines)
    assert lines[-1] == f"the page: {collection.folder() / 'docs/faults/KM101.md'}"
    assert not any(one == two == "" for one, two in itertools.pairwise(lines))


def test_every_fault_has_a_page():
    for code in collection.faults():
        assert pages.explain(code).startswith(f"# {code} ")


def test_prose_is_wrapped_and_code_is_not(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    text = ["- a " + "word " * 10, "```", "x " * 40, "```", "| " + "y " * 40]
    lines = list(pages._wrapped(text))
    assert lines[1].startswith("  word")
    assert all(len(line) <= 30 for line in lines[:2])
    assert "x " * 40 in lines
    assert "| " + "y " * 40 in lines


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("KM1001", "the nearest one is KM1"),
        ("KM52", r"kubemend faults 'KM52\*' lists"),
        ("", "kubemend faults lists them"),
        ("hello", "kubemend faults lists them"),
    ],
)
def test_an_unknown_code_has_the_nearest_one(code, sentence):
    for show in (pages.explain, lambda code: pages.faults([code])):
        with pytest.raises(WrongInput, match=f"no fault has the code {code}; {sentence}"):
            show(code)


def test_without_a_code_all_faults_are_listed():
    lines = pages.explain(None).splitlines()
    assert [line[:5] for line in lines] == list(collection.faults())
    assert lines[0] == "KM101  critical  Leader election disabled"


def test_faults_by_a_pattern():
    rows = json.loads(pages.faults(["km40?", "KM101"], as_json=True))
    codes = {row["code"] for row in rows}
    assert "KM101" in codes
    assert codes - {"KM101"} == {code for code in collection.faults() if code.startswith("KM40")}


def test_symptoms_have_their_titles():
    assert "api_down             The API does not answer" in pages.symptoms().splitlines()
