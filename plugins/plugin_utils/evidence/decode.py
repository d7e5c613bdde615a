# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decode JSON that a node or an API wrote into frozen dataclasses.

A type is a scalar, a union of scalars, `T | None`, `tuple[T, ...]`, `tuple[A, B]`,
`Mapping[str, T]` or a dataclass of such fields; every field has a default. A value of another type
becomes its field's default, an item of another type is dropped, and the path of each is kept. Keys
that the dataclass does not have are ignored: another release may send them.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

MAX_MALFORMED = 20  # paths that are kept
MAX_INTEGER = 2**64
MAX_KEY = 40  # characters of a mapping's key in a path
MISSING = object()
KEY = "key"  # of a field's metadata: its name in JSON

Answer = TypeVar("Answer")
Path = tuple[Any, ...]  # (the path of the parent, its key or index); () for the answer itself
Decoder = Callable[[Any, Path, "Report"], Any]


@dataclass(frozen=True)
class Decoded(Generic[Answer]):
    """A typed answer, and the paths of the values that were of another type."""

    answer: Answer
    malformed: tuple[str, ...] = ()


@dataclass
class Report:
    """Collects the paths of malformed values, the first MAX_MALFORMED of them."""

    paths: list[str] = field(default_factory=list)

    def add(self, path: Path) -> Any:
        """Note a malformed value, and return what stands for it."""
        if len(self.paths) < MAX_MALFORMED:
            self.paths.append(_text(path))
        return MISSING


def named(key: str, default: Any) -> Any:
    """Return a field whose name in JSON is no identifier, or a word of Python's."""
    return field(  # pylint: disable=invalid-field-call
        default=default, metadata={KEY: key}
    )


def decode(kind: type[Answer], value: Any) -> Decoded[Answer]:
    """Decode a JSON value; never raises, whatever the value is."""
    report = Report()
    try:
        answer = decoder(typing.cast(Hashable, kind))(value, (), report)
    except RecursionError:
        answer = report.add(())
    if answer is MISSING:
        answer = kind()
    return Decoded(answer, tuple(report.paths))


def encode(value: Any) -> Any:
    """Return the JSON value that is decoded to this one."""
    if dataclasses.is_dataclass(value):
        entries = dataclasses.fields(value)
        return {key_of(entry): encode(getattr(value, entry.name)) for entry in entries}
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    return value


def key_of(entry: dataclasses.Field[Any]) -> str:
    """Return the name of a dataclass's field in JSON."""
    return str(entry.metadata.get(KEY, entry.name))


@functools.cache
def hints(kind: type) -> dict[str, Any]:
    """Return the types of a dataclass's fields."""
    return typing.get_type_hints(kind)


@functools.cache
def decoder(kind: Hashable) -> Decoder:
    """Return the decoder of a type; made once, when its first value comes."""
    scalars = scalars_of(kind)
    if scalars:
        return _scalar(scalars)
    origin = typing.get_origin(kind)
    arguments = typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _optional(decoder(_only(kind, arguments)))
    if origin is tuple and arguments[-1:] == (...,):
        return _sequence(decoder(arguments[0]), plain_of(arguments[0]))
    if origin is tuple:
        return _row(tuple(decoder(argument) for argument in arguments))
    if origin is Mapping:
        return _mapping(decoder(arguments[1]))
    if dataclasses.is_dataclass(kind):
        return _record(kind)
    raise TypeError(f"evidence has no values of type {kind!r}")


def scalars_of(kind: Any) -> frozenset[type]:
    """Return the types of JSON scalars that a hint allows; empty where it is no scalar."""
    if kind is float:
        return frozenset((int, float))
    if kind in (bool, int, str, types.NoneType):
        return frozenset((kind,))
    if typing.get_origin(kind) not in (typing.Union, types.UnionType):
        return frozenset()
    parts = [scalars_of(argument) for argument in typing.get_args(kind)]
    if not all(parts):
        return frozenset()
    return frozenset().union(*parts)


def plain_of(kind: Any) -> frozenset[type]:
    """Return the scalar types whose every value fits: texts, booleans and none."""
    return scalars_of(kind) - {int, float}


