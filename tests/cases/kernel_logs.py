# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macro of what the kernel of a node said in the last hour."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import kernel_log
from ansible_collections.kubemend.remediation.plugins.module_utils.logs.memory_kills import (
    MemoryKills,
)

from .cluster import BuildError, Evidence


def kernel_says(
    evidence: Evidence, host: str, lines: Iterable[str], times: int = 1, ago: float = 300
) -> None:
    """Let the kernel have said these lines so often, last so many seconds ago.

    The lines go through the collector's own function, which may know none of them.
    """
    booted = evidence.now - 86400
    texts = [line.encode() for line in lines]
    records = []
    for number in range(times):
        stamp = int((evidence.now - ago - 10 * (times - 1 - number) - booted) * 1e6)
        records += [b"4,%d,%d,-;%s\n" % (len(records), stamp, text) for text in texts]
    kills = MemoryKills()
    rows, _oldest, is_cut = kernel_log.read(
        iter(records), booted, evidence.now - kernel_log.WINDOW, kills
    )
    if not texts:
        raise BuildError("the kernel says nothing")
    evidence.data(host, "kernel_log").update(
        rows=rows, since=evidence.now - kernel_log.WINDOW, cut=is_cut, kills=kills.rows
    )
