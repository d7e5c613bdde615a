# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: judging, a pure function from evidence documents to a result.

Documents are streamed: node faults see one document at a time, cluster faults see the small extracts that are kept, so
that memory does not grow with the size of the evidence and slices of a fleet merge to the same verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ansible_collections.kubemend.remediation.plugins.plugin_utils import cluster as clusters
from ansible_collections.kubemend.remediation.plugins.plugin_utils import ages, membership, writes
from ansible_collections.kubemend.remediation.plugins.plugin_utils.cluster import Cluster, Host
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import UNFORESEEN, unforeseen
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import CATALOGUE
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.base import Fault, Outcome
from ansible_collections.kubemend.remediation.plugins.plugin_utils.model import (
    FIRST,
    SEVERITIES,
    UNPROVEN,
    ClusterRow,
    Finding,
    HostRow,
    Missing,
    NotJudged,
    Result,
    Verdict,
)

KEY_DIGITS = 16
FROZEN = f"the cluster accepts no writes ({writes.CODE}): what the API holds is of before"


def judge(documents: Iterable[Mapping[str, Any]], faults: frozenset[str] | None = None, deep: bool = False, part: bool = False) -> Result:
    """The verdict of every fault (or of the codes in faults) over these evidence documents."""
    return examine(documents, faults, deep, part)[0]


def examine(documents: Iterable[Mapping[str, Any]], faults: frozenset[str] | None = None, deep: bool = False,
            part: bool = False) -> tuple[Result, list[Cluster]]:
    """The verdicts, and the clusters that they were judged on, from which a plan is made.

    deep: whether collectors of the deep tier were asked; faults that need them are otherwise not judged. part: whether these are some
    hosts of their clusters only; what is of a whole cluster is left to whoever puts all of them together.
    """
    chosen = [fault for code, fault in CATALOGUE.items() if faults is None or code in faults]
    judged = [fault for fault in chosen if (deep or fault.tier == "core") and not (part and fault.cluster)]
    hosts: list[Host] = []
    api: list[Mapping[str, Any]] = []
    by_host: dict[str, list[tuple[Fault, Outcome]]] = {}
    for document in documents:
        if document.get("kind") == "cluster":
            api.append(document)
            continue
        host, outcomes = _of_host(document, judged)
        hosts.append(host)
        by_host[host.host] = outcomes
    book = _Book()
    book.not_judged.extend(NotJudged(fault.code, None, "slice" if part and fault.cluster else "tier") for fault in chosen if fault not in judged)
    found = assembled(hosts, api)
    for cluster in found:
        book.enter_cluster(cluster, judged, by_host)
    return book.result(found), found


def extract(document: Mapping[str, Any]) -> Host:
    """One host's extract, whatever the shape of its evidence."""
    return _of_host(document, [])[0]


def _of_host(document: Mapping[str, Any], judged: list[Fault]) -> tuple[Host, list[tuple[Fault, Outcome]]]:
    """One host's extract, and what the faults of nodes say of it."""
    try:
        host = clusters.host_of(document)
        return host, _outcomes(judged, host, document)
    except UNFORESEEN as error:
        host = clusters.unjudged(document, unforeseen(error))
        return host, _outcomes(judged, host, {"host": host.host, "collectors": {}})


def _outcomes(judged: list[Fault], host: Host, document: Mapping[str, Any]) -> list[tuple[Fault, Outcome]]:
    return [(fault, outcome) for fault in judged if fault.node for outcome in fault.node(host, document)]


def assembled(hosts: list[Host], api: list[Mapping[str, Any]]) -> list[Cluster]:
    """The clusters of these hosts; whichever evidence keeps them from being put together counts as an error of its host."""
    try:
        return membership.assemble(hosts, api)
    except UNFORESEEN as error:
        why = unforeseen(error)
    hosts = [host if _stands([host], []) else clusters.unjudged(vars(host), why) for host in hosts]
    return membership.assemble(hosts, [document if _stands(hosts, [document]) else {**document, "status": "error", "reason": why, "collectors": {}}
                                       for document in api])


def _stands(hosts: list[Host], api: list[Mapping[str, Any]]) -> bool:
    try:
        membership.assemble(hosts, api)
    except UNFORESEEN:
        return False
    return True


