# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which functions a program of Go panicked, by the stack that it prints. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

SHOWN = 4  # functions, the one that panicked first
_PANIC = re.compile(r"\s*(?:panic|fatal error): ")
# A function with its package and its arguments, alone on its line.
_FUNCTION = re.compile(
    r"(?P<package>[\w.@~-]{1,80}(?:/[\w.@~-]{1,80}){0,20}?)"
    r"\.(?P<name>(?:\(\*?\w{1,80}\)\.)?[\w.]{1,120})"
    r"\([^)\n]{0,600}\)?(?:\.\.\.)?$"
)
# What each panic has, and says nothing of its reason.
_OF_ALL = re.compile(
    r"runtime|runtime/\w{1,20}|main|.{0,200}\bapimachinery/pkg/util/(?:runtime|wait)"
)


def functions(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the functions of the last panic, each with the end of its package, outermost last."""
    begin = max((number for number, line in enumerate(lines) if _PANIC.match(line)), default=-1)
    if begin < 0:
        return ()
    frames = filter(None, map(_function, lines[begin + 1 :]))
    return tuple(dict.fromkeys(frames))[:SHOWN]


def clause(quoted: str, lines: Sequence[str]) -> str:
    """Return where a program panicked whose quoted line is a panic, as a clause, or ""."""
    names = functions(lines) if _PANIC.match(quoted) else ()
    if not names:
        return ""
    callers = f", called by {', '.join(names[1:])}" if len(names) > 1 else ""
    return f", in {names[0]}{callers}"


def _function(line: str) -> str:
    """Return the function of a line of a stack, "" where it is of each panic, or none."""
    match = _FUNCTION.match(line[:900].rstrip())
    if match is None or _OF_ALL.fullmatch(match.group("package")):
        return ""
    return f"{match.group('package').rpartition('/')[2]}.{match.group('name')}"
