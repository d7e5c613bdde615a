# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Register every check and build the catalogue of faults.

A new check needs no entry here, a new module with checks needs its import.
"""

# ruff: noqa: F401 - importing a module registers its checks

from __future__ import annotations

from . import kubemend_runs
from .base import catalogue
from .control_plane import (
    admission,
    api_address,
    api_server,
    authorities,
    certificate_names,
    certificate_trust,
    certificates,
    component_proxy,
    etcd_quorum,
    etcd_space,
    etcd_speed,
    kubeconfigs,
    leader_election,
    manifests,
    members,
    object_events,
    restarts,
    services,
    shared_keys,
    signing,
    static_pod_volumes,
    static_pods,
    writes_refused,
)
from .limits import kernel, process
from .node import (
    api_node,
    automatic_upgrades,
    boot,
    cgroup_driver,
    clock,
    connection,
    container_runtime,
    failed_units,
    firewall,
    heartbeat,
    identity,
    kernel_log,
    known_defects,
    kubelet_down,
    kubelet_next_configuration,
    kubelet_program,
    kubelet_unit,
    machine,
    network,
    network_settings,
    network_tables,
    next_boot,
    next_program_start,
    node_events,
    pod_networks,
    pod_resolver,
    repeated_errors,
    swap,
    taints,
)
from .pods import (
    cgroups,
    cni,
    hangs,
    node_pods,
    pod_errors,
    pod_states,
    sandbox_image,
    system_pods,
    unready_pods,
    version_skew,
    volumes,
)
from .resource_managers import (
    live_cpusets,
    rejected_pods,
    state_files,
    unpinned_pods,
)
from .scheduling import lost_nodes, not_queued, unschedulable
from .upgrade import disruption_budgets, machines, refusals, skew

CATALOGUE = catalogue()
