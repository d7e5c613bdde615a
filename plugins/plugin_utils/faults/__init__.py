# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: the catalogue of faults: every literal, by code."""

from __future__ import annotations

from .control_plane import catalogue as control_plane, writes_refused as no_writes
from .node import kubelet_catalogue as kubelet, api_node as node_api, boot as node_boot, cgroup_driver as node_cgroups, clock as node_clock, firewall as node_firewall, identity as node_identity, container_runtime as node_runtime, swap as node_swap, heartbeat as node_way, kubelet_unit as nodes
from .limits import catalogue as limits
from .resource_managers import catalogue as managers, cpu_pinning as pinning
from . import kubemend_runs as run
from .scheduling import catalogue as scheduling, unschedulable as scheduling_pending, lost_nodes as scheduling_tree, not_queued as scheduling_turn
from .base import Fault


def _catalogue(*groups: tuple[Fault, ...]) -> dict[str, Fault]:
    found: dict[str, Fault] = {}
    for fault in (fault for group in groups for fault in group):
        if fault.code in found:
            raise ValueError(f"fault code {fault.code} is used twice")
        found[fault.code] = no_writes.standing(fault)
    return dict(sorted(found.items()))


CATALOGUE = _catalogue(*(module.FAULTS for module in (
    control_plane, kubelet, limits, managers, no_writes, node_api, node_boot, node_cgroups, node_clock, node_firewall, node_identity, node_runtime, node_swap,
    node_way, nodes, pinning, run, scheduling, scheduling_pending, scheduling_tree, scheduling_turn)))
