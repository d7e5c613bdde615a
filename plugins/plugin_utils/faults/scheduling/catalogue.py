# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faults of scheduling, KM201 to KM229."""

from __future__ import annotations

from ..base import Fault
from ..resource_managers import rejected_pods as admission

FAULTS = (
    Fault(
        code="KM205",
        title="Two schedulers place pods on one node",
        severity="critical",
        applies=(
            "nodes with rejected pods that asked for devices, CPUs, memory, huge pages or storage,"
            " or found no place"
        ),
        explanation=(
            "Schedulers count what they placed themselves and learn of each other's choices only"
            " when the pods are bound. Where pods of different schedulerName (the default one and a"
            " batch scheduler, say) ask for the same devices or CPUs of one node, both can hand out"
            " the last one, and the kubelet rejects the later pod."
        ),
        remedy=(
            "Give each scheduler nodes of its own, or place all pods with that resource by one of"
            " them."
        ),
        risk=0,
        cluster_needs=("rejected", "nodes"),
        cluster=admission.per_node(
            admission.two_schedulers, "rejected", "nodes", silent=admission.uncounted
        ),
    ),
)
