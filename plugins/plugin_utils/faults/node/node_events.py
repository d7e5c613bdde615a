# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what events of Nodes report (KM563), also of one whose host does not answer."""

from __future__ import annotations

from collections.abc import Iterator

from ....module_utils.shared.text import times
from ...evidence.document import one_line
from ...models import object_events
from ...models.cluster import Cluster
from ...models.object_events import Report
from ...models.result import EvidenceRef
from ..base import CheckResult, Detection, causes, cluster_check, without_kubernetes
from ..known_causes import Source, explained
from . import wording

SHOWN = 5  # places in the evidence
MEMORY = frozenset(("memory", "pressure"))


@cluster_check(
    "KM563",
    "Events of a Node report a failure",
    severity="warning",
    applies="Nodes that the API lists",
    needs=("kernel_log", "system"),
    cluster_needs=("object_events", "nodes"),
    explained_by=causes("KM115", "KM501", "KM502", "KM508", "KM523"),
    same_node=True,
)
def reported(cluster: Cluster) -> Iterator[CheckResult]:
    """KM563: report failures of Nodes that their kubelets and controllers tell by events."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    groups: dict[tuple[str, str], list[Report]] = {}
    for report in object_events.of_nodes(cluster):
        key = one_line(report.event.name, 253), report.meaning.component
        groups.setdefault(key, []).append(report)
    hits = tuple(_hit(cluster, node, reports) for (node, _dummy), reports in groups.items())
    missing = (*cluster.missing("object_events"), *cluster.cut("object_events"))
    yield CheckResult(hits, missing)


def before_silence(cluster: Cluster, node: str) -> str:
    """Return what a Node reported of its memory, as a clause of a finding; "" where nothing."""
    for report in object_events.of_nodes(cluster):
        if report.event.name == node and report.meaning.component in MEMORY:
            return f"; before that {report.meaning.clause}, {how_often(report)}: {report.message}"
    return ""


def _hit(cluster: Cluster, node: str, reports: list[Report]) -> Detection:
    first = max(reports, key=lambda report: report.count)
    name = node
    hit = Detection(
        f"{name}: {first.meaning.clause}, {how_often(first)}: {first.message}",
        tuple(proof(cluster, report) for report in reports[:SHOWN]),
        f"{first.meaning.advice}; kubectl describe node {name} has its events",
        host=wording.host_of(cluster, node),
        node=node,
        component=first.meaning.component,
        severity=first.meaning.severity,
    )
    texts = [report.message for report in reports]
    return explained(
        hit, ("kubelet", "kernel"), texts, source=Source(versions=cluster.versions(node))
    )


def how_often(report: Report) -> str:
    """Return how often something was reported, and when last."""
    event = report.event
    if report.when:
        return report.when
    count = times(event.count)
    last = f", last at {one_line(event.last, 40)}" if event.last else ""
    return f"{count} ({one_line(event.reason, 80)}){last}"


def proof(cluster: Cluster, report: Report) -> EvidenceRef:
    """Return the newest of such events, for a report."""
    text = f"{how_often(report)}: {report.message}"
    return EvidenceRef("api", cluster.api_host, object=report.object, text=text)
