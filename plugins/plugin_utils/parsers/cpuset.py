# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets of CPUs as Linux and the kubelet write them: 0-3,8,10-11. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

CPUs = frozenset[int]
MOST = 1 << 16  # no machine has more; a range of a hostile file must not fill the memory
_PART = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?\Z")


class CpusetError(ValueError):
    """A text that is no set of CPUs, in one clause."""


def parse(text: str) -> CPUs:
    """Return the set that a list names; empty for an empty text.

    Spaces around parts are allowed, as the kernel and the kubelet allow them.
    """
    cpus: set[int] = set()
    if not text.strip():
        return frozenset()
    for part in text.strip().split(","):
        cpus.update(_range(part.strip()))
    return frozenset(cpus)


def _range(part: str) -> range:
    match = _PART.match(part)
    if match:
        first, last = int(match[1]), int(match[2] or match[1])
        if first <= last < MOST:
            return range(first, last + 1)
    raise CpusetError(f"{part[:40]!r} is no CPU and no range of CPUs")


def text(cpus: Iterable[int]) -> str:
    """Return the canonical list of a set, as the kubelet writes it into its state."""
    ranges: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join("-".join(dict.fromkeys(map(str, bounds))) for bounds in ranges)
