# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say in a finding what a node shows of a runtime that does not make its pods in time."""

from __future__ import annotations

from dataclasses import replace

from ...models.cluster import Host
from ...models.pod_start import Waiting
from ...parsers import pod_start_message
from ...parsers.pod_start_message import DEADLINE, RESERVED
from ..base import Detection

_CONTAINER = "failed to reserve container name"
# CRI-O waits for eight minutes at most while another attempt works, and the kubelet for less.
DEAD_SECONDS = 900
_OF_CRIO = "error reserving "
_LEFT = (
    "journalctl -u crio -g 'not yet finished|cleanup' on the node says at which stage CRI-O still"
    " works on it (network: see the network plugin and its program in ps; storage: the disk)."
    " Without such a line in the last minutes, systemctl restart crio, which leaves containers"
    " running and forgets the name, and delete the pod"
)


def with_signs(hit: Detection, main: Waiting, host: Host | None) -> Detection:
    """Return a hit with what may keep the runtime of a node from its work, where that shows."""
    if host is None or main.trouble is None:
        return hit
    if pod_start_message.base(main.trouble.kind) not in (RESERVED, DEADLINE):
        return hit
    work = host.runtime_work
    signs = "; ".join(clause for clause, _proof in work.of_storage)
    if signs:
        proofs = (proof for _clause, proof in work.of_storage)
        summary = f"{hit.summary}; the node shows: {signs}"
        return replace(hit, summary=summary, evidence=(*hit.evidence, *proofs))
    if not work.mounts_answer:
        return hit
    if _CONTAINER in main.text:
        clause = (
            "; no remote mount of the node is without an answer, so that its disk is the first to"
            " look at"
        )
        return replace(hit, summary=f"{hit.summary}{clause}")
    if _is_left(main):
        return _with_left_name(hit)
    return hit


def _is_left(main: Waiting) -> bool:
    """Tell whether CRI-O refuses a name for so long that no attempt may still work on it.

    A known message says of its attempt what CRI-O knows: at which stage it is, or that it is gone.
    """
    is_plain = main.trouble is not None and main.trouble.kind == RESERVED
    return is_plain and _OF_CRIO in main.text and main.late(DEAD_SECONDS) > 0


def _with_left_name(hit: Detection) -> Detection:
    """Return a hit that says that the name is left, where the node shows nothing that waits."""
    clause = (
        "; no process of the runtime, no disk and no remote mount of the node waits, so that CRI-O"
        " most likely keeps the name of an attempt that has ended"
    )
    return replace(hit, summary=f"{hit.summary}{clause}", remedy=f"{_LEFT}; {hit.remedy}")
