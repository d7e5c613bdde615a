# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what controllers report by events of Services and volumes (KM180)."""

from __future__ import annotations

from collections.abc import Iterator

from ...evidence.document import one_line
from ...models import object_events
from ...models.cluster import Cluster
from ...models.object_events import Report
from ...parsers.known_message import EVENT
from ..base import CheckResult, Detection, causes, cluster_check, without_kubernetes
from ..known_causes import explained
from ..node.node_events import how_often, proof

SHOWN = 5  # places in the evidence
WAITS = "ExternalProvisioning"
# Who makes and attaches volumes, and who makes load balancers.
PLACES = (EVENT, "csi", "cloud", "kube-controller-manager")


@cluster_check(
    "KM180",
    "A controller reports that Services or volumes fail",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("object_events",),
    current_only=True,
    explained_by=causes("KM112", "KM115", "KM176", "KM178", "KM550", "KM560"),
)
def reported(cluster: Cluster) -> Iterator[CheckResult]:
    """KM180: report what controllers cannot do for Services, claims, volumes and Deployments."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    groups: dict[tuple[str, str], list[Report]] = {}
    for report in _without_waits(object_events.of_objects(cluster)):
        groups.setdefault((report.meaning.component, report.event.reason), []).append(report)
    hits = tuple(_hit(cluster, reports) for reports in groups.values())
    missing = (*cluster.missing("object_events"), *cluster.cut("object_events"))
    yield CheckResult(hits, missing)


def _without_waits(reports: tuple[Report, ...]) -> list[Report]:
    """Return the reports without claims that wait, where a provisioner tells why it fails."""
    fails = any(report.event.reason == "ProvisioningFailed" for report in reports)
    return [report for report in reports if not (fails and report.event.reason == WAITS)]


def _hit(cluster: Cluster, reports: list[Report]) -> Detection:
    first = max(reports, key=lambda report: (report.event.objects, report.event.count))
    more = sum(report.event.objects for report in reports) - 1
    rest = f" (and {more} more)" if more > 0 else ""
    hit = Detection(
        f"{first.object}{rest}: {first.meaning.clause}, {how_often(first)}: {first.message}",
        tuple(proof(cluster, report) for report in reports[:SHOWN]),
        f"{first.meaning.advice}; kubectl -n {_namespace(first)} describe"
        f" {first.event.kind.lower()} has its events",
        component=first.meaning.component,
        severity=first.meaning.severity,
    )
    return explained(hit, PLACES, [report.message for report in reports], cluster.version)


def _namespace(report: Report) -> str:
    return one_line(report.event.namespace, 63) or "default"
