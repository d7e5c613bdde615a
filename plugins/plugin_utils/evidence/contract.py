# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a collector's answer as its type, and refuse one with values of another type.

`checked` is called once for each document, before any fault is evaluated: a collector with a
malformed value then counts as one that failed, so that each fault that needs it is unknown, with
the host, the collector and the path of the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from . import decode
from .answers import registry
from .decode import Decoded

MAX_PATHS = 5  # that a message names

Answer = TypeVar("Answer")
Document = Mapping[str, Any]
# Of each type the data that was decoded last: a document's faults read them one after the other.
# By identity, which the data keep as long as they are held here.
_LAST: dict[type, tuple[Any, Decoded[Any]]] = {}
_EMPTY: dict[type, Any] = {}  # of each type the answer without anything


def checked(document: Document) -> Document:
    """Return the document, its malformed collectors as failed ones; the same one without any."""
    collectors = document.get("collectors")
    if not isinstance(collectors, Mapping):
        return document
    kinds = registry.kinds_of(document)
    refused = {
        name: _refused(entry, malformed)
        for name, entry in collectors.items()
        if name in kinds and (malformed := _malformed(entry, kinds[name]))
    }
    if not refused:
        return document
    return {**document, "collectors": {**collectors, **refused}}


def answer(document: Document, kind: type[Answer]) -> Answer:
    """Return what a collector answered, or an empty answer where it did not."""
    entry = record(document, registry.COLLECTORS[kind])
    if entry.get("status") != "ok":
        return _empty(kind)
    return _answer_in(entry, kind)


def optional_answer(document: Document, kind: type[Answer]) -> Answer | None:
    """Return what a collector answered, None where it did not."""
    entry = record(document, registry.COLLECTORS[kind])
    if entry.get("status") != "ok" or not entry.get("data"):
        return None
    return _answer_in(entry, kind)


def partial_answer(document: Document, kind: type[Answer]) -> Answer:
    """Return what a collector knows, also where it could not answer everything."""
    return _answer_in(record(document, registry.COLLECTORS[kind]), kind)


def _answer_in(entry: Mapping[str, Any], kind: type[Answer]) -> Answer:
    data = entry.get("data")
    if data is None:
        return _empty(kind)
    return decoded(data, kind).answer


def _empty(kind: type[Answer]) -> Answer:
    """Return the answer of a collector that did not answer: one for all hosts."""
    if kind not in _EMPTY:
        _EMPTY[kind] = kind()
    nothing: Answer = _EMPTY[kind]
    return nothing


def decoded(data: Any, kind: type[Answer]) -> Decoded[Answer]:
    """Decode a collector's data, once for those that are asked for again."""
    last = _LAST.get(kind)
    if last is None or last[0] is not data:
        last = (data, decode.decode(kind, data))
        _LAST[kind] = last
    return last[1]


def record(document: Document, collector: str) -> Mapping[str, Any]:
    """Return a collector's record; empty where the document has none."""
    collectors = document.get("collectors")
    # dict comes first, as its test is the fast one
    if isinstance(collectors, (dict, Mapping)):
        entry = collectors.get(collector)
        if isinstance(entry, (dict, Mapping)):
            return entry
    return {}


def _malformed(entry: Any, kind: type) -> tuple[str, ...]:
    if not isinstance(entry, Mapping) or entry.get("data") is None:
        return ()
    _LAST.pop(kind, None)  # evidence may have changed since an earlier evaluation
    return decoded(entry["data"], kind).malformed


def _refused(entry: Mapping[str, Any], malformed: tuple[str, ...]) -> dict[str, Any]:
    """Return the record of a collector whose answer cannot be used."""
    named = ", ".join(malformed[:MAX_PATHS])
    if len(malformed) > MAX_PATHS:
        named += ", …"
    message = f"its answer has values of another type than expected: {named}"
    return {**entry, "status": "error", "data": None, "error": message}
