# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of pods that get no CPUs of their own, and of kubeadm's configuration for kubelets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...evidence.answers.cluster.kubelet_configs import KubeletConfig, KubeletConfigs
from ...evidence.answers.cluster.pinnable import Pinnable, PinnableItem
from ...models import qos
from ...models.cluster import Cluster, Host
from ...models.qos import Subject
from ...models.result import EvidenceRef, Missing
from ...parsers import pod_manifest
from ...parsers.cpu_manager_state import NONE, STATIC
from ..base import CheckResult, Detection, cluster_check

SHOWN = 5
MAX_SHOWN_HOSTS = 20


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
def not_guaranteed(cluster: Cluster) -> Iterator[CheckResult]:
    """KM313: pods that look meant for pinning, and templates of such pods, are not Guaranteed."""
    missing = list(cluster.missing("pinnable"))
    if missing or cluster.key is None:
        yield CheckResult((), tuple(missing), cluster.key is not None)
        return
    missing += cluster.cut("pinnable")
    for host in cluster.hosts:
        missing += _without_policy(host)
    hosts = _by_node(cluster)
    missing += _hosts_not_asked(cluster, hosts)
    hits = tuple(_hit(subject, hosts) for subject in judged(cluster))
    applies = bool(hits or missing) or _has_static_policy(cluster)
    note = ""
    if not applies:
        note = "no node has the static CPU manager policy"
    yield CheckResult(hits, tuple(dict.fromkeys(missing)), applies, note=note)


def _hosts_not_asked(cluster: Cluster, hosts: Mapping[str, Host]) -> Iterator[Missing]:
    """Yield what is missing of nodes that run such pods and are not in the run."""
    for subject in qos.subjects(cluster.typed(Pinnable)):
        for pod in subject.pods:
            if pod.node and pod.node not in hosts:
                yield Missing(pod.node, "host", "not_asked")


def _has_static_policy(cluster: Cluster) -> bool:
    return any(host.pinning.policy == STATIC for host in cluster.hosts)


def judged(cluster: Cluster) -> list[Subject]:
    """Return the owners that KM313 names, each with its pods on nodes of the static policy."""
    if not _has_static_policy(cluster):
        return []
    hosts = _by_node(cluster)
    static_nodes = {name for name, host in hosts.items() if host.pinning.policy == STATIC}
    subjects = []
    for subject in qos.subjects(cluster.typed(Pinnable)):
        pods = [pod for pod in subject.pods if pod.node in static_nodes]
        if pods or subject.template is not None:
            pods.sort(key=lambda pod: (str(pod.node), str(pod.name)))
            subjects.append(replace(subject, pods=tuple(pods)))
    return subjects


def patches(cluster: Cluster) -> list[tuple[Subject, Mapping[str, Any]]]:
    """Return the owners whose template a patch would correct, each with its patch."""
    advised = [(subject, qos.advise(subject).patch) for subject in judged(cluster)]
    return [(subject, patch) for subject, patch in advised if patch is not None]


def _by_node(cluster: Cluster) -> dict[str, Host]:
    """Return the hosts by Node.

    A host that did not answer proves no Node of its own; its name may be that of one.
    """
    hosts = {}
    for host in cluster.hosts:
        if host.node is not None:
            hosts[host.node] = host
        else:
            hosts.update(dict.fromkeys(host.names, host))
    return hosts


def _without_policy(host: Host) -> tuple[Missing, ...]:
    """Return what keeps the policy of this host's kubelet from being known.

    Nothing where it has no kubelet.
    """
    if host.missing("kubelet") or host.statuses.get("kubelet") == "absent":
        return host.missing("kubelet")
    if host.pinning.policy is None:
        return (Missing(host.host, "kubelet", "error"),)
    return ()


def _hit(subject: Subject, hosts: Mapping[str, Host]) -> Detection:
    advice, meaning = qos.advise(subject), _meaning(subject)
    proofs = tuple(_pod_proofs(subject))
    if not subject.pods:
        return Detection(
            f"{meaning} and would get none of its own on a node with the static policy",
            proofs,
            advice.text,
            component=subject.title,
            severity="info",
            command=advice.command,
        )
    node = str(subject.pods[0].node)
    return Detection(
        f"{meaning} and gets none of its own",
        proofs,
        advice.text,
        component=subject.title,
        host=hosts[node].host,
        node=node,
        command=advice.command,
    )


def _meaning(subject: Subject) -> str:
    """Return what makes these pods look meant for pinning."""
    container = qos.target(subject.template or subject.pods[0])
    if container is not None:
        return f"{qos.label(container)} asks for whole CPUs ({container.cpu_limit})"
    return "kubemend_expect_pinning selects it"


