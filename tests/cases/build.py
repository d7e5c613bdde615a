# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the evidence of a case: a base, and the steps that the case lists."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from . import (
    bare,
    boots,
    certificates,
    clock,
    control_plane,
    etcd,
    firewalls,
    k3s,
    kernel_logs,
    load_balancer,
    manifests,
    microk8s,
    nodes,
    object_events,
    paths,
    quiet,
    repeats,
    room,
    runtimes,
    selinux,
    services,
    system_pods,
    units,
)
from .cluster import BuildError, Evidence

BASES = Path(__file__).resolve().parent / "bases.yml"
Step = Callable[..., None]


def base(name: str) -> Evidence:
    """Return the evidence of a base."""
    evidence = Evidence(_described(name)["recording"])
    quiet.settle(evidence)
    return evidence


def build(case: Mapping[str, Any]) -> Evidence:
    """Return the evidence of a case; raises BuildError or PathError."""
    described = _described(case["base"])
    first, last = described["minors"]
    if not first <= int(case["release"].split(".")[1]) <= last:
        raise BuildError(f"the base {case['base']} does not fit {case['release']}")
    evidence = base(case["base"])
    evidence.replaced(described["release"], case["release"])
    for number, step in enumerate(case["evidence"], 1):
        try:
            _do(evidence, step)
        except (TypeError, KeyError, StopIteration) as error:
            raise BuildError(f"step {number}: {type(error).__name__}: {error}") from error
    return evidence


def _described(name: str) -> dict[str, Any]:
    bases: dict[str, dict[str, Any]] = yaml.safe_load(BASES.read_text(encoding="utf-8"))
    if name not in bases:
        raise BuildError(f"there is no base {name}")
    return bases[name]


def _do(evidence: Evidence, step: Mapping[str, Any]) -> None:
    if len(step) != 1:
        raise BuildError(f"a step has one key, not {', '.join(step)}")
    ((name, value),) = step.items()
    value = clock.resolved(value, evidence.now)
    if name in CHANGES:
        CHANGES[name](evidence, value)
    elif name in MACROS:
        MACROS[name](evidence, **(value or {}))
    else:
        raise BuildError(f"there is no step {name}")


def _like(evidence: Evidence, value: Mapping[str, Any]) -> None:
    """Take whole answers of a host's collectors from another recording."""
    for host, source in value.items():
        other = Evidence(source["recording"])
        for collector in source["collectors"]:
            found = other.record(source.get("host", host), collector)
            evidence.record(host, collector).update(copy.deepcopy(found))


def _set(evidence: Evidence, value: Mapping[str, Any]) -> None:
    for path, new in value.items():
        host, collector, parts = paths.split(path)
        paths.put(evidence.data(host, collector), parts, copy.deepcopy(new), path)


def _drop(evidence: Evidence, value: list[str]) -> None:
    for path in value:
        host, collector, parts = paths.split(path)
        paths.remove(evidence.data(host, collector), parts, path)


def _replace(evidence: Evidence, value: Mapping[str, list[str]]) -> None:
    """Replace a text in the text of a value, such as a line of a file."""
    for path, (old, new) in value.items():
        host, collector, parts = paths.split(path)
        data = evidence.data(host, collector)
        text = paths.get(data, parts, path)
        if old not in text:
            raise BuildError(f"{path} does not have {json.dumps(old)}")
        paths.put(data, parts, text.replace(old, new), path)


def _status(evidence: Evidence, value: Mapping[str, list[str]]) -> None:
    for path, (status, error) in value.items():
        host, _dot, collector = path.partition(".")
        evidence.answer(host, collector, status, error)


CHANGES: dict[str, Callable[[Evidence, Any], None]] = {
    "like": _like,
    "set": _set,
    "drop": _drop,
    "replace": _replace,
    "status": _status,
}
MACROS: dict[str, Step] = {
    "kubelet_down": units.kubelet_down,
    "kubelet_started": units.kubelet_started,
    "journal": units.journal,
    "repeats": repeats.repeats,
    "certificates": certificates.certificates,
    "kubelet_serving": certificates.kubelet_serving,
    "k3s_certificates": certificates.k3s_certificates,
    "cluster_info": certificates.cluster_info,
    "component_unit": services.component_unit,
    "component_ended": control_plane.component_ended,
    "oom_killed": control_plane.oom_killed,
    "probe_killed": control_plane.probe_killed,
    "component_gone": control_plane.gone,
    "api_down": control_plane.api_down,
    "system_pod": system_pods.system_pod,
    "kernel_says": kernel_logs.kernel_says,
    "pod_says": system_pods.pod_says,
    "probe_fails": system_pods.probe_fails,
    "object_event": object_events.object_event,
    "etcd_silent": control_plane.etcd_silent,
    "etcd_size": etcd.etcd_size,
    "embedded_etcd": etcd.embedded_etcd,
    "load_balancer": load_balancer.load_balancer,
    "flags": manifests.flags,
    "manifest_copy": manifests.manifest_copy,
    "waiting_pods": control_plane.waiting_pods,
    "rebooted": boots.rebooted,
    "node": nodes.node,
    "machine": nodes.machine,
    "sysctl": nodes.sysctl,
    "inotify_full": nodes.inotify_full,
    "certificate": nodes.certificate,
    "rke2": nodes.rke2,
    "k3s": k3s.k3s,
    "microk8s": microk8s.microk8s,
    "runtime": runtimes.runtime,
    "runtime_down": runtimes.runtime_down,
    "selinux": selinux.selinux,
    "disk": room.full,
    "firewalld": firewalls.firewalld,
    "not_installed": bare.not_installed,
    "no_api": bare.no_api,
    "no_component": bare.no_component,
    "unreachable": bare.unreachable,
    "without": bare.without,
}
