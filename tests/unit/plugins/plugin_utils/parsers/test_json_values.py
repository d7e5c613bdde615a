# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A value of another type counts as absent."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import json_values

OTHERS = (None, True, 1.5, b"bytes", {1, 2})


@pytest.mark.parametrize("value", [*OTHERS, "text", 7, [1]])
def test_a_value_that_is_no_mapping_is_an_empty_one(value):
    assert json_values.mapping(value) == {}


@pytest.mark.parametrize("value", [*OTHERS, "text", 7, {"a": 1}])
def test_a_value_that_is_no_list_has_no_items(value):
    assert list(json_values.items(value)) == []
    assert json_values.mappings(value) == json_values.texts(value) == []


def test_items_of_another_type_are_skipped():
    value = [{"a": 1}, "text", None, 7]
    assert json_values.mappings(value) == [{"a": 1}]
    assert json_values.texts(tuple(value)) == ["text"]
    assert json_values.items(value) == value
    assert json_values.mapping({"a": 1}) == {"a": 1}


@pytest.mark.parametrize(("value", "text"), [("text", "text"), (None, ""), (7, ""), (b"x", "")])
def test_text(value, text):
    assert json_values.text(value) == text


@pytest.mark.parametrize(
    ("value", "number"), [(7, 7), (0, 0), (-1, -1), (True, None), ("7", None), (1.0, None)]
)
def test_a_truth_value_is_no_whole_number(value, number):
    assert json_values.whole_number(value) == number
