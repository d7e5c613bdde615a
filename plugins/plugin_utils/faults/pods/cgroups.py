# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM601: check that the kernel can still make memory cgroups."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ....module_utils.shared.text import counted
from ...evidence import contract
from ...evidence.answers.node.pressure import Pressure
from ...evidence.answers.node.system import System
from ...evidence.document import one_line
from ...models.cluster import Host
from ...models.result import EvidenceRef, Missing
from ..base import CLEAR, CheckResult, Detection, node_check, not_applicable, present, unknown

# MEM_CGROUP_ID_MAX of the kernel; up to 4.7 an id is held until nothing is charged to the cgroup
# any more, which kernel memory of 3.10 never is.
MOST, NEARLY = 65535, 0.8
FREES = (4, 8)


@node_check(
    "KM601",
    "No more memory cgroups can be made",
    severity="critical",
    applies="nodes whose kernel counts memory cgroups",
    needs=("system", "pressure"),
)
def used_up(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM601: report a kernel that has as many memory cgroups as it can have, or nearly."""
    missing = [*host.missing("pressure"), *host.missing("system")]
    cgroups = contract.answer(document, Pressure).cgroups
    system = contract.answer(document, System)
    if missing:
        yield unknown(*missing)
    elif host.statuses.get("pressure") == "absent":
        yield not_applicable("no kubelet")
    elif cgroups is None:  # an older release collected
        yield unknown(Missing(host.host, "pressure", "not_asked"))
    elif cgroups.memory is None:
        yield not_applicable("its memory cgroups are not counted")
    else:
        yield _judged(host, cgroups.memory, system)


def _judged(host: Host, number: int, system: System) -> CheckResult:
    """Return the result by the number of cgroups.

    The limit is that of both versions (measured: 6.1 of Debian 12). Version 2 counts cgroups
    without the memory controller as well, so that there may be more than the limit.
    """
    kernel, is_unified = system.kernel or "", system.cgroup == "v2"
    is_full = number >= MOST - 16 and (is_unified or number <= MOST)
    is_near = _leaks(kernel) and NEARLY * MOST <= number <= MOST
    if not is_full and not is_near:
        return CLEAR
    if is_unified:
        return present(_unified_hit(host, number))
    return present(_hit(host, number, kernel, is_full))


def _leaks(kernel: str) -> bool:
    """Tell whether this kernel holds the id of a memory cgroup that is gone."""
    match = re.match(r"(\d+)\.(\d+)", kernel)
    return match is not None and (int(match.group(1)), int(match.group(2))) < FREES


def _unified_hit(host: Host, number: int) -> Detection:
    return Detection(
        f"{counted(number, 'cgroup')} exist, and the kernel can have {MOST} with a memory"
        " controller: no pod"
        ' and no container can start. The kernel says "no space left on device"; that is not the'
        " disk",
        (EvidenceRef("file", host.host, path="/proc/cgroups", text=f"memory: {number}"),),
        "find what leaves them: find /sys/fs/cgroup -type d | sed 's|/[^/]*$||' | sort | uniq -c |"
        " sort -n | tail; rmdir those that are empty, or drain and reboot the node",
        host=host.host,
        node=host.node,
    )


def _hit(host: Host, number: int, kernel: str, is_full: bool) -> Detection:
    state = f"{number} of {MOST} memory cgroups exist"
    if is_full:
        state += ", which is the most: no pod and no container can start"
    else:
        state += ", and its kernel does not free them: soon no pod starts there"
    return Detection(
        f'{state}. The kernel says "no space left on device" or "cannot allocate memory"; that is'
        " neither the disk nor the memory",
        (EvidenceRef("file", host.host, path="/proc/cgroups", text=f"memory: {number}"),),
        f"drain and reboot the node; its kernel ({one_line(kernel, 80)}) leaks them with kernel"
        " memory accounting: a newer kernel does not, nor a runc without kmem (build tag nokmem),"
        " or cgroup.memory=nokmem on the kernel's command line",
        host=host.host,
        node=host.node,
        severity=None if is_full else "warning",
    )
