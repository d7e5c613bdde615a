# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Predicates about pods that get no CPUs of their own, and about the configuration that kubeadm
has for kubelets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...models import control_plane
from ...models import qos as guaranteed
from ...models.cluster import Cluster, Host
from ...models.qos import Subject
from ...models.result import Missing, Proof
from ...parsers import pod_manifest as manifest
from ...parsers.cpu_manager_state import NONE, STATIC
from ..base import Hit, Outcome, cluster_check

SHOWN = 5


@cluster_check(
    "KM313",
    "Pods that look meant for pinning are not Guaranteed",
    severity="warning",
    applies=(
        "pods on nodes with the static CPU manager policy, and templates of workloads where there"
        " is such a node"
    ),
    risk=3,
    needs=("kubelet",),
    cluster_needs=("pinnable",),
    tier="deep",
)
def not_guaranteed(cluster: Cluster) -> Iterator[Outcome]:
    """KM313: pods on nodes with the static policy, and templates, that look meant for pinning
    and are not Guaranteed.
    """
    missing = list(cluster.missing("pinnable"))
    if missing or cluster.key is None:
        yield Outcome((), tuple(missing), cluster.key is not None)
        return
    missing += cluster.cut("pinnable")
    missing += [lack for host in cluster.hosts for lack in _without_policy(host)]
    hosts = _by_node(cluster)
    missing += [
        Missing(str(pod.get("node")), "host", "not_asked")
        for subject in guaranteed.subjects(cluster.answer("pinnable"))
        for pod in subject.pods
        if pod.get("node") and pod["node"] not in hosts
    ]
    hits = tuple(_hit(subject, hosts) for subject in judged(cluster))
    applies = bool(hits or missing) or any(host.pinning.policy == STATIC for host in cluster.hosts)
    yield Outcome(
        hits,
        tuple(dict.fromkeys(missing)),
        applies,
        note="" if applies else "no node has the static CPU manager policy",
    )


def judged(cluster: Cluster) -> list[Subject]:
    """The owners that KM313 names, each with those of its pods that lie on a node with the
    static policy.
    """
    hosts = _by_node(cluster)
    if not any(host.pinning.policy == STATIC for host in cluster.hosts):
        return []
    found = []
    for subject in guaranteed.subjects(cluster.answer("pinnable") or {}):
        there = [
            pod
            for pod in subject.pods
            if pod.get("node") in hosts and hosts[pod["node"]].pinning.policy == STATIC
        ]
        if there or subject.template is not None:
            found.append(
                replace(
                    subject,
                    pods=tuple(sorted(there, key=lambda pod: (str(pod["node"]), str(pod["name"])))),
                )
            )
    return found


def patches(cluster: Cluster) -> list[tuple[Subject, Mapping[str, Any]]]:
    """The owners whose template a patch would cure, with it."""
    found = [(subject, guaranteed.advise(subject).patch) for subject in judged(cluster)]
    return [(subject, patch) for subject, patch in found if patch is not None]


def _by_node(cluster: Cluster) -> dict[str, Host]:
    """Hosts by Node. A host that did not answer proves no Node of its own; its name may tell."""
    return {
        name: host
        for host in cluster.hosts
        for name in (host.names if host.node is None else (host.node,))
    }


def _without_policy(host: Host) -> tuple[Missing, ...]:
    """What keeps the policy of this host's kubelet from being known.

    Nothing where it has no kubelet.
    """
    if host.missing("kubelet") or host.statuses.get("kubelet") == "absent":
        return host.missing("kubelet")
    return (Missing(host.host, "kubelet", "error"),) if host.pinning.policy is None else ()


def _hit(subject: Subject, hosts: Mapping[str, Host]) -> Hit:
    advice, first = guaranteed.advise(subject), subject.pods[0] if subject.pods else None
    proofs = []
    if subject.template is not None:
        proofs.append(Proof("api", object=subject.title, text=_why(subject.template)))
    for pod in subject.pods[:SHOWN]:
        more = f" (and {pod['alike'] - 1} like it)" if pod.get("alike", 1) > 1 else ""
        proofs.append(
            Proof(
                "api",
                object=f"Pod {pod['namespace']}/{pod['name']}",
                text=f"{pod.get('qos')} on {pod['node']}{more}: {_why(pod)}",
            )
        )
    what = guaranteed.target(subject.template or subject.pods[0])
    meant = (
        f"{guaranteed.label(what)} asks for whole CPUs ({what['cpu_limit']})"
        if what
        else "kubemend_expect_pinning selects it"
    )
    where = (
        f"gets none of its own on {first['node']}"
        if first
        else "would get none of its own on a node with the static policy"
    )
    return Hit(
        f"{meant} and {where}",
        tuple(proofs),
        advice.text,
        component=subject.title,
        host=hosts[first["node"]].host if first else None,
        node=first["node"] if first else None,
        severity=None if first else "info",
        command=advice.command,
    )


