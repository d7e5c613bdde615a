# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say in a finding what a message means that it quotes, where that message is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..parsers import known_message
from ..parsers.known_message import Known
from .base import Detection


def explained(
    hit: Detection,
    places: Iterable[str],
    texts: Iterable[str],
    release: str | None = None,
    *,
    is_of_program: bool = False,
) -> Detection:
    """Return a hit with the known cause of what it quotes, and what to do about that.

    A message with a known cause is more than an information.

    places: who says it (known_message)
    texts: what it quotes, what tells most first
    release: that of the program that says it, None where it is not known
    is_of_program: whether the hit is about that program, which no workload keeps from its work
    """
    row = known_message.first(places, texts, release, is_of_program=is_of_program)
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
        summary=f"{hit.summary}. Known cause: {row.cause}",
        remedy=f"{row.advice}; {hit.remedy}",
    )
