# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One line of a component's log, taken apart, in every generation of klog (1.18 to 1.36)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LONGEST = 16384
_HEADER = re.compile(r"(?:^|\s)[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ [^\s\]]+\] ?")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"(?:\s+|$)')
_FIELD = re.compile(r'([A-Za-z_][\w.-]*)=("(?:[^"\\]|\\.)*"|\[[^\]]*\]|&?\{[^}]*\}|\S+)')
_OWN = frozenset(("ts", "caller", "msg", "v"))


@dataclass(frozen=True)
class Line:
    """message: without header; fields: what a structured line says beside it, as texts; text.

    All of it but the header; time: epoch seconds.

    The time is that of the JSON format alone: the text format's has no year and no zone.
    """

    message: str
    fields: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    time: float | None = None

    def get(self, *names: str) -> str:
        """The first of these fields that is there, else an empty text."""
        return next((self.fields[name] for name in names if self.fields.get(name)), "")


def parse(text: str) -> Line:
    """What this line says: `I1121 20:01:02.113402 1 kubelet.go:1] "SyncLoop ADD" …`, the same
    unquoted, or JSON; a prefix may stand before it.
    """
    text = text[:LONGEST]
    header = _HEADER.search(text, 0, 512)
    if header is None:
        return _json(text) or Line(text.strip(), {}, text.strip())
    rest = text[header.end() :].strip()
    quoted = _QUOTED.match(rest)
    if quoted is None:
        return Line(rest, {}, rest)
    said = rest[quoted.end() :]
    fields = {name: _unquoted(value) for name, value in _FIELD.findall(said)}
    if said and not fields:  # an older line that begins with a quotation
        return Line(rest, {}, rest)
    return Line(_plain(quoted.group(1)), fields, rest)


def _json(text: str) -> Line | None:
    """A line of --logging-format=json; None where it is none."""
    begin = text.find('{"')
    if begin < 0:
        return None
    try:
        found = json.loads(text[begin:])
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("msg"), str):
        return None
    fields = {str(name): _text(value) for name, value in found.items() if name not in _OWN}
    said = " ".join((found["msg"], *(f"{name}={value}" for name, value in fields.items())))
    stamp = found.get("ts")
    seconds = stamp / 1000 if isinstance(stamp, (int, float)) and 0 < stamp < 10**15 else None
    return Line(found["msg"], fields, said, seconds)


def _text(value: Any) -> str:
    """A value of JSON as the text format has it.

    An object of the API as namespace/name, a list in brackets.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        return "/".join(str(value[key]) for key in ("namespace", "name") if value.get(key))
    if isinstance(value, list):
        return "[" + " ".join(_text(item) for item in value) + "]"
    return json.dumps(value, separators=(",", ":"))


def _unquoted(value: str) -> str:
    return _plain(value[1:-1]) if value.startswith('"') and len(value) > 1 else value


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: " " if match.group(1) in "nrt" else match.group(1), text)
