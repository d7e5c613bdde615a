# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collectors and the types of their answers: one row each, which docs and schema read."""

from __future__ import annotations

from collections.abc import Mapping

from .cluster import (
    api_services,
    cluster_info,
    disruption_budgets,
    endpoints,
    jobs,
    kubeadm_config,
    kubelet_configs,
    locks,
    nodes,
    object_events,
    pending,
    pinnable,
    pod,
    pod_start,
    pod_states,
    rejected,
    server,
    unmade,
    webhooks,
    work,
)
from .node import (
    api_load,
    api_server,
    api_way,
    boot,
    certificates,
    cni,
    component_end,
    component_http,
    component_restart,
    component_units,
    cri,
    descriptors,
    devices,
    etcd,
    hangs,
    installer,
    instances,
    journal,
    kernel_log,
    kubelet,
    kubelet_end,
    kubelet_log,
    largest,
    limits,
    manifests,
    network,
    next_start,
    pinning,
    pressure,
    repeated_errors,
    runtime,
    scheduler_log,
    space,
    static_pod_paths,
    swap,
    system,
    system_pods,
    unit_start,
)

NODE: Mapping[str, type] = {
    "system": system.System,
    "kubelet": kubelet.Kubelet,
    "manifests": manifests.Manifests,
    "instances": instances.Instances,
    "static_pod_paths": static_pod_paths.StaticPodPaths,
    "api_server": api_server.ApiServerAnswers,
    "api_load": api_load.ApiLoad,
    "component_http": component_http.ComponentHttp,
    "component_end": component_end.ComponentEnd,
    "component_units": component_units.ComponentUnits,
    "system_pods": system_pods.SystemPods,
    "scheduler_log": scheduler_log.SchedulerLogs,
    "etcd": etcd.Etcd,
    "certificates": certificates.Certificates,
    "installer": installer.Installer,
    "devices": devices.Devices,
    "pinning": pinning.Pinning,
    "limits": limits.Limits,
    "swap": swap.Swap,
    "boot": boot.Boot,
    "kubelet_log": kubelet_log.KubeletLog,
    "kubelet_end": kubelet_end.KubeletEnd,
    "runtime": runtime.Runtime,
    "component_restart": component_restart.ComponentRestart,
    "cri": cri.Cri,
    "cni": cni.Cni,
    "unit_start": unit_start.UnitStart,
    "api_way": api_way.ApiWay,
    "repeated_errors": repeated_errors.RepeatedErrors,
    "descriptors": descriptors.Descriptors,
    "pressure": pressure.Pressure,
    "largest": largest.Largest,
    "hangs": hangs.Hangs,
    "network": network.Network,
    "kernel_log": kernel_log.KernelLog,
    "space": space.Spaces,
    "next_start": next_start.NextStart,
    "journal": journal.Journal,
}
CLUSTER: Mapping[str, type] = {
    "server": server.Server,
    "endpoints": endpoints.Endpoints,
    "nodes": nodes.Nodes,
    "kubeadm_config": kubeadm_config.KubeadmConfig,
    "kubelet_configs": kubelet_configs.KubeletConfigs,
    "cluster_info": cluster_info.ClusterInfo,
    "locks": locks.Locks,
    "jobs": jobs.Jobs,
    "rejected": rejected.Rejected,
    "pending": pending.Pending,
    "pod_start": pod_start.PodStart,
    "pod_states": pod_states.PodStates,
    "pinnable": pinnable.Pinnable,
    "pod": pod.Pod,
    "work": work.Work,
    "webhooks": webhooks.Webhooks,
    "api_services": api_services.ApiServices,
    "object_events": object_events.ObjectEvents,
    "unmade": unmade.Unmade,
    "disruption_budgets": disruption_budgets.DisruptionBudgets,
}
COLLECTORS: Mapping[type, str] = {
    kind: name for kinds in (NODE, CLUSTER) for name, kind in kinds.items()
}


def kinds_of(document: Mapping[str, object]) -> Mapping[str, type]:
    """Return the types of the collectors of a document: a host's or a cluster's."""
    if document.get("kind") == "cluster":
        return CLUSTER
    return NODE
