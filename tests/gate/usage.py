# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where the time of a run goes: the share of idle CPU, and the slowest tests."""

from __future__ import annotations

import pathlib
import xml.etree.ElementTree
from collections.abc import Iterable

STAT = pathlib.Path("/proc/stat")


def ticks(path: pathlib.Path = STAT) -> tuple[int, int] | None:
    """Read the idle ticks and all ticks of all CPUs since the boot.

    The result is None where there is no such file.
    """
    try:
        first = path.read_text(encoding="ascii").splitlines()[0].split()
    except (OSError, IndexError):
        return None
    # user nice system idle iowait irq softirq steal; what follows is part of user and nice
    numbers = [int(word) for word in first[1:9]]
    return (numbers[3] + numbers[4], sum(numbers))


def idle_share(before: tuple[int, int] | None, after: tuple[int, int] | None) -> float | None:
    """Give the share of idle CPU between two readings, from 0 to 1."""
    if before is None or after is None or after[1] <= before[1]:
        return None
    return (after[0] - before[0]) / (after[1] - before[1])


def slowest(records: Iterable[pathlib.Path], count: int = 10) -> list[tuple[float, str]]:
    """List the slowest tests of pytest's records, with their seconds, slowest first."""
    found: list[tuple[float, str]] = []
    for path in records:
        try:
            cases = xml.etree.ElementTree.parse(path).iter("testcase")
        except (OSError, xml.etree.ElementTree.ParseError):
            continue
        for case in cases:
            name = "{}::{}".format(case.get("classname", ""), case.get("name", ""))
            found.append((float(case.get("time") or 0), name))
    return sorted(found, reverse=True)[:count]
