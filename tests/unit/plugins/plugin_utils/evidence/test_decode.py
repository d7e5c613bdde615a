# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Any JSON becomes a typed value, or the paths of what is of another type."""

# pylint: disable=unidiomatic-typecheck
from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import registry

KINDS = {**registry.NODE, **registry.CLUSTER}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)


@dataclass(frozen=True)
class Inner:
    """A value within another."""

    size: int = 0
    name: str | None = None


@dataclass(frozen=True)
class Outer:
    """Every kind of field."""

    text: str = "default"
    on: bool | None = None
    share: float = 0.5
    call: int | str | None = None
    pair: tuple[int, int] | None = None
    names: tuple[str, ...] = ()
    rows: tuple[tuple[str, int | None], ...] = ()
    inner: Inner | None = None
    several: tuple[Inner, ...] = ()
    labels: Mapping[str, str] | None = None
    by_name: Mapping[str, Inner] | None = None
    assertion: bool = decode.named("assert", False)


def shaped(draw, kind):
    """Give a JSON value that a type may have, with keys of its own: what a collector could send."""
    if dataclasses.is_dataclass(kind):
        hints = decode.hints(kind)
        return {
            decode.key_of(entry): draw(values(hints[entry.name]))
            for entry in dataclasses.fields(kind)
            if draw(st.booleans())
        }
    return draw(JSON)


@st.composite
def values(draw, hint):
    arguments = [one for one in typing.get_args(hint) if one is not type(None)]
    if typing.get_origin(hint) is tuple and arguments[-1:] == [...]:
        return draw(st.lists(values(arguments[0]), max_size=2) | JSON)
    if typing.get_origin(hint) is tuple:
        return [draw(values(argument)) for argument in arguments]
    if typing.get_origin(hint) is Mapping:
        return draw(st.dictionaries(st.text(max_size=5), values(arguments[1]), max_size=2) | JSON)
    if len(arguments) == 1:
        return draw(values(arguments[0]) | st.none())
    if draw(st.integers(0, 3)) == 0:
        return draw(JSON)
    return shaped(draw, hint)


