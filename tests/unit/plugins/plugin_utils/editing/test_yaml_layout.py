# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries of lists and mappings written, added and removed in the style of their file."""

from __future__ import annotations

import pytest
import yaml

from ansible_collections.kubemend.remediation.plugins.plugin_utils.editing import yaml_layout
from ansible_collections.kubemend.remediation.plugins.plugin_utils.editing.draft import (
    Draft,
    EditRefused,
)


def edited(text, change):
    """Return the file after a change of the list under `a`."""
    draft = Draft(text)
    key, items = draft.entry(draft.root, "a")
    change(draft, key, items)
    after = draft.finish().text
    yaml.safe_load(after)
    return after


@pytest.mark.parametrize(
    ("text", "flow", "is_plain"),
    [
        ("--v=4", False, True),
        ("/etc/kubernetes", False, True),
        ("static", False, True),
        ("yes", False, False),
        ("Off", False, False),
        ("4", False, False),
        ("--a=b,c", False, True),
        ("--a=b,c", True, False),
        ("--a:b", True, False),
        ("--a=", False, True),
        ("a b", False, False),
        ("é", False, False),
        ("", False, False),
    ],
)
def test_only_what_every_parser_reads_as_the_same_string_is_plain(text, flow, is_plain):
    assert yaml_layout.plain(text, flow) is is_plain


@pytest.mark.parametrize(
    ("text", "quote", "written"),
    [
        ("static", None, "static"),
        ("4", None, '"4"'),
        ("static", "'", "'static'"),
        ("it's", "'", "'it''s'"),
        ('a "b" \\', '"', '"a \\"b\\" \\\\"'),
        ('a "b"', None, "'a \"b\"'"),
        ("a\\b", None, "'a\\b'"),
    ],
)
def test_a_string_is_quoted_as_its_place_asks_and_reads_the_same(text, quote, written):
    assert yaml_layout.render(text, quote, False) == written
    assert yaml.safe_load(written) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a:\n- x\n", "a:\n- x\n- new\n"),
        ("a:\n  -  x  # why\nb: 1\n", "a:\n  -  x  # why\n  -  new\nb: 1\n"),
        ("a:\n- 'x'", "a:\n- 'x'\n- 'new'"),
        ("a:\r\n- x\r\n", "a:\r\n- x\r\n- new\r\n"),
        ("a: [x]\n", "a: [x, new]\n"),
        ('a: ["x","z"]\n', 'a: ["x","z","new"]\n'),
        ("a: [\n  x,\n]\n", "a: [\n  x,\n  new,\n]\n"),
        ("a: [\n  x  # why\n]\n", "a: [\n  x,  # why\n  new\n]\n"),
    ],
)
def test_an_item_is_appended_like_the_last_one(before, after):
    assert edited(
        before, lambda draft, _key, items: yaml_layout.append_item(draft, items, "new")
    ) == (after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a:\n- x\n- z\n", "a:\n- new\n- z\n"),
        ("a:\n- 'x'  # why\n", "a:\n- 'new'  # why\n"),
        ('a: ["x", z]\n', 'a: ["new", z]\n'),
    ],
)
def test_an_item_is_replaced_with_its_quotes(before, after):
    def change(draft, _key, items):
        yaml_layout.replace_item(draft, items, 0, "new")

    assert edited(before, change) == after


@pytest.mark.parametrize(
    ("before", "indexes", "after"),
    [
        ("a:\n- x\n- y  # why\n- z\n", {1}, "a:\n- x\n- z\n"),
        ("a:\n- x\n", {0}, "a: []\n"),
        ("a:\n- x\n- y\nb: 1\n", {0, 1}, "a: []\nb: 1\n"),
        ("a: [x, y, z]\n", {0}, "a: [y, z]\n"),
        ("a: [x, y, z]\n", {2}, "a: [x, y]\n"),
        ("a: [x, y, z]\n", {1, 2}, "a: [x]\n"),
        ("a: [\n  x,\n  y\n]\n", {1}, "a: [\n  x\n]\n"),
        ("a: [\n  x,\n  y,\n]\n", {0}, "a: [\n  y,\n]\n"),
        ("a: [x]\n", {0}, "a: []\n"),
    ],
)
def test_items_go_with_their_lines_comments_and_commas(before, indexes, after):
    def change(draft, key, items):
        yaml_layout.remove_items(draft, key, items, indexes)

    assert edited(before, change) == after


def test_an_item_that_does_not_begin_behind_its_dash_is_refused():
    draft = Draft("a:\n-\n  x\n")
    _key, items = draft.entry(draft.root, "a")
    with pytest.raises(EditRefused) as refusal:
        yaml_layout.dash_of(draft, items.value[0])
    assert refusal.value.line == 3


@pytest.mark.parametrize("text", ["a\nb", "a\x00", "a\u2028b", "\ufeff"])
def test_a_value_with_a_control_character_is_refused(text):
    with pytest.raises(EditRefused):
        yaml_layout.refuse_control(Draft("a: 1\n"), "plain", text)


def test_the_spans_of_a_mapping_are_those_of_its_entries():
    text = "{a: 1, b: [2]}\n"
    draft = Draft(text)
    spans = yaml_layout.entry_spans(draft.root)
    assert [text[start:end] for start, end in spans] == ["a: 1", "b: [2]"]
