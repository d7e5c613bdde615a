# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Known messages that take a program for too old, compared with the releases of the node. Pure.

A program often names a release where a trial of its own fails, whatever the reason. Each line of
known_ages.tsv says what a row of the known messages means where its program is not that old:

    id        the row
    program   what the row takes for too old: `kernel`, or a container runtime by its name
    before    the first release that is new enough; {group} stands for a group of the row's pattern
    cause     what is wrong then, empty where nothing is known of it: the row does not count;
              {running} stands for the release that the node has
    advice    what to do then

A row with several lines counts unless each program that is known is new enough.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from . import release_number

TABLE = Path(__file__).with_name("known_ages.tsv")
COLUMNS = ("id", "program", "before", "cause", "advice")
KERNEL = "kernel"
# Programs with their releases, as the evidence of a node has them.
Versions = tuple[tuple[str, str], ...]
_GROUP = re.compile(r"\{([a-z_]{1,20})\}")


@dataclass(frozen=True)
class Age:
    """What a row means where a program is not as old as the row says."""

    program: str
    before: str
    cause: str
    advice: str

    def is_new_enough(self, match: re.Match[str], version: str) -> bool:
        """Tell whether this release of the program is not older than the message wants it."""
        limit = _GROUP.sub(lambda group: match.group(group.group(1)) or "", self.before)
        least, number = release_number.parse(limit), release_number.parse(version)
        return least is not None and number is not None and number >= least


@functools.cache
def table() -> Mapping[str, tuple[Age, ...]]:
    """Return the lines of each row, by its id."""
    rows: dict[str, list[Age]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]:
        name, *columns = line.split("\t")
        rows.setdefault(name, []).append(Age(*columns))
    return {name: tuple(ages) for name, ages in rows.items()}


def refuted(name: str, match: re.Match[str], versions: Versions) -> Age | None:
    """Return the line of a row by which no program of the node is too old, or None."""
    releases = dict(versions)
    ages = [age for age in table().get(name, ()) if age.program in releases]
    if not ages or not all(age.is_new_enough(match, releases[age.program]) for age in ages):
        return None
    age = ages[0]
    return replace(age, cause=age.cause.replace("{running}", releases[age.program]))
