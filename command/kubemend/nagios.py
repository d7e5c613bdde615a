# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of a run as a plugin of Nagios prints it: one line, and a code from 0 to 3."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

STATES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
OK, WARNING, CRITICAL, UNKNOWN = range(4)
SHOWN = 5  # findings in the line
WIDEST = 500  # characters of the line, without the figures
REASONS = ("ok", "threshold")  # of runs whose counts say it all
_LAST_LINE = re.compile(r"^kubemend: [0-9]+ hosts?, .*; report: (?P<folder>.+)$", re.MULTILINE)
_MESSAGE = re.compile(r'"msg": ("(?:[^"\\]|\\.)*")')


def line(code: int, text: str) -> tuple[int, str]:
    """Return (code, line) of a run by its exit code and by what it printed."""
    report = _report(text)
    if report is None:
        return UNKNOWN, _line(UNKNOWN, _message(text) or f"the run ended with {code} and no report")
    try:
        return _of_report(report)
    except (KeyError, TypeError, ValueError):
        return UNKNOWN, _line(UNKNOWN, "report.json is not of this version")


def unknown(message: str) -> str:
    """Return the line of a run that did not begin."""
    return _line(UNKNOWN, message)


def _report(text: str) -> Mapping[str, Any] | None:
    """Return the report that the last line of a run names."""
    folders = [match["folder"].strip() for match in _LAST_LINE.finditer(text)]
    if not folders:
        return None
    try:
        report = json.loads((Path(folders[-1]) / "report.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return report if isinstance(report, dict) else None


def _message(text: str) -> str:
    """Return the sentence of a run that failed."""
    messages = _MESSAGE.findall(text)
    return str(json.loads(messages[-1], strict=False)) if messages else ""


def _of_report(report: Mapping[str, Any]) -> tuple[int, str]:
    summary = report["summary"]
    counts = {name: int(summary[name]) for name in ("critical", "warning", "unknown")}
    counts["hosts"] = sum(row["status"] != "not_asked" for row in report["hosts"])
    state = OK
    if counts["unknown"] or report["exit_reason"] not in REASONS:
        state = UNKNOWN
    if counts["warning"]:
        state = WARNING
    if counts["critical"]:
        state = CRITICAL
    noun = "host" if counts["hosts"] == 1 else "hosts"
    text = ", ".join(
        [f"{counts['hosts']} {noun}", *(f"{counts[name]} {name}" for name in list(counts)[:3])]
    )
    places = _places(report["findings"])
    if places:
        text += f": {places}"
    data = " ".join(f"{name}={count};;;0" for name, count in counts.items())
    return state, f"{_line(state, text)} | {data}"


def _places(findings: list[Mapping[str, Any]]) -> str:
    """Return code and place of the worst findings that count."""
    places = []
    for severity in ("critical", "warning"):
        for row in findings:
            if row["severity"] == severity and "waived" not in row:
                place = (row["code"], row["host"] or row["node"], row["component"])
                places.append(" ".join(str(part) for part in place if part))
    places = list(dict.fromkeys(places))
    if len(places) > SHOWN:
        places[SHOWN:] = [f"and {len(places) - SHOWN} more"]
    return ", ".join(places)


def _line(state: int, text: str) -> str:
    # What follows a bar are the figures.
    plain = "".join(char if char.isprintable() else " " for char in text.replace("|", "/"))
    return f"KUBEMEND {STATES[state]} - {plain[:WIDEST]}"
