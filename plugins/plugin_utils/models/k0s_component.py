# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A component that k0s starts and that ends, while the unit of k0s runs. Pure.

k0s starts each component as a process of its own, and again where it ends. Its unit runs all that
time; the line with which a component ended stands in the journal of that unit with its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..parsers import component_log, message_table
from .kubelet import status as kubelet_status

PROGRAM = "k0s"
# k0s starts a component again within seconds: what is older was another time.
RECENT_SECONDS = 300
# What a program of Kubernetes writes as it ends: cobra and klog.
_ENDS = re.compile(r'msg="(?:Error: |F\d{4} |E\d{4} [^"]{0,200}?\\?"command failed)')
_COMPONENT = re.compile(r"\bcomponent=\"?([\w-]{1,60})")


@dataclass(frozen=True)
class Ended:
    """The newest line with which a component ended, without what journald adds."""

    component: str
    line: str


def ended(lines: Sequence[str], clock: float | None, running: Iterable[str]) -> Ended | None:
    """Return the component that ended last and does not run, or None.

    lines: of the journal of k0s; running: components of which a process runs
    """
    names = frozenset(running)
    for line in reversed(lines):
        end = _of(line, clock)
        if end is not None and end.component not in names:
            return end
    return None


def _of(line: str, clock: float | None) -> Ended | None:
    """Return what a line tells of a component that ended of late, or None."""
    named, at = _COMPONENT.search(line), kubelet_status.moment(line)
    if named is None or clock is None or at is None:
        return None
    component = named.group(1)
    is_late = -RECENT_SECONDS <= clock - at <= RECENT_SECONDS
    if not is_late or component not in message_table.COMPONENTS or not _ENDS.search(line):
        return None
    return Ended(component, line.partition("]: ")[2])


def message(end: Ended) -> str:
    """Return with which words a component ended."""
    return component_log.text(end.line)
