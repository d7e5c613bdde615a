# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say in a finding what a message means that it quotes, where that message is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..models.denied_file import Denial
from ..parsers import known_message, plain_error
from ..parsers.known_age import Versions
from ..parsers.known_message import Known
from . import program_settings
from .base import Detection

TOLD = ". Known cause: "


class Source(NamedTuple):
    """Where a program has its settings: its command line, its unit or container, and its node.

    versions: those of the kernel and the runtime of that node, where they are known
    is_ruled: whether rules of any program count for its last line
    """

    argv: Sequence[str] = ()
    name: str | None = None
    versions: Versions = ()
    is_ruled: bool = True


UNKNOWN = Source()


def explained(
    hit: Detection,
    places: Iterable[str],
    texts: Iterable[str],
    release: str | None = None,
    *,
    is_of_program: bool = False,
    source: Source = UNKNOWN,
) -> Detection:
    """Return a hit with the known cause of what it quotes, and what to do about that.

    A message with a known cause is more than an information.

    places: who says it (known_message)
    texts: what it quotes, what tells most first
    release: that of the program that says it, None where it is not known
    is_of_program: whether the hit is about that program, which no workload keeps from its work
    source: where that program has its settings
    """
    texts = [text for text in texts if text]
    row = known_message.first(
        places, texts, release, is_of_program=is_of_program, versions=source.versions
    )
    if row is None and is_of_program and source.is_ruled:
        # a message with a cause of a workload tells nothing of the program's own files
        is_of_workload = known_message.first(places, texts[:1], release) is not None
        return hit if is_of_workload else with_rule(hit, texts, source)
    return with_cause(hit, row)


def with_cause(hit: Detection, row: Known | None) -> Detection:
    """Return a hit with this cause, once."""
    if row is None:
        return hit
    if hit.severity == "info":
        hit = replace(hit, severity="warning")
    if row.clause in hit.summary or row.cause in hit.summary:
        return hit
    return replace(
        hit,
        summary=f"{hit.summary}{TOLD}{row.cause}",
        remedy=f"{row.advice}; {hit.remedy}",
    )


def with_rule(hit: Detection, texts: Sequence[str], source: Source = UNKNOWN) -> Detection:
    """Return a hit with what the last line of a program means by rules of any program.

    texts: what the hit quotes, what tells most first, of which only that one counts
    source: where the program has its settings
    """
    if not texts or TOLD in hit.summary or hit.severity == "info":
        return hit
    settings = program_settings.place(source.name or "")
    return with_cause(hit, plain_error.of_program(texts[0], settings, source.argv))


def with_denial(hit: Detection, denial: Denial) -> Detection:
    """Return a hit with what denies a file to a program that runs as root, where that is known."""
    if not denial.sentence:
        return hit
    summary = f"{hit.summary}. {denial.sentence}"
    remedy = "; ".join(filter(None, (denial.advice, hit.remedy)))
    return replace(hit, summary=summary, remedy=remedy)
