# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The logs of several hosts as one, by the controller's clock.

All functions but load() are pure. What a node wrote is untrusted: a value of the wrong type is left
out, a sentence says so, and text is escaped where it is shown. A clock that is off is corrected
only beyond what the round trip explains, and named.
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

from ..evidence import document as evidence_document
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
    """One line of one component.

    time: seconds since the epoch on the controller's clock, shifted where that host's is off.
    """

    time: float
    host: str
    component: str
    source: str = ""
    text: str = ""

    def key(self) -> tuple[float, str, str]:
        """Return what lines are sorted by; equal ones keep the order in which they were written."""
        return self.time, self.host, self.component


@dataclass(frozen=True)
class Clock:
    """By how many seconds a node's clock is ahead of the controller's.

    low: the least that it can be
    high: the most that it can be
    """

    low: float
    high: float

    @property
    def off(self) -> float:
        """Return the seconds to shift by.

        That is the middle, or 0 where the round trip may explain the difference.
        """
        if self.low <= 0 <= self.high:
            return 0.0
        nearest = min(abs(self.low), abs(self.high))
        return (self.low + self.high) / 2 if nearest > TOLERANCE else 0.0


def merge(documents: Iterable[Mapping[str, Any]]) -> list[Line]:
    """Return all lines by time, host and component.

    Lines of a host whose clock is off are shifted, which notices() says.
    """
    all_lines = []
    for document in documents:
        if isinstance(document, Mapping):
            host, off = _host(document), _off(document)
            lines = [_line(host, item, off) for item in _list(document.get("lines"))]
            all_lines += [line for line in lines if line]
    return sorted(all_lines, key=Line.key)


def _off(document: Mapping[str, Any]) -> float:
    """Return the seconds by which a document's lines are shifted."""
    clock = clock_of(document)
    return clock.off if clock else 0.0


def render(lines: Iterable[Line]) -> str:
    """Return one line each: time, host, component, text.

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
    """Return what a reader of the lines must know.

    Hosts without an answer, clocks that are off, and what sources did not give.
    """
    sentences: list[str] = []
    absent: dict[tuple[str, str], dict[str, None]] = {}
    for document in documents:
        if not isinstance(document, Mapping):
            sentences.append("A document is no object, and was left out.")
            continue
        sentences += _host_notices(document)
        for component, note, sentence in _source_notices(document):
            if sentence:
                sentences.append(sentence)
            else:
                absent.setdefault((component, note), {})[_host(document)] = None
    sentences += [
        f"{component}: no log of {_names(list(hosts))} ({note})."
        for (component, note), hosts in sorted(absent.items())
    ]
    return list(dict.fromkeys(sentences))


def load(folder: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yield the documents of a directory, one in memory at a time.

    A file that is none is a document with status error.
    """
    for path in sorted(Path(folder).glob("*.json")):
        if not path.name.startswith("."):
            yield _read(path)


def clock_of(document: Mapping[str, Any]) -> Clock | None:
    """Return how far the node's clock is ahead.

    The result is None where its times or the controller's are missing, or contradict each other.
    The node's first reading came after the request and its last before the answer. The difference
    is the round trip.
    """
    values = [
        _number(document.get(name)) for name in ("asked_at", "clock_begin", "clock", "received_at")
    ]
    if None in values:
        return None
    request_time, begin, end, received = [value for value in values if value is not None]
    low, high = end - received, begin - request_time
    if low > high or begin > end:
        return None
    return Clock(low, high)


def started(document: Mapping[str, Any], name: str) -> float | None:
    """Return since when the node (`host`) or the component runs, by the controller's clock.

    The result is None where it does not run, or where that is unknown.
    """
    times = document.get("started")
    since = _number(times.get(name)) if isinstance(times, Mapping) else None
    if since is None or not 0 < since < LAST:
        return None
    return since - _off(document)


