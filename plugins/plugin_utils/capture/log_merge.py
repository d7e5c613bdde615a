# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The logs of several hosts as one, by the controller's clock.

Pure but for load(). What a node wrote is untrusted: a value of the wrong type is left out and said
to be, and text is escaped where it is shown. A clock that is off is corrected only beyond what the
round trip explains, and named.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ..evidence import document as evidence
from ..safe_io.text import escape

SCHEMA = "kubemend.logs/1"
STATUSES = ("ok", "absent", "denied", "error", "timeout")
TOLERANCE = 2.0  # seconds by which a clock may be off before anything is said or shifted
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
LAST = 253402300799.0  # the end of the year 9999
MAX_NOTES, MAX_NOTE = 50, 300  # notes of one source, characters of one note
NAMES_SHOWN = 20
WORDS = {
    "denied": "may not be read",
    "error": "could not be read",
    "timeout": "was not read in time",
}


@dataclass(frozen=True)
class Line:
    """One line of one component. time: seconds since the epoch on the controller's clock.

    Shifted where that host's is off.
    """

    time: float
    host: str
    component: str
    source: str = ""
    text: str = ""

    def key(self) -> tuple[float, str, str]:
        """What lines are sorted by; the rest keeps the order in which it was written."""
        return self.time, self.host, self.component


@dataclass(frozen=True)
class Clock:
    """How far a node's clock is ahead of the controller's.

    At least low, at most high, both in seconds.
    """

    low: float
    high: float

    @property
    def off(self) -> float:
        """Seconds to shift by: the middle, or 0 where the round trip alone may explain the
        difference.
        """
        nearest = 0.0 if self.low <= 0 <= self.high else min(abs(self.low), abs(self.high))
        return (self.low + self.high) / 2 if nearest > TOLERANCE else 0.0


def merge(documents: Iterable[Mapping[str, Any]]) -> list[Line]:
    """All lines by time, host and component.

    Lines of a host whose clock is off are shifted, which notices() says.
    """
    found = []
    for document in documents:
        if isinstance(document, Mapping):
            clock = clock_of(document)
            off = clock.off if clock else 0.0
            found += [
                line
                for item in _list(document.get("lines"))
                if (line := _line(_host(document), item, off))
            ]
    return sorted(found, key=Line.key)


def render(lines: Iterable[Line]) -> str:
    """One line each: time, host, component, text.

    Whatever could act on a terminal is spelled out.
    """
    rows = list(lines)
    host = max((len(escape(row.host)) for row in rows), default=0)
    component = max((len(escape(row.component)) for row in rows), default=0)
    return "".join(
        f"{stamp(row.time)} {escape(row.host):<{host}} {escape(row.component):<{component}} "
        f" {escape(row.text)}\n"
        for row in rows
    )


def notices(documents: Iterable[Mapping[str, Any]]) -> list[str]:
    """What a reader of the lines must know.

    Hosts without an answer, clocks that are off, and what sources did not give.
    """
    found: list[str] = []
    absent: dict[tuple[str, str], dict[str, None]] = {}
    for document in documents:
        if not isinstance(document, Mapping):
            found.append("A document is no object, and was left out.")
            continue
        found += _of_host(document)
        for component, note, sentence in _of_sources(document):
            if sentence:
                found.append(sentence)
            else:
                absent.setdefault((component, note), {})[_host(document)] = None
    found += [
        f"{component}: no log of {_names(list(hosts))} ({note})."
        for (component, note), hosts in sorted(absent.items())
    ]
    return list(dict.fromkeys(found))


