# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Annotations of a GitHub workflow: one line on standard output for each group of findings.

Any line of the output that begins with `::` is a command to the runner, also one that a node
wrote: what else is printed stands within a fence, whose word nodes cannot know.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..models import result as model_result
from . import groups, phrases, text_findings, times
from .run_info import Run
from .text_page import cut, escape

COMMANDS = {"critical": "error", "warning": "warning", "info": "notice", "waived": "notice"}
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


def render(result: model_result.Result, run: Run) -> str:
    """Return the annotations, the most severe first; empty where nothing was found."""
    return "".join(line + "\n" for line in _lines(result, run))


def _lines(result: model_result.Result, run: Run) -> Iterator[str]:
    for group in groups.group(result.findings):
        first = group.first
        message = times.readable(groups.summary_of(group), None)
        if first.waived is not None:
            message = f"{phrases.waiver(first.waived)}; {message}"
        elif first.remedy:
            message += f"; fix: {groups.remedy_of(group)}"
        title = text_findings.head(group, run)
        if first.waived is not None:
            title = f"waived: {title}"
        yield (
            f"::{COMMANDS[first.state]} title={_quoted(title, _PROPERTY)}"
            f"::{_quoted(message, _DATA)}"
        )


def _quoted(text: str, replacements: dict[str, str]) -> str:
    return "".join(replacements.get(char, char) for char in cut(escape(text)))


def fence(report: str, word: str) -> str:
    """Return a text in which the runner takes no line as a command."""
    return f"::stop-commands::{word}\n{report.rstrip()}\n::{word}::\n"