def _why(item: Mapping[str, Any]) -> str:
    return guaranteed.said(guaranteed.lacks(item)) or (
        "no container asks for a whole number of CPUs" if item.get("expected") else "not Guaranteed"
    )


@cluster_check(
    "KM312",
    "kubelet-config ConfigMap differs from nodes' state files",
    severity="warning",
    applies="clusters of kubeadm, kubelets whose CPU manager policy is set by kubeadm's file",
    needs=("kubelet", "pinning"),
    cluster_needs=("kubelet_configs",),
)
def kubelet_config(cluster: Cluster) -> Iterator[Outcome]:
    """KM312: the policy that kubeadm would write is not that of a node's state file."""
    absent = (
        cluster.key is None or (cluster.api.get("kubelet_configs") or {}).get("status") == "absent"
    )
    written = [host for host in cluster.hosts if host.pinning.from_kubeadm]
    missing = list(cluster.missing("kubelet_configs", absent_is_answer=True))
    missing += (
        []
        if missing
        else [
            lack
            for host in cluster.hosts
            for lack in _without_policy(host) or host.missing("pinning")
        ]
    )
    if absent or not (written or missing):
        yield Outcome(
            applies=False,
            note=(
                "no kubelet-config"
                if absent
                else "no kubelet's CPU manager policy is kubeadm's to write"
            ),
        )
        return
    hits = []
    for record in (cluster.answer("kubelet_configs") or {}).get("items") or ():
        try:
            policy, line = _policy(record)
        except manifest.ManifestError:
            missing.append(Missing(cluster.api_host or "cluster API", "kubelet_configs", "error"))
            continue
        apart = [host for host in written if host.pinning.state_policy not in (None, policy)]
        if apart:
            hits.append(_apart(str(record.get("name")), policy, line, apart))
    yield Outcome(tuple(hits), tuple(dict.fromkeys(missing)))


def _policy(record: Mapping[str, Any]) -> tuple[str, int | None]:
    """(cpuManagerPolicy, its line or None where it is not set)."""
    text = manifest.parseable(str(record.get("text") or ""), control_plane.spans(record))
    found = [
        (value, line)
        for path, value, line in manifest.scalars(text)
        if path == ("cpuManagerPolicy",)
    ]
    return (found[0][0] or NONE, found[0][1]) if found else (NONE, None)


def _apart(name: str, policy: str, line: int | None, hosts: list[Host]) -> Hit:
    config = f"ConfigMap kube-system/{name}"
    names = ", ".join(host.host for host in hosts[:20]) + (
        f" and {len(hosts) - 20} more" if len(hosts) > 20 else ""
    )
    proofs = [
        Proof(
            "api",
            object=config,
            path="kubelet",
            line=line,
            text=f"cpuManagerPolicy: {policy}" if line else f"no cpuManagerPolicy, so {policy}",
        )
    ]
    proofs += [
        Proof(
            "file",
            host.host,
            path=host.pinning.state_path,
            text=f"policyName: {host.pinning.state_policy}",
        )
        for host in hosts[:20]
    ]
    keep = " or ".join(sorted({str(host.pinning.state_policy) for host in hosts}))
    return Hit(
        f"{config} has the CPU manager policy {policy}, and the state file of {names} another: the"
        " next kubeadm upgrade node stops the kubelet",
        tuple(proofs),
        f"leave the ConfigMap as it is, for it is every node's; keep cpuManagerPolicy: {keep} of"
        f" {names} in a kubeletconfiguration patch (kubeadm upgrade node --patches, since 1.25) or"
        " a --config-dir drop-in; or drain the node and reset its state when it is upgraded",
        component=name,
    )
