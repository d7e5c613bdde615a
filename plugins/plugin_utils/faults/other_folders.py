# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say in a finding that a node has other folders than the program which it quotes looks into."""

from __future__ import annotations

from dataclasses import replace

from ..models.cluster import Host
from ..models.kubelet_root import Root
from .base import Detection


def with_root(hit: Detection, root: Root | None) -> Detection:
    """Return a hit with what the other folder of a kubelet means for it, if it has one."""
    if root is None:
        return hit
    return replace(
        hit,
        summary=f"{hit.summary}; {root.clause}",
        evidence=(*hit.evidence, root.proof),
        remedy=f"{root.advice}; {hit.remedy}",
    )


def with_cni(hit: Detection, host: Host | None, text: str) -> Detection:
    """Return a hit with what other folders of the CNI mean for the message that it quotes."""
    if host is None:
        return hit
    return with_meaning(hit, host.cni_folders.clause(text))


def with_meaning(hit: Detection, meaning: tuple[str, str] | None) -> Detection:
    """Return a hit with a clause and its advice, where there are any."""
    clause, advice = meaning or ("", "")
    if not clause:
        return hit
    return replace(hit, summary=f"{hit.summary}; {clause}", remedy=f"{advice}; {hit.remedy}")
