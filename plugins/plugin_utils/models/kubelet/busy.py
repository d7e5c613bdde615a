# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a kubelet that runs answers its own health check, and what keeps it from that. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...evidence import contract
from ...evidence.answers.node.kubelet import Kubelet
from ...evidence.answers.node.pressure import Pressure
from ...evidence.answers.node.system import System
from ...evidence.document import one_line
from ..result import EvidenceRef

UNIFIED, LATE = "v2", "timed out"
# A full node has some hundred: those of 110 pods, of their QoS classes and of services.
MANY_CGROUPS = 2000
ADVICE = (
    "see what the kubelet does (top -H -p $(pgrep -o kubelet), journalctl -u kubelet), and whether"
    " a call to the runtime never ends (crictl ps)"
)
CGROUPS_ADVICE = (
    "compare find /sys/fs/cgroup/memory/kubepods* -type d | wc -l with crictl ps -q | wc -l: where"
    " many cgroups are of pods that are gone, boot the drained node with cgroup v2"
    " (systemd.unified_cgroup_hierarchy=1 on the kernel's command line), for which such cgroups are"
    " no burden; a reboot alone removes them for a while, and fewer short pods (CronJobs) leave"
    " fewer"
)


@dataclass(frozen=True)
class Busy:
    """Why a kubelet that runs does not answer, as a clause; empty where it answers."""

    clause: str = ""
    advice: str = ""
    proofs: tuple[EvidenceRef, ...] = ()


def extract(document: Mapping[str, Any]) -> Busy:
    """Return what a node shows of a kubelet that does not answer its health check in time."""
    kubelet = contract.answer(document, Kubelet)
    healthz = kubelet.healthz
    if kubelet.process is None or healthz is None or LATE not in (healthz.error or ""):
        return Busy()
    error = one_line(healthz.error or "", 100)
    place = one_line(healthz.url or "healthz", 100)
    proof = EvidenceRef("http", document["host"], object=place, text=error)
    clause = f"its own healthz does not answer in time ({error})"
    number = _walked(document)
    if number < MANY_CGROUPS:
        return Busy(clause, ADVICE, (proof,))
    text = f"memory: {number}"
    return Busy(
        f"{clause}: {number} memory cgroups exist, and with cgroup v1 its statistics walk through"
        " all of them, also through those that ended pods left",
        CGROUPS_ADVICE,
        (proof, EvidenceRef("file", document["host"], path="/proc/cgroups", text=text)),
    )


def _walked(document: Mapping[str, Any]) -> int:
    """Return how many memory cgroups a kubelet walks through, 0 where that is not known."""
    version = contract.answer(document, System).cgroup
    cgroups = contract.answer(document, Pressure).cgroups
    if version in (None, "", UNIFIED) or cgroups is None:
        return 0
    return cgroups.memory or 0