def load(folder: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The documents of a folder, one in memory at a time.

    A file that is none is a document with status error.
    """
    for path in sorted(
        file for file in Path(folder).glob("*.json") if not file.name.startswith(".")
    ):
        yield _read(path)


def clock_of(document: Mapping[str, Any]) -> Clock | None:
    """How far the node's clock is ahead.

    None where its times or ours are missing, or contradict each other.

    The node's first reading came after we asked, its last before we had the answer: what lies
    between is the way.
    """
    values = [
        _number(document.get(name)) for name in ("asked_at", "clock_begin", "clock", "received_at")
    ]
    if None in values:
        return None
    asked, begin, end, received = [value for value in values if value is not None]
    low, high = end - received, begin - asked
    return Clock(low, high) if low <= high and begin <= end else None


def started(document: Mapping[str, Any], name: str) -> float | None:
    """Since when the node (`host`) or the component runs, by the controller's clock.

    None where it does not run, or nobody knows.
    """
    told, clock = document.get("started"), clock_of(document)
    since = _number(told.get(name)) if isinstance(told, Mapping) else None
    return None if since is None or not 0 < since < LAST else since - (clock.off if clock else 0.0)


def stamp(moment: float) -> str:
    """Seconds since the epoch as 2026-11-21T20:01:02.123456Z."""
    return (EPOCH + timedelta(microseconds=round(moment * 1e6))).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _read(path: Path) -> dict[str, Any]:
    host, reason = unquote(path.stem), "no JSON, or cut"
    try:
        if path.stat().st_size > evidence.MAX_SIZE:
            reason = f"more than {evidence.MAX_SIZE} bytes"
        else:
            document = json.loads(path.read_bytes())
            if isinstance(document, dict) and document.get("schema") == SCHEMA:
                return document
            reason = f"its schema is not {SCHEMA}"
    except OSError as error:
        reason = str(error.strerror)
    except (ValueError, RecursionError):
        pass
    return {
        "schema": SCHEMA,
        "host": host,
        "status": "error",
        "reason": f"{path.name}: {reason}",
        "sources": [],
        "lines": [],
    }


def _line(host: str, item: Any, off: float) -> Line | None:
    if not isinstance(item, Mapping):
        return None
    moment, component, text, source = (
        _number(item.get("time")),
        item.get("component"),
        item.get("text"),
        item.get("source"),
    )
    if (
        moment is None
        or not 0 <= moment - off <= LAST
        or not isinstance(component, str)
        or not isinstance(text, str)
    ):
        return None
    return Line(moment - off, host, component, source if isinstance(source, str) else "", text)


def _of_host(document: Mapping[str, Any]) -> list[str]:
    host, status = _host(document), document.get("status")
    if status != "ok":
        what = status if status in evidence.STATUSES else "of no known status"
        reason = evidence.one_line(document.get("reason") or "", evidence.MAX_REASON)
        return [f"{host}: {what}{': ' + reason if reason else ''}."]
    found = []
    clock, lines = clock_of(document), document.get("lines")
    if clock is None:
        found.append(
            f"{host}: how far its clock is off is not known; its lines bear its own times."
        )
    elif clock.off:
        ahead = "ahead of" if clock.off > 0 else "behind"
        found.append(
            f"{host}: its clock is {abs(clock.off):.1f} s {ahead} the controller's (give or take"
            f" {(clock.high - clock.low) / 2:.1f} s); its lines are shifted by {-clock.off:+.1f} s."
        )
    kept = [item for item in _list(lines) if _line(host, item, clock.off if clock else 0.0)]
    lost = len(_list(lines)) - len(kept) if isinstance(lines, list) else 1
    if lost:
        found.append(
            f"{host}: {lost if isinstance(lines, list) else 'all'} of its lines are of no known"
            " shape, and were left out."
        )
    return found


def _of_sources(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(component, note, sentence); no sentence for what is merely absent.

    That reads as one for all hosts.
    """
    host = _host(document)
    if document.get("status") == "ok" and not isinstance(document.get("sources"), list):
        yield "", "", f"{host}: what became of its sources is of no known shape."
    for item in _list(document.get("sources")):
        status = item.get("status") if isinstance(item, Mapping) else None
        if status not in STATUSES:
            yield "", "", f"{host}: what became of a source is of no known shape."
            continue
        component = evidence.one_line(item.get("component"), 60)
        notes = [
            evidence.one_line(note, MAX_NOTE)
            for note in _list(item.get("notes"))[:MAX_NOTES]
            if isinstance(note, str)
        ]
        if status == "absent":
            yield component, notes[0] if notes else "no reason was given", ""
            continue
        if status != "ok":
            notes.insert(0, WORDS[status])
        elif item.get("truncated") is True and not notes:
            notes.append("not all of it")
        for note in notes:
            yield (
                component,
                note,
                f"{host} {component}: {note} ({evidence.one_line(item.get('source'), 200)}).",
            )


def _names(hosts: list[str]) -> str:
    more = len(hosts) - NAMES_SHOWN
    return ", ".join(hosts[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _host(document: Mapping[str, Any]) -> str:
    host = document.get("host")
    return (
        evidence.one_line(host, 100) if isinstance(host, str) and host else "a host without a name"
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
