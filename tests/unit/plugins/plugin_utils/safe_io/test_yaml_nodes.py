# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML that a node wrote, as nodes: depth, places, and what a scalar says."""

from __future__ import annotations

import pytest
import yaml

from ansible_collections.kubemend.remediation.plugins.plugin_utils.safe_io import yaml_nodes


@pytest.fixture(autouse=True, params=["SafeLoader", "CSafeLoader"])
def loader(request, monkeypatch):
    if not hasattr(yaml, request.param):
        pytest.skip("PyYAML has no libyaml")
    monkeypatch.setattr(yaml_nodes, "_LOADER", getattr(yaml, request.param))


def test_the_first_document_with_the_places_of_its_scalars():
    root = yaml_nodes.first_document("a: 1\nb:\n- x\n- c: y\n---\nother: document\n")
    assert yaml_nodes.text_of(yaml_nodes.get(root, "a")) == "1"
    first, second = yaml_nodes.items(yaml_nodes.get(root, "b"))
    assert (yaml_nodes.text_of(first), first.start_mark.line) == ("x", 2)
    assert yaml_nodes.text_of(yaml_nodes.get(second, "c")) == "y"
    assert yaml_nodes.get(root, "other") is None


def test_a_byte_order_mark_moves_no_place():
    with_mark = yaml_nodes.first_document("\ufeffa: 1\n")
    without = yaml_nodes.first_document("a: 1\n")
    places = [yaml_nodes.get(root, "a").start_mark.index for root in (with_mark, without)]
    assert places == [3, 3]


@pytest.mark.parametrize("text", ["", "# only a comment\n"])
def test_a_text_without_a_document_is_none(text):
    assert yaml_nodes.first_document(text) is None


@pytest.mark.parametrize("text", ["a: [", "a: b: c", "[" * 1100, "- " * 1100, "{a: " * 1100])
def test_what_is_no_yaml_or_too_deep_raises_and_ends_no_process(text):
    with pytest.raises(yaml_nodes.BROKEN):
        yaml_nodes.first_document(text)


def test_many_brackets_side_by_side_are_not_deep():
    root = yaml_nodes.first_document("[" + "[]," * 1100 + "[]]")
    assert len(list(yaml_nodes.items(root))) == 1101


def test_a_node_of_another_kind_has_no_keys_items_or_text():
    root = yaml_nodes.first_document("a: [x]\n")
    assert yaml_nodes.get(root, "a", "x") is None
    assert yaml_nodes.get(None, "a") is None
    assert list(yaml_nodes.items(root)) == []
    assert yaml_nodes.text_of(root) == ""
    assert yaml_nodes.text_of(None) == ""


@pytest.mark.parametrize(
    ("written", "is_nothing"),
    [("", True), ("~", True), ("null", True), ("'null'", False), ('""', False), ("nil", False)],
)
def test_nothing_is_a_plain_word_only(written, is_nothing):
    root = yaml_nodes.first_document(f"a: {written}\n")
    assert yaml_nodes.nothing(yaml_nodes.get(root, "a")) is is_nothing


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        (" Yes ", True),
        ("ON", True),
        ("y", True),
        ("False", False),
        ("off", False),
        ("n", False),
        ("1", None),
        ("t", None),
        ("", None),
    ],
)
def test_booleans_are_those_of_yaml_and_not_of_flags(text, value):
    assert yaml_nodes.boolean(text) is value
