# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of faults: every literal, by code."""

from __future__ import annotations

from . import kubemend_runs as run
from .base import Fault
from .control_plane import catalogue as control_plane
from .control_plane import writes_refused as no_writes
from .limits import catalogue as limits
from .node import (
    api_node as node_api,
)
from .node import (
    boot as node_boot,
)
from .node import (
    cgroup_driver as node_cgroups,
)
from .node import (
    clock as node_clock,
)
from .node import (
    container_runtime as node_runtime,
)
from .node import (
    firewall as node_firewall,
)
from .node import (
    heartbeat as node_way,
)
from .node import (
    identity as node_identity,
)
from .node import (
    kubelet_catalogue as kubelet,
)
from .node import (
    kubelet_unit as nodes,
)
from .node import (
    swap as node_swap,
)
from .resource_managers import catalogue as managers
from .resource_managers import cpu_pinning as pinning
from .scheduling import (
    catalogue as scheduling,
)
from .scheduling import (
    lost_nodes as scheduling_tree,
)
from .scheduling import (
    not_queued as scheduling_turn,
)
from .scheduling import (
    unschedulable as scheduling_pending,
)


def _catalogue(*groups: tuple[Fault, ...]) -> dict[str, Fault]:
    found: dict[str, Fault] = {}
    for fault in (fault for group in groups for fault in group):
        if fault.code in found:
            raise ValueError(f"fault code {fault.code} is used twice")
        found[fault.code] = no_writes.standing(fault)
    return dict(sorted(found.items()))


CATALOGUE = _catalogue(
    *(
        module.FAULTS
        for module in (
            control_plane,
            kubelet,
            limits,
            managers,
            no_writes,
            node_api,
            node_boot,
            node_cgroups,
            node_clock,
            node_firewall,
            node_identity,
            node_runtime,
            node_swap,
            node_way,
            nodes,
            pinning,
            run,
            scheduling,
            scheduling_pending,
            scheduling_tree,
            scheduling_turn,
        )
    )
)
