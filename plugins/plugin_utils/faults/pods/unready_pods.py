# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the cluster's own pods that run and fail their probes (KM561), by events of the API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ....module_utils.shared.text import times
from ...evidence.answers.cluster.pod_start import PodStart, Unhealthy
from ...evidence.document import ends, one_line
from ...models import ages, kubelet_root, pod_roles
from ...models.api_node import and_others
from ...models.cluster import Cluster, Host
from ...models.moments import timestamp
from ...models.pod_errors import PodError
from ...models.pod_start import STATIC
from ...models.result import EvidenceRef, Missing
from ...parsers import error_answer, message_table
from ..base import CheckResult, Detection, causes, cluster_check, without_kubernetes
from ..known_causes import Source, explained
from ..node import wording
from ..other_folders import with_root
from . import pod_errors, system_pods

# A kubelet asks every 10 seconds and reports each failure, but not more than 25 at once and then
# one in five minutes. A start or an upgrade is over within five.
COUNT, LASTED_SECONDS, RECENT_SECONDS = 8, 300, 420
SHOWN, QUOTED = 5, 300
CUT = (
    "so many pods fail their probes that not all of these events were read; see the rest by kubectl"
    " get events -n NAMESPACE --field-selector reason=Unhealthy, for kube-system and the"
    " namespaces of the network"
)
_BGP = re.compile(r"BGP not established with (?P<peers>[0-9a-fA-F.:,]{3,400})")
_DIFFERS = re.compile(r"[0-9a-f]{1,4}:[0-9a-f:]{4,}|[0-9]+")


@dataclass(frozen=True)
class _Failing:
    row: Unhealthy
    node: str
    message: str

    @property
    def pod(self) -> PodError:
        """Return the pod by the names that tell its part of the cluster."""
        row = self.row
        names = one_line(row.namespace, 63), one_line(row.pod, 253), one_line(row.container, 63)
        return PodError(*names, "")

    @property
    def kind(self) -> tuple[str, str, str]:
        """Return what pods of one cause have in common."""
        return self.pod.namespace, pod_roles.role(self.pod), _DIFFERS.sub("#", self.message)