def _only(kind: Any, arguments: tuple[Any, ...]) -> Any:
    """Return the type of `T | None`."""
    inner = [argument for argument in arguments if argument is not types.NoneType]
    if len(inner) != 1:
        raise TypeError(f"evidence has no union like {kind!r}")
    return inner[0]


def _scalar(accepted: frozenset[type]) -> Decoder:
    def read(value: Any, path: Path, report: Report) -> Any:
        kind = type(value)
        if kind not in accepted:
            return report.add(path)
        # a number must be one that a node can mean: 1e999 is JSON too
        if kind is int and not -MAX_INTEGER <= value <= MAX_INTEGER:
            return report.add(path)
        if kind is float and not math.isfinite(value):
            return report.add(path)
        return value

    return read


def _optional(inner: Decoder) -> Decoder:
    def read(value: Any, path: Path, report: Report) -> Any:
        if value is None:
            return None
        return inner(value, path, report)

    return read


def _sequence(inner: Decoder, plain: frozenset[type]) -> Decoder:
    def read(value: Any, path: Path, report: Report) -> Any:
        if type(value) not in (list, tuple):
            return report.add(path)
        if plain.issuperset(map(type, value)):
            return tuple(value)
        items = [inner(item, (path, index), report) for index, item in enumerate(value)]
        return tuple(item for item in items if item is not MISSING)

    return read


def _row(inner: tuple[Decoder, ...]) -> Decoder:
    def read(value: Any, path: Path, report: Report) -> Any:
        if type(value) not in (list, tuple) or len(value) != len(inner):
            return report.add(path)
        items = [
            read_item(item, (path, index), report)
            for index, (read_item, item) in enumerate(zip(inner, value, strict=True))
        ]
        if any(item is MISSING for item in items):
            return MISSING
        return tuple(items)

    return read


def _mapping(inner: Decoder) -> Decoder:
    def read(value: Any, path: Path, report: Report) -> Any:
        if not isinstance(value, Mapping):
            return report.add(path)
        entries = {str(key): inner(item, (path, key), report) for key, item in value.items()}
        return {key: item for key, item in entries.items() if item is not MISSING}

    return read


class _Entry(typing.NamedTuple):
    """One field of a dataclass, as its decoder needs it."""

    key: str
    name: str
    plain: frozenset[type]
    read: Decoder


def _entry(entry: dataclasses.Field[Any], hint: Any) -> _Entry:
    return _Entry(key_of(entry), entry.name, plain_of(hint), decoder(hint))


def _record(kind: Any) -> Decoder:
    """Return the decoder of a dataclass; those of its fields are made at the first value."""
    entries: list[_Entry] = []
    fields = dataclasses.fields(kind)
    factories: list[tuple[str, Any]] = [
        (each.name, each.default_factory)
        for each in fields
        if each.default_factory is not dataclasses.MISSING
    ]

    def read(value: Any, path: Path, report: Report) -> Any:
        if not isinstance(value, (dict, Mapping)):
            return report.add(path)
        if not entries:
            types_of = hints(kind)
            entries.extend(_entry(each, types_of[each.name]) for each in fields)
        answer = object.__new__(kind)  # a field that is not set is the class's default
        values = answer.__dict__
        for name, make in factories:  # the class has no default of such a field
            values[name] = make()
        for key, name, plain, read_item in entries:
            item = value.get(key, MISSING)
            if item is MISSING:
                continue
            if type(item) not in plain:
                item = read_item(item, (path, key), report)
            if item is not MISSING:
                values[name] = item
        return answer

    return read


def _text(path: Path) -> str:
    """Write a path from the answer to a value."""
    keys: list[Any] = []
    while path:
        path, key = path
        keys.append(key)
    return written(reversed(keys))


def written(keys: Iterable[Any]) -> str:
    """Write keys and indexes as `processes[3].pid`; the answer itself is `data`."""
    return "".join(map(_step, keys)).removeprefix(".") or "data"


def _step(key: Any) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return "." + ascii(str(key)[:MAX_KEY])[1:-1]