def _pod_proofs(subject: Subject) -> Iterator[EvidenceRef]:
    if subject.template is not None:
        yield EvidenceRef("api", object=subject.title, text=_mismatch(subject.template))
    for pod in subject.pods[:SHOWN]:
        more = ""
        if pod.alike is not None and pod.alike > 1:
            more = f" (and {pod.alike - 1} like it)"
        yield EvidenceRef(
            "api",
            object=f"Pod {pod.namespace}/{pod.name}",
            text=f"{pod.qos} on {pod.node}{more}: {_mismatch(pod)}",
        )


def _mismatch(item: PinnableItem) -> str:
    """Return why a pod or template is not Guaranteed, as text."""
    mismatch = qos.describe_lacks(qos.lacks(item))
    if mismatch:
        return mismatch
    if item.expected:
        return "no container asks for a whole number of CPUs"
    return "not Guaranteed"


@cluster_check(
    "KM312",
    "kubelet-config ConfigMap differs from nodes' state files",
    severity="warning",
    applies="clusters of kubeadm, kubelets whose CPU manager policy is set by kubeadm's file",
    needs=("kubelet", "pinning"),
    cluster_needs=("kubelet_configs",),
)
def kubelet_config(cluster: Cluster) -> Iterator[CheckResult]:
    """KM312: the policy that kubeadm would write is not that of a node's state file."""
    answer = cluster.api.get("kubelet_configs") or {}
    if cluster.key is None or answer.get("status") == "absent":
        yield CheckResult(applies=False, note="no kubelet-config")
        return
    missing = _config_missing(cluster)
    managed = [host for host in cluster.hosts if host.pinning.from_kubeadm]
    if not managed and not missing:
        note = "no kubelet's CPU manager policy is kubeadm's to write"
        yield CheckResult(applies=False, note=note)
        return
    hits = []
    for record in cluster.typed(KubeletConfigs).items:
        try:
            hits += _config_hits(record, managed)
        except pod_manifest.ManifestError:
            missing.append(cluster.missing_answer("kubelet_configs", "error"))
    yield CheckResult(tuple(hits), tuple(dict.fromkeys(missing)))


def _config_missing(cluster: Cluster) -> list[Missing]:
    """Return what keeps the ConfigMaps, or else the state of a host, from being known."""
    missing = list(cluster.missing("kubelet_configs", absent_is_answer=True))
    if missing:
        return missing
    for host in cluster.hosts:
        missing += _without_policy(host) or host.missing("pinning")
    return missing


def _config_hits(record: KubeletConfig, managed: list[Host]) -> list[Detection]:
    """Return the hit of one ConfigMap, if the state of any host differs from it."""
    policy, line = _policy(record)
    differing = [host for host in managed if host.pinning.state_policy not in (None, policy)]
    if not differing:
        return []
    return [_config_hit(str(record.name), policy, line, differing)]


def _policy(record: KubeletConfig) -> tuple[str, int | None]:
    """Return (cpuManagerPolicy, its line or None where it is not set)."""
    text = pod_manifest.parseable(record.text or "", record.masked)
    # All of it is parsed first: a later error makes the whole configuration unknown.
    for path, value, line in list(pod_manifest.scalars(text)):
        if path == ("cpuManagerPolicy",):
            return value or NONE, line
    return NONE, None


def _config_hit(name: str, policy: str, line: int | None, hosts: list[Host]) -> Detection:
    config, names = f"ConfigMap kube-system/{name}", _host_names(hosts)
    keep = " or ".join(sorted({str(host.pinning.state_policy) for host in hosts}))
    return Detection(
        f"{config} has the CPU manager policy {policy}, and the state file of {names} another: the"
        " next kubeadm upgrade node stops the kubelet",
        (_config_proof(config, policy, line), *map(_state_proof, hosts[:MAX_SHOWN_HOSTS])),
        f"leave the ConfigMap as it is, for it is every node's; keep cpuManagerPolicy: {keep} of"
        f" {names} in a kubeletconfiguration patch (kubeadm upgrade node --patches, since 1.25) or"
        " a --config-dir drop-in; or drain the node and reset its state when it is upgraded",
        component=name,
    )


def _host_names(hosts: list[Host]) -> str:
    names = ", ".join(host.host for host in hosts[:MAX_SHOWN_HOSTS])
    if len(hosts) > MAX_SHOWN_HOSTS:
        names += f" and {len(hosts) - MAX_SHOWN_HOSTS} more"
    return names


def _config_proof(config: str, policy: str, line: int | None) -> EvidenceRef:
    text = f"no cpuManagerPolicy, so {policy}"
    if line:
        text = f"cpuManagerPolicy: {policy}"
    return EvidenceRef("api", object=config, path="kubelet", line=line, text=text)


def _state_proof(host: Host) -> EvidenceRef:
    return EvidenceRef(
        "file",
        host.host,
        path=host.pinning.state_path,
        text=f"policyName: {host.pinning.state_policy}",
    )
