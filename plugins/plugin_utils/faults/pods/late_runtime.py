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


def with_signs(hit: Detection, main: Waiting, host: Host | None) -> Detection:
    """Return a hit with what may keep the runtime of a node from its work, where that shows."""
    if host is None or main.trouble is None:
        return hit
    if pod_start_message.base(main.trouble.kind) not in (RESERVED, DEADLINE):
        return hit
    work = host.runtime_work
    signs = "; ".join(clause for clause, _proof in work.of_storage)
    clause = ""
    if signs:
        clause = f"; the node shows: {signs}"
    elif work.mounts_answer and _CONTAINER in main.text:
        clause = (
            "; no remote mount of the node is without an answer, so that its disk is the first to"
            " look at"
        )
    proofs = (proof for _clause, proof in work.of_storage)
    return replace(hit, summary=f"{hit.summary}{clause}", evidence=(*hit.evidence, *proofs))
