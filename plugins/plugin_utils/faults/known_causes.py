# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say in a finding what a message means that it quotes, where that message is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..evidence.document import one_line
from ..parsers import known_message, path_error, pflag
from ..parsers.known_message import Known
from .base import Detection

TOLD = ". Known cause: "


def explained(
    hit: Detection,
    places: Iterable[str],
    texts: Iterable[str],
    release: str | None = None,
    *,
    is_of_program: bool = False,
    argv: Sequence[str] = (),
) -> Detection:
    """Return a hit with the known cause of what it quotes, and what to do about that.

    A message with a known cause is more than an information.

    places: who says it (known_message)
    texts: what it quotes, what tells most first
    release: that of the program that says it, None where it is not known
    is_of_program: whether the hit is about that program, which no workload keeps from its work
    argv: its command line, which may name the file of an error
    """
    texts = [text for text in texts if text]
    row = known_message.first(places, texts, release, is_of_program=is_of_program)
    if row is None and is_of_program:
        return with_file(hit, texts, argv)
    return with_cause(hit, row)


def with_cause(hit: Detection, row: Known | None) -> Detection:
    """Return a hit with this cause, once."""
    if row is None:
        return hit
    if hit.severity == "info":
        hit = replace(hit, severity="warning")
    if row.clause in hit.summary:
        return hit
    return replace(
        hit,
        summary=f"{hit.summary}{TOLD}{row.cause}",
        remedy=f"{row.advice}; {hit.remedy}",
    )


def with_file(hit: Detection, texts: Sequence[str], argv: Sequence[str] = ()) -> Detection:
    """Return a hit with what the error about a file means that ended a program, if there is one.

    texts: what the hit quotes, what tells most first, of which only that one counts
    argv: the command line of the program, which may name the file
    """
    error = path_error.find(known_message.plain(texts[0])) if texts else None
    if error is None or TOLD in hit.summary:
        return hit
    flag = pflag.naming(argv, error.path)
    source = f" (--{one_line(flag, 80)} names it)" if flag else ""
    return replace(
        hit,
        summary=f"{hit.summary}{TOLD}{error.clause[:1].upper()}{error.clause[1:]}{source}",
        remedy=f"{error.advice}; {hit.remedy}",
    )
