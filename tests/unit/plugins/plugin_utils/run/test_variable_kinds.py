# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinds of values: what is read, and what an argument spec says of it."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import variable_kinds


def test_a_number_has_its_bounds_in_the_message_and_on_the_page():
    kind = variable_kinds.number(1, 5)
    assert (kind.type, kind.allowed, kind.choices) == ("int", "1 to 5", ())
    assert [kind.parse(value) for value in (1, "5")] == [1, 5]
    for value in (0, 6, "x", 2.5, True, None):
        with pytest.raises(variable_kinds.BadValue, match="1 to 5"):
            kind.parse(value)


def test_choices_are_those_that_are_read():
    several, word = variable_kinds.some_of("a", "b"), variable_kinds.one_of("a", "b")
    assert (several.type, several.choices) == ("list", ("a", "b"))
    assert (word.type, word.choices) == ("str", ("a", "b"))
    assert several.parse("a, b") == ("a", "b")
    assert word.parse(" a ") == "a"
    for kind, value in ((several, ["c"]), (word, "c"), (word, True)):
        with pytest.raises(variable_kinds.BadValue, match="a, b"):
            kind.parse(value)
    with pytest.raises(variable_kinds.BadValue):
        variable_kinds.some_of("a", empty=False).parse([])


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (variable_kinds.CPUS, "none", ""),
        (variable_kinds.CPUS, 4, "4"),
        (variable_kinds.PATHS, "/a,b", ("/a,b",)),
        (variable_kinds.FAULTS, "all", None),
        (variable_kinds.POD, "ns/pod", "ns/pod"),
        (variable_kinds.RUN_ID, "last", "last"),
        (variable_kinds.HOST_PATTERN, ["m1", "m2"], "m1:m2"),
        (variable_kinds.BOOLEAN, "no", False),
    ],
)
def test_values_are_read(kind, value, expected):
    assert kind.parse(value) == expected
