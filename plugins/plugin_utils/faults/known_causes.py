# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say in a finding what a message means that it quotes, where that message is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..evidence.document import one_line
from ..parsers import decode_error, known_message, path_error, pflag
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
        return with_rule(hit, texts, argv)
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


def with_rule(hit: Detection, texts: Sequence[str], argv: Sequence[str] = ()) -> Detection:
    """Return a hit with what the last words of a program mean by a rule of any program.

    Such a rule is about an error of the kernel with a path, or of a decoder.

    texts: what the hit quotes, what tells most first, of which only that one counts
    argv: the command line of the program, which may name the file
    """
    if not texts or TOLD in hit.summary:
        return hit
    text = known_message.plain(texts[0])
    error = path_error.find(text)
    decoded = decode_error.find(text)
    if error is not None:
        flag = pflag.naming(argv, error.path)
        source = f" (--{one_line(flag, 80)} names it)" if flag else ""
        return _told(hit, f"{error.clause}{source}", error.advice)
    if decoded is not None:
        return _told(hit, decoded.clause, decoded.advice)
    return hit


def _told(hit: Detection, clause: str, advice: str) -> Detection:
    return replace(
        hit,
        summary=f"{hit.summary}{TOLD}{clause[:1].upper()}{clause[1:]}",
        remedy=f"{advice}; {hit.remedy}",
    )