@cluster_check(
    "KM561",
    "A pod of the cluster itself fails its probes",
    severity="warning",
    applies="pods of kube-system and of the namespaces of networks",
    needs=("cni",),
    cluster_needs=("pod_start", "nodes"),
    explained_by=causes(
        "KM115",
        "KM178",
        "KM401",
        "KM402",
        "KM411",
        "KM508",
        "KM512",
        "KM520",
        "KM521",
        "KM523",
        "KM525",
        "KM526",
        "KM527",
        "KM533",
    ),
    same_node=True,
    current_only=True,
)
def failing(cluster: Cluster) -> Iterator[CheckResult]:
    """KM561: report pods that make the cluster and whose probes fail again and again."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    groups: dict[tuple[str, str, str], list[_Failing]] = {}
    for row in _rows(cluster):
        groups.setdefault(row.kind, []).append(row)
    hits = tuple(_hit(cluster, rows) for rows in groups.values())
    missing, note = _missing(cluster)
    yield CheckResult(hits, missing, note=note)


def _missing(cluster: Cluster) -> tuple[tuple[Missing, ...], str]:
    """Return what is missing, and a note where the reading was cut."""
    missing = (*cluster.missing("pod_start"), *cluster.cut("pod_start"))
    if missing or not cluster.answered(PodStart):
        return missing, ""
    answer = cluster.typed(PodStart)
    if answer.unhealthy is None:  # of an older release
        return (cluster.missing_answer("pod_start", "not_asked"),), ""
    if answer.unhealthy_cut:
        return (cluster.missing_answer("pod_start", "timeout"),), CUT
    return (), ""


def _rows(cluster: Cluster) -> Iterator[_Failing]:
    for row in cluster.typed(PodStart).unhealthy or ():
        if not _is_static(row) and _goes_on(cluster, row):
            message = ends(one_line(row.message, 2000), QUOTED)
            yield _Failing(row, one_line(row.node, 253), message)


def _is_static(row: Unhealthy) -> bool:
    """Tell whether a pod is a component of the control plane, which other faults judge."""
    return any(row.pod == f"{component}-{row.node}" for component in STATIC)


def _goes_on(cluster: Cluster, row: Unhealthy) -> bool:
    first = ages.age(cluster, row.first)
    last = ages.age(cluster, row.last)
    if first is None or last is None or row.count < COUNT:
        return False
    return last <= RECENT_SECONDS and first - last >= LASTED_SECONDS


def _hit(cluster: Cluster, rows: Sequence[_Failing]) -> Detection:
    first = max(rows, key=lambda row: row.row.count)
    nodes = list(dict.fromkeys(row.node for row in rows))
    pod, part = first.pod, pod_roles.role(first.pod)
    name = f"{pod.namespace}/{pod_roles.workload(pod)}"
    clause, advice = _cause(first.message)
    summary = f"{name} on {and_others(nodes)} fails its probes, {times(first.row.count)}"
    summary += f"{wording.since(first.row.first or '')}: {first.message}{clause}"
    node, _host = system_pods.place(nodes[0], None, len(nodes))
    because = {code for name in nodes for code in _because(cluster, part, name)}
    look = f"see its log: kubectl -n {pod.namespace} logs {pod.pod}"
    if pod.container:
        look += f" -c {pod.container}"
    hit = Detection(
        "; ".join(filter(None, (summary, pod_errors.EFFECTS.get(part, "")))),
        tuple(_proofs(cluster, rows)),
        f"{advice}{look}",
        host=wording.host_of(cluster, node or ""),
        node=node,
        component=pod.container or pod_roles.workload(pod),
        because=tuple(sorted(because)),
    )
    hit = with_root(hit, kubelet_root.of_driver(cluster, nodes[0], first.message))
    hit = _with_chain(hit, cluster.hosts_by_node().get(first.node), first.row)
    texts = [row.message for row in rows]
    source = Source(versions=cluster.versions(nodes[0]))
    return explained(hit, pod_roles.places(pod), texts, source=source)


def _with_chain(hit: Detection, host: Host | None, row: Unhealthy) -> Detection:
    """Return a hit with the configuration of the CNI that lacks the plugin of the pod."""
    if host is None:
        return hit
    chain = host.cni_chain
    clause, advice = chain.clause(row.pod, timestamp(row.first))
    if not clause:
        return hit
    text = f"plugins {', '.join(chain.plugins)}"
    return replace(
        hit,
        summary=f"{hit.summary}; {clause}",
        evidence=(
            *hit.evidence,
            EvidenceRef("file", host.host, path=chain.file, text=one_line(text, 300)),
        ),
        remedy="; ".join(filter(None, (advice, hit.remedy))),
    )


def _because(cluster: Cluster, part: str, node: str) -> tuple[str, ...]:
    ended = system_pods.because(cluster, part, node)
    return ended or pod_errors.because(cluster, part, node)


def _cause(message: str) -> tuple[str, str]:
    """Return what the answer to a probe means, as a clause, and what to do about it."""
    peers = _BGP.search(message)
    if peers is not None:
        return (
            f": no session of BGP is established with {peers.group('peers')[:200]}",
            "see whether port 179 of these addresses is reached (nc -vz ADDRESS 179), and whether"
            " they are those of the Nodes (kubectl get nodes -o wide): on a machine with several"
            " addresses Calico may take another one (annotation projectcalico.org/IPv4Address of"
            " the Node), which IP_AUTODETECTION_METHOD of calico-node corrects; ",
        )
    answer = error_answer.read(message, message_table.LIBRARY)
    if answer is None:
        return "", ""
    return f": {one_line(answer.clause, 300)}", f"{answer.advice}; "


def _proofs(cluster: Cluster, rows: Sequence[_Failing]) -> Iterator[EvidenceRef]:
    for row in rows[:SHOWN]:
        about = f"Event of Pod {row.pod.namespace}/{row.pod.pod}"
        text = f"Unhealthy, {times(row.row.count)}: {row.message}"
        yield EvidenceRef("api", cluster.api_host, object=about, text=text)
