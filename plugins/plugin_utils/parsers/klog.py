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
_ESCAPED = {
    "n": " ",
    "r": " ",
    "t": " ",
}  # any other character behind a backslash stands for itself


@dataclass(frozen=True)
class Line:
    """Line of a log.

    message: the line without its header
    fields: the fields of a structured line, as texts
    text: all of it but the header
    time: epoch seconds, of the JSON format alone: the text format has no year and no zone
    """

    message: str
    fields: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    time: float | None = None

    def get(self, *names: str) -> str:
        """Return the first of these fields that is not empty, else an empty text."""
        return next((self.fields[name] for name in names if self.fields.get(name)), "")


def parse(text: str) -> Line:
    """Parse a line of klog's text format, structured or not, or of its JSON format.

    Example: `I1121 20:01:02.113402 1 kubelet.go:1] "SyncLoop ADD" …`. A prefix may stand before it.
    """
    text = text[:LONGEST]
    header = _HEADER.search(text, 0, 512)
    if header is None:
        return _json(text) or Line(text.strip(), {}, text.strip())
    rest = text[header.end() :].strip()
    quoted = _QUOTED.match(rest)
    if quoted is None:
        return Line(rest, {}, rest)
    pairs = rest[quoted.end() :]
    fields = {name: _unquoted(value) for name, value in _FIELD.findall(pairs)}
    if pairs and not fields:  # an older line that begins with a quotation
        return Line(rest, {}, rest)
    return Line(_plain(quoted.group(1)), fields, rest)


def _json(text: str) -> Line | None:
    """Parse a line of --logging-format=json; return None if it is none."""
    begin = text.find('{"')
    if begin < 0:
        return None
    try:
        record = json.loads(text[begin:])
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not isinstance(record.get("msg"), str):
        return None
    fields = {str(name): _text(value) for name, value in record.items() if name not in _OWN}
    line = " ".join((record["msg"], *(f"{name}={value}" for name, value in fields.items())))
    return Line(record["msg"], fields, line, _seconds(record.get("ts")))


def _seconds(stamp: Any) -> float | None:
    if isinstance(stamp, (int, float)) and 0 < stamp < 10**15:
        return stamp / 1000
    return None


def _text(value: Any) -> str:
    """Return a value of JSON as the text format writes it.

    An object of the API is written as namespace/name, a list in brackets.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        return "/".join(str(value[key]) for key in ("namespace", "name") if value.get(key))
    if isinstance(value, list):
        return "[" + " ".join(_text(item) for item in value) + "]"
    return json.dumps(value, separators=(",", ":"))


def _unquoted(value: str) -> str:
    if value.startswith('"') and len(value) > 1:
        return _plain(value[1:-1])
    return value


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPED.get(match.group(1), match.group(1)), text)
