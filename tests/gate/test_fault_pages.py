# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules for the pages of faults: generated blocks, and text of their own between them."""

from __future__ import annotations

import types

import pytest

from tests.docs import faults

FAULT = types.SimpleNamespace(code="KM101")
PAGE = (faults.DIRECTORY / "KM101.md").read_text(encoding="utf-8")


def test_a_complete_page_has_no_problem():
    assert faults.problems(FAULT, PAGE, {"KM101"}) == []


@pytest.mark.parametrize("name", sorted(faults.BLOCKS))
def test_a_page_without_a_block_is_named(name):
    text = PAGE.replace(f"begin {name} -->", "begin other -->")
    assert f"lacks the generated block {name}" in faults.problems(FAULT, text, {"KM101"})


def test_a_page_without_a_repair_has_no_undo():
    assert faults.problems(FAULT, PAGE, set()) == ["has no use for the block undo"]


@pytest.mark.parametrize("title", faults.WRITTEN)
def test_an_empty_part_is_named(title):
    text = PAGE.replace(faults.own(PAGE, title), "")
    assert faults.problems(FAULT, text, {"KM101"}) == [
        f"has no text below {title}",
        f"lacks text of its own below {title}",
    ]


def test_headings_are_known_and_in_order():
    text = PAGE.replace("## What you see", "## What it means")
    assert "has an unknown heading: What it means" in faults.problems(FAULT, text, {"KM101"})
    text = PAGE.replace("## Undo", "## X").replace("## Fix by hand", "## Undo")
    text = text.replace("## X", "## Fix by hand")
    assert any("another order" in line for line in faults.problems(FAULT, text, {"KM101"}))


def test_a_new_page_lacks_its_written_parts():
    catalogue = {"KM101": _fault()}
    blocks = faults._blocks(catalogue["KM101"], catalogue, {"s": _symptom()}, {"KM101"})
    missing = faults.problems(FAULT, faults._skeleton(blocks), {"KM101"})
    assert [line for line in missing if "of its own" in line] == [
        f"lacks text of its own below {title}" for title in faults.WRITTEN
    ]
    assert not any("block" in line or "heading" in line for line in missing)


def _fault():
    return types.SimpleNamespace(
        code="KM101",
        title="Title",
        severity="warning",
        scope="node",
        applies="nodes",
        risk=1,
        needs=(),
        cluster_needs=(),
        tier="core",
        sooner=False,
        explained_by=frozenset(),
    )


def _symptom():
    return types.SimpleNamespace(causes=("KM101",), signs=(), codes=("KM101",), title="S", name="s")
