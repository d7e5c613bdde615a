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
    """No set of CPUs, in one clause."""


def parse(text: str) -> CPUs:
    """The set that a list names; empty for an empty text.

    Spaces around parts are allowed, as the kernel and the kubelet allow them.
    """
    found: set[int] = set()
    if not text.strip():
        return frozenset()
    for part in text.strip().split(","):
        match = _PART.match(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last or last >= MOST:
            raise CpusetError(f"{part.strip()[:40]!r} is no CPU and no range of CPUs")
        found.update(range(first, last + 1))
    return frozenset(found)


def text(cpus: Iterable[int]) -> str:
    """The canonical list of a set, as the kubelet writes it into its state."""
    parts: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if parts and parts[-1][1] == cpu - 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
