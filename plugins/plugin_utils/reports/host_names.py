# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of host names as a reader wants them: sorted naturally, runs of numbers as ranges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..models.natural_order import DIGITS, NUMBER, natural

ITEMS_SHOWN = 8  # names and ranges in one line
RUN = 4  # fewer names are shorter than a range


def join(names: Iterable[str], shown: int = ITEMS_SHOWN) -> str:
    """Join sorted names with ranges: "m1, w1-w60"; count what does not fit."""
    parts, hidden = listed(names, shown)
    text = ", ".join(parts)
    if hidden:
        return f"{text} and {hidden} more"
    return text


def listed(names: Iterable[str], shown: int) -> tuple[list[str], int]:
    """Return the first sorted names and ranges, and the number of names that do not fit."""
    runs = list(_runs(sorted(set(names), key=natural)))
    return [_run_text(run) for run in runs[:shown]], sum(map(len, runs[shown:]))


def counted(names: Iterable[str], shown: int = ITEMS_SHOWN) -> str:
    """Join names, followed by their number where a range or a cut hides it."""
    unique = set(names)
    text = join(unique, shown)
    if len(unique) < RUN:
        return text
    return f"{text} ({len(unique)} hosts)"


def _runs(ordered: Sequence[str]) -> Iterator[list[str]]:
    """Yield names whose numbers follow each other together, every other name alone."""
    run: list[str] = []
    step = -1
    for name in ordered:
        place = _next_place(run[-1], name) if run else -1
        if run and place >= 0 and step in (-1, place):
            run.append(name)
            step = place
            continue
        yield from _folded(run)
        run, step = [name], -1
    yield from _folded(run)


def _folded(run: list[str]) -> Iterator[list[str]]:
    if len(run) >= RUN:
        yield run
    else:
        yield from ([name] for name in run)


def _next_place(first: str, second: str) -> int:
    """Return the part of two names whose number grows by one, if nothing else differs; else -1."""
    old, new = NUMBER.split(first), NUMBER.split(second)
    if len(old) != len(new):
        return -1
    differing = [index for index, part in enumerate(old) if part != new[index]]
    if len(differing) != 1 or differing[0] % 2 == 0:
        return -1
    number, following = old[differing[0]], new[differing[0]]
    if max(len(number), len(following) - 1) > DIGITS or int(following) != int(number) + 1:
        return -1
    if (number[0] == "0" or following[0] == "0") and len(number) != len(following):
        return -1  # w09 and w10 belong together, w9 and w010 do not
    return differing[0]


def _run_text(run: Sequence[str]) -> str:
    if len(run) == 1:
        return run[0]
    if "-" in run[0]:
        return f"{run[0]} to {run[-1]}"
    return f"{run[0]}-{run[-1]}"