def is_typed(value, hint):
    """Tell whether a value is of a type, independent of the decoder."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(is_typed(value, argument) for argument in arguments)
    if origin is tuple and arguments[-1] is ...:
        return type(value) is tuple and all(is_typed(item, arguments[0]) for item in value)
    if origin is tuple:
        return (
            type(value) is tuple
            and len(value) == len(arguments)
            and all(map(is_typed, value, arguments))
        )
    if origin is Mapping:
        return isinstance(value, dict) and all(
            type(key) is str and is_typed(item, arguments[1]) for key, item in value.items()
        )
    if dataclasses.is_dataclass(hint):
        return type(value) is hint and all(
            is_typed(getattr(value, entry.name), decode.hints(hint)[entry.name])
            for entry in dataclasses.fields(hint)
        )
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint


@given(st.sampled_from([Outer, *KINDS.values()]), st.data())
@settings(max_examples=400)
def test_any_json_gives_a_typed_value(kind, data):
    value = data.draw(JSON | values(kind))
    decoded = decode.decode(kind, value)
    assert is_typed(decoded.answer, kind)
    assert len(decoded.malformed) <= decode.MAX_MALFORMED
    assert hash(decoded.malformed) is not None


@given(st.sampled_from([Outer, *KINDS.values()]), st.data())
def test_what_is_encoded_is_decoded_to_the_same_value(kind, data):
    answer = decode.decode(kind, data.draw(values(kind))).answer
    encoded = decode.encode(answer)
    assert decode.decode(kind, json.loads(json.dumps(encoded))) == decode.Decoded(answer)


@given(values(Outer))
def test_a_value_without_malformed_paths_comes_back_as_it_was(value):
    decoded = decode.decode(Outer, value)
    if not decoded.malformed:
        for entry in dataclasses.fields(Outer):
            key = decode.key_of(entry)
            if key in value:
                assert plain(getattr(decoded.answer, entry.name), value[key]) == value[key]
            else:
                assert getattr(decoded.answer, entry.name) == entry.default


def plain(value: Any, raw: Any) -> Any:
    """Give the JSON of a decoded value, with the keys that only the raw one has."""
    if dataclasses.is_dataclass(value):
        names = {decode.key_of(entry): entry.name for entry in dataclasses.fields(value)}
        return {
            key: plain(getattr(value, names[key]), item) if key in names else item
            for key, item in raw.items()
        }
    if isinstance(value, tuple):
        return [plain(item, part) for item, part in zip(value, raw, strict=True)]
    if isinstance(value, dict):
        return {key: plain(item, raw[key]) for key, item in value.items()}
    return value


@pytest.mark.parametrize(
    ("value", "answer", "malformed"),
    [
        ({}, Outer(), ()),
        ({"text": "x", "unheard": {"of": 1}}, Outer(text="x"), ()),
        (None, Outer(), ("data",)),
        ([], Outer(), ("data",)),
        ({"text": None}, Outer(), ("text",)),
        ({"text": 7, "on": "yes"}, Outer(), ("text", "on")),
        ({"on": None, "call": "down", "share": 3}, Outer(call="down", share=3), ()),
        ({"call": True, "share": True}, Outer(), ("share", "call")),
        ({"call": 2**64, "share": 1e308}, Outer(call=2**64, share=1e308), ()),
        (
            {"call": 10**400, "share": float("inf"), "pair": [1, -(10**400)]},
            Outer(),
            ("share", "call", "pair[1]"),
        ),
        ({"share": float("nan")}, Outer(), ("share",)),
        ({"pair": [1, 2], "names": ["a"]}, Outer(pair=(1, 2), names=("a",)), ()),
        ({"pair": [1, 2, 3]}, Outer(), ("pair",)),
        ({"pair": [1, "2"]}, Outer(), ("pair[1]",)),
        ({"names": ["a", 7, None, "b"]}, Outer(names=("a", "b")), ("names[1]", "names[2]")),
        ({"names": "abc"}, Outer(), ("names",)),
        ({"rows": [["a", None], ["b"], 7]}, Outer(rows=(("a", None),)), ("rows[1]", "rows[2]")),
        ({"inner": {"size": 3}}, Outer(inner=Inner(3)), ()),
        ({"inner": {"size": "3", "name": "n"}}, Outer(inner=Inner(0, "n")), ("inner.size",)),
        ({"inner": []}, Outer(), ("inner",)),
        (
            {"several": [{"size": 1}, None, {"name": 7}]},
            Outer(several=(Inner(1), Inner())),
            ("several[1]", "several[2].name"),
        ),
        (
            {"labels": {"a": "b", "c": 7}, "by_name": {"x": {"size": []}}},
            Outer(labels={"a": "b"}, by_name={"x": Inner()}),
            ("labels.c", "by_name.x.size"),
        ),
        ({"labels": []}, Outer(), ("labels",)),
        ({"labels": {"\x1b[2J" * 30: 7}}, Outer(labels={}), ("labels." + "\\x1b[2J" * 10,)),
        ({"assert": True}, Outer(assertion=True), ()),
        ({"assertion": True}, Outer(), ()),
    ],
)
def test_each_kind_of_value(value, answer, malformed):
    assert decode.decode(Outer, value) == decode.Decoded(answer, malformed)


def test_what_is_nested_without_an_end_is_malformed():
    nested: dict[str, Any] = {}
    for _depth in range(100000):
        nested = {"units": [{"needs": [nested]}], "needs": [nested]}
    decoded = decode.decode(KINDS["unit_start"], nested)
    assert decoded.answer == KINDS["unit_start"]()
    assert decoded.malformed == ("data",)


def test_only_so_many_paths_are_kept():
    assert len(decode.decode(Outer, {"names": [7] * 1000}).malformed) == decode.MAX_MALFORMED


@pytest.mark.parametrize("hint", [list, dict[str, str], int | tuple[int, ...], object, Any])
def test_a_type_that_no_json_has_is_refused(hint):
    with pytest.raises(TypeError):
        decode.decoder(hint)


def records(hints: list[Any]) -> list[type]:
    """Return the dataclasses within these types of evidence, themselves included."""
    found: dict[type, None] = {}
    while hints:
        hint = hints.pop()
        if not dataclasses.is_dataclass(hint):
            hints.extend(typing.get_args(hint))
        elif hint not in found:
            found[hint] = None
            hints.extend(decode.hints(hint).values())
    return sorted(found, key=lambda kind: (kind.__module__, kind.__qualname__))


RECORDS = records(list(KINDS.values()))


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__qualname__)
def test_a_record_without_a_value_has_the_default_of_each_field(kind):
    decoded = decode.decode(kind, {})
    assert decoded.malformed == ()
    assert decode.encode(decoded.answer) == decode.encode(kind())