def stamp(moment: float) -> str:
    """Return seconds since the epoch as 2026-11-21T20:01:02.123456Z."""
    return (EPOCH + timedelta(microseconds=round(moment * 1e6))).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _read(path: Path) -> dict[str, Any]:
    host, reason = unquote(path.stem), "no JSON, or cut"
    try:
        if path.stat().st_size > evidence_document.MAX_SIZE:
            reason = f"more than {evidence_document.MAX_SIZE} bytes"
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
    """Return a line of a document, or None where its shape is not known."""
    if not isinstance(item, Mapping):
        return None
    moment, component, text = _number(item.get("time")), item.get("component"), item.get("text")
    if moment is None or not 0 <= moment - off <= LAST:
        return None
    if not isinstance(component, str) or not isinstance(text, str):
        return None
    source = item.get("source")
    return Line(moment - off, host, component, source if isinstance(source, str) else "", text)


def _host_notices(document: Mapping[str, Any]) -> list[str]:
    """Return sentences about a host's status, clock and lines."""
    host, status = _host(document), document.get("status")
    if status != "ok":
        state = status if status in evidence_document.STATUSES else "of no known status"
        reason = evidence_document.one_line(
            document.get("reason") or "", evidence_document.MAX_REASON
        )
        return [f"{host}: {state}: {reason}." if reason else f"{host}: {state}."]
    sentences = [_clock_notice(host, clock_of(document)), _lines_notice(host, document)]
    return [sentence for sentence in sentences if sentence]


def _clock_notice(host: str, clock: Clock | None) -> str:
    """Return a sentence about a clock that is off or unknown, else an empty text."""
    if clock is None:
        return f"{host}: how far its clock is off is not known; its lines bear its own times."
    if not clock.off:
        return ""
    ahead = "ahead of" if clock.off > 0 else "behind"
    return (
        f"{host}: its clock is {abs(clock.off):.1f} s {ahead} the controller's (give or take"
        f" {(clock.high - clock.low) / 2:.1f} s); its lines are shifted by {-clock.off:+.1f} s."
    )


def _lines_notice(host: str, document: Mapping[str, Any]) -> str:
    """Return a sentence about lines that were left out, else an empty text."""
    lines = document.get("lines")
    lost: int | str = "all"
    if isinstance(lines, list):
        off = _off(document)
        lost = sum(_line(host, item, off) is None for item in lines)
    if not lost:
        return ""
    return f"{host}: {lost} of its lines left out, because their shape is not known."


def _source_notices(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (component, note, sentence) of each source of a host that was not read in full.

    A source that is merely absent has no sentence of its own. One sentence covers it for all hosts.
    """
    host = _host(document)
    if document.get("status") == "ok" and not isinstance(document.get("sources"), list):
        yield "", "", f"{host}: what became of its sources is of no known shape."
    for item in _list(document.get("sources")):
        yield from _notices_of_source(host, item)


def _notices_of_source(host: str, item: Any) -> Iterator[tuple[str, str, str]]:
    """Yield (component, note, sentence) of one source."""
    status = item.get("status") if isinstance(item, Mapping) else None
    if status not in STATUSES:
        yield "", "", f"{host}: what became of a source is of no known shape."
        return
    component = evidence_document.one_line(item.get("component"), 60)
    notes = _notes(item)
    if status == "absent":
        yield component, notes[0] if notes else "no reason was given", ""
        return
    if status != "ok":
        notes.insert(0, WORDS[status])
    elif item.get("truncated") is True and not notes:
        notes.append("not all of it")
    source = evidence_document.one_line(item.get("source"), 200)
    for note in notes:
        yield component, note, f"{host} {component}: {note} ({source})."


def _notes(item: Mapping[str, Any]) -> list[str]:
    notes = _list(item.get("notes"))[:MAX_NOTES]
    return [evidence_document.one_line(note, MAX_NOTE) for note in notes if isinstance(note, str)]


def _names(hosts: list[str]) -> str:
    more = len(hosts) - NAMES_SHOWN
    return ", ".join(hosts[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _host(document: Mapping[str, Any]) -> str:
    host = document.get("host")
    if not isinstance(host, str) or not host:
        return "a host without a name"
    return evidence_document.one_line(host, 100)


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