class _Book:
    """Collects outcomes as verdicts and findings."""

    def __init__(self) -> None:
        self.verdicts: list[Verdict] = []
        self.findings: list[Finding] = []
        self.not_judged: list[NotJudged] = []

    def enter_cluster(self, cluster: Cluster, judged: list[Fault],
                      by_host: Mapping[str, list[tuple[Fault, Outcome]]]) -> None:
        key = _short(cluster.key)
        for host in cluster.hosts:
            for fault, outcome in by_host[host.host]:
                self._enter(key, fault, outcome)
        for fault in judged:
            for outcome in _of_cluster(fault, cluster):
                self._enter(key, fault, outcome)
        self._link(key)

    def _link(self, key: str | None) -> None:
        """Name in a symptom's finding the faults that explain it: those of its cluster's components, and of its own host."""
        for index, finding in enumerate(self.findings):
            explained = CATALOGUE[finding.code].explained_by
            if finding.cluster == key and explained:
                causes = {item.code for item in self.findings if item.cluster == key
                          and {(item.code, item.component), (item.code, None)} & explained
                          and (finding.code, finding.component) not in CATALOGUE[item.code].explained_by  # not of what it is a cause of itself
                          and (item.component or finding.node is None or item.node in (None, finding.node))}
                self.findings[index] = replace(finding, because=tuple(sorted(causes.union(finding.because))))

    def _enter(self, key: str | None, fault: Fault, outcome: Outcome) -> None:
        if outcome.verdict == "unknown" and all(item.status == "not_asked" for item in outcome.missing):
            left_out = any(item.collector == "host" for item in outcome.missing)
            self.not_judged.append(NotJudged(fault.code, key, "limit" if left_out else "tier"))
            return
        self.verdicts.append(Verdict(fault.code, key, outcome.verdict, outcome.host, outcome.component,
                                     outcome.missing if outcome.verdict in ("unknown", "present") else (), outcome.note))
        for hit in outcome.hits:
            self.findings.append(Finding(
                fault.code, hit.severity or fault.severity, key, hit.host, hit.component, hit.summary, hit.node,
                hit.because, hit.evidence, hit.remedy, fault.risk if hit.risk is None else hit.risk, hit.command))

    def result(self, found: list[Cluster]) -> Result:
        judged = {(verdict.code, verdict.cluster) for verdict in self.verdicts if verdict.verdict != "not_applicable"}
        return Result(
            tuple(ClusterRow(_short(item.key) or UNPROVEN, item.version, tuple(host.host for host in item.hosts))
                  for item in found if item.key or item.hosts),
            tuple(sorted((_host_row(item, host) for item in found for host in item.hosts
                          if host.status != "not_asked"), key=lambda row: row.host)),
            tuple(sorted(self.verdicts, key=lambda item: (item.cluster or "~", item.code, item.host or "",
                                                          item.component or ""))),
            tuple(sorted({item for item in self.not_judged if (item.code, item.cluster) not in judged},
                         key=lambda item: (item.cluster or "", item.code))),
            tuple(sorted(self.findings, key=lambda item: (SEVERITIES.index(item.severity), item.code not in FIRST, item.code,
                                                          item.cluster or "", item.host or "", item.component or ""))))


def _of_cluster(fault: Fault, cluster: Cluster) -> list[Outcome]:
    try:
        return [_as_of_now(fault, cluster, outcome) for outcome in fault.cluster(cluster)] if fault.cluster else []
    except UNFORESEEN as error:
        where = cluster.api_host or next((host.host for host in cluster.hosts), "cluster API")
        return [Outcome((), (Missing(where, "judging", "error"),), note=unforeseen(error))]


def _as_of_now(fault: Fault, cluster: Cluster, outcome: Outcome) -> Outcome:
    """The outcome; unknown instead of clear where the API holds only the past. Clocks that differ are named as the reason."""
    if fault.present and outcome.verdict == "unknown" and not outcome.note:
        return outcome._replace(note=ages.clocks(cluster).doubt)
    if not fault.present or outcome.verdict != "clear" or not writes.refused(cluster):
        return outcome
    where = cluster.api_host or "cluster API"
    return outcome._replace(missing=(Missing(where, fault.cluster_needs[-1], "error"),), note=FROZEN)


def _short(key: str | None) -> str | None:
    return key[:KEY_DIGITS] if key else None


def _host_row(cluster: Cluster, host: Host) -> HostRow:
    if host in cluster.members:
        role = "control_plane"
    else:
        role = "worker" if cluster.key and (host.status == "ok" or "node" in host.groups) else "unknown"
    return HostRow(host.host, host.node, _short(cluster.key), role, host.status, host.reason)
