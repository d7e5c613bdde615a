# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judging, a pure function from evidence documents to a result.

Documents are streamed: node faults see one document at a time, cluster faults see the small
extracts that are kept, so that memory does not grow with the size of the evidence and slices of a
fleet merge to the same verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..evidence import contract
from ..evidence.document import UNFORESEEN, one_line, unforeseen
from ..models import ages, membership, node_hosts, shared_kernel, writes
from ..models import cluster as clusters
from ..models.cluster import MAX_ERROR, Cluster, Host
from ..models.result import (
    FIRST,
    SEVERITIES,
    UNPROVEN,
    ClusterRow,
    Coverage,
    Finding,
    HostRow,
    Lack,
    Missing,
    NotJudged,
    Result,
    Verdict,
)
from . import CATALOGUE
from .base import Fault, Outcome, depends

KEY_DIGITS = 16
FROZEN = f"the cluster accepts no writes ({writes.CODE}): what the API holds is of before"
NOT_A_NODE = "KM905"


def judge(
    documents: Iterable[Mapping[str, Any]],
    faults: frozenset[str] | None = None,
    deep: bool = False,
    part: bool = False,
) -> Result:
    """The verdict of every fault (or of the codes in faults) over these evidence documents."""
    return examine(documents, faults, deep, part)[0]


def examine(
    documents: Iterable[Mapping[str, Any]],
    faults: frozenset[str] | None = None,
    deep: bool = False,
    part: bool = False,
) -> tuple[Result, list[Cluster]]:
    """The verdicts, and the clusters that they were judged on, from which a plan is made.

    deep: whether collectors of the deep tier were asked; faults that need them are otherwise not
    judged. part: whether these are some hosts of their clusters only; what is of a whole cluster is
    left to whoever puts all of them together.
    """
    chosen = [fault for code, fault in CATALOGUE.items() if faults is None or code in faults]
    judged = [
        fault for fault in chosen if (deep or fault.tier == "core") and not (part and fault.cluster)
    ]
    sooner = [fault for fault in chosen if fault.sooner and fault not in judged]
    hosts: list[Host] = []
    api: list[Mapping[str, Any]] = []
    by_host: dict[str, list[tuple[Fault, Outcome]]] = {}
    for document in documents:
        if document.get("kind") == "cluster":
            api.append(document)
            continue
        evidence = contract.checked(document)
        host, outcomes = _of_host(evidence, judged)
        if sooner:
            outcomes += [
                (fault, outcome) for fault, outcome in _of_host(evidence, sooner)[1] if outcome.hits
            ]
        hosts.append(host)
        by_host[host.host] = outcomes
    tier = [code for code, fault in CATALOGUE.items() if deep or fault.tier == "core"]
    book = _Book(tier)
    book.not_judged.extend(
        NotJudged(fault.code, None, "slice" if part and fault.cluster else "tier")
        for fault in chosen
        if fault not in judged
    )
    found = assembled(hosts, api)
    for cluster in found:
        book.enter_cluster(cluster, judged, by_host)
    return book.result(found), found


def extract(document: Mapping[str, Any]) -> Host:
    """One host's extract, whatever the shape of its evidence."""
    return _of_host(contract.checked(document), [])[0]


def _of_host(
    document: Mapping[str, Any], judged: list[Fault]
) -> tuple[Host, list[tuple[Fault, Outcome]]]:
    """One host's extract, and what the faults of nodes say of it."""
    try:
        host = clusters.host_of(document)
        return host, _outcomes(judged, host, document)
    except UNFORESEEN as error:
        host = clusters.unjudged(document, unforeseen(error))
        return host, _outcomes(judged, host, {"host": host.host, "collectors": {}})


def _outcomes(
    judged: list[Fault], host: Host, document: Mapping[str, Any]
) -> list[tuple[Fault, Outcome]]:
    return [
        (fault, outcome) for fault in judged if fault.node for outcome in fault.node(host, document)
    ]


def assembled(hosts: list[Host], api: list[Mapping[str, Any]]) -> list[Cluster]:
    """The clusters of these hosts.

    Whichever evidence keeps them from being put together counts as an error of its host.
    """
    api = [contract.checked(document) for document in api]
    try:
        return membership.assemble(hosts, api)
    except UNFORESEEN as error:
        why = unforeseen(error)
    hosts = [host if _stands([host], []) else clusters.unjudged(vars(host), why) for host in hosts]
    return membership.assemble(
        hosts,
        [
            (
                document
                if _stands(hosts, [document])
                else {**document, "status": "error", "reason": why, "collectors": {}}
            )
            for document in api
        ],
    )


def _stands(hosts: list[Host], api: list[Mapping[str, Any]]) -> bool:
    try:
        membership.assemble(hosts, api)
    except UNFORESEEN:
        return False
    return True


def _may_cause(cause: Finding, finding: Finding) -> bool:
    """Tell whether one finding may explain another one, and not the other way round.

    Of the same fault it may where the finding's component needs the other one, on the same node.
    """
    if cause.code == finding.code:
        return cause.host == finding.host and depends(finding.component, cause.component)
    return (finding.code, finding.component) not in CATALOGUE[cause.code].explained_by


class _Book:
    """Collects outcomes as verdicts and findings."""

    def __init__(self, tier: list[str]) -> None:
        self.verdicts: list[Verdict] = []
        self.findings: list[Finding] = []
        self.not_judged: list[NotJudged] = []
        # of a finding, by its id: what its kernel shares, and its rank
        self.kernels: dict[str, tuple[tuple[Any, ...], int]] = {}
        # what a host answers for all hosts of its kernel, and which host
        self.settled: dict[tuple[Any, ...], str] = {}
        self.coverage: list[Coverage] = []
        self.lacks: list[Lack] = []
        self.tier = tier
        self.judged: dict[str, int] = {}  # of each host, how many faults of the tier

    def enter_cluster(
        self,
        cluster: Cluster,
        judged: list[Fault],
        by_host: Mapping[str, list[tuple[Fault, Outcome]]],
    ) -> None:
        key = _short(cluster.key)
        strange = node_hosts.not_nodes(cluster)
        if strange:
            self._enter_strangers(key, replace(cluster, hosts=strange))
            cluster = replace(
                cluster, hosts=[host for host in cluster.hosts if host not in strange]
            )
            if not cluster.hosts:
                return
        count = _Count(cluster, judged)
        for host in cluster.hosts:
            for fault, outcome in by_host[host.host]:
                self._enter(key, fault, outcome)
                count.node(host, fault.code, outcome)
        for fault in judged:
            for outcome in _of_cluster(fault, cluster):
                self._enter(key, fault, outcome)
                count.cluster(fault.code, outcome)
        shared_kernel.merge(self.findings, self.verdicts, key, self.kernels, self.settled)
        self.judged.update(count.of_tier(self.tier))
        self._link(key)
        self.coverage.append(node_hosts.coverage(cluster, key))
        self.lacks += _lacks(cluster, key, count.lacking)

    def _enter_strangers(self, key: str | None, cluster: Cluster) -> None:
        """Machines that are no node.

        This one verdict, also where the operator chose other faults.
        """
        fault = CATALOGUE[NOT_A_NODE]
        for outcome in _of_cluster(fault, cluster):
            self._enter(key, fault, outcome)
        self.judged.update({host.host: 1 for host in cluster.hosts})

    def _link(self, key: str | None) -> None:
        """Name in a symptom's finding the faults that explain it.

        Those of its cluster's components, and of its own host.
        """
        for index, finding in enumerate(self.findings):
            explained = CATALOGUE[finding.code].explained_by
            if finding.cluster == key and explained:
                causes = {
                    item.code
                    for item in self.findings
                    if item.cluster == key
                    and {(item.code, item.component), (item.code, None)} & explained
                    and _may_cause(item, finding)
                    and (
                        item.component
                        or finding.node is None
                        or item.node in (None, finding.node)
                        or finding.host in item.hosts
                    )
                }
                self.findings[index] = replace(
                    finding, because=tuple(sorted({*finding.because, *causes}))
                )

    def _enter(self, key: str | None, fault: Fault, outcome: Outcome) -> None:
        if outcome.verdict == "unknown" and all(
            item.status == "not_asked" for item in outcome.missing
        ):
            left_out = any(item.collector == "host" for item in outcome.missing)
            self.not_judged.append(NotJudged(fault.code, key, "limit" if left_out else "tier"))
            return
        self.verdicts.append(
            Verdict(
                fault.code,
                key,
                outcome.verdict,
                outcome.host,
                outcome.component,
                outcome.missing if outcome.verdict in ("unknown", "present") else (),
                outcome.note,
            )
        )
        self.settled.update((token, outcome.host) for token in outcome.settled if outcome.host)
        for hit in outcome.hits:
            self.findings.append(
                Finding(
                    fault.code,
                    hit.severity or fault.severity,
                    key,
                    hit.host,
                    hit.component,
                    hit.summary,
                    hit.node,
                    hit.because,
                    hit.evidence,
                    hit.remedy,
                    fault.risk if hit.risk is None else hit.risk,
                    hit.command,
                )
            )
            if hit.kernel:
                self.kernels[self.findings[-1].id] = hit.kernel, hit.rank

    def result(self, found: list[Cluster]) -> Result:
        judged = {
            (verdict.code, verdict.cluster)
            for verdict in self.verdicts
            if verdict.verdict != "not_applicable"
        }
        present = {verdict.code for verdict in self.verdicts if verdict.verdict == "present"}
        return Result(
            tuple(
                ClusterRow(
                    _short(item.key) or UNPROVEN,
                    item.version,
                    tuple(host.host for host in item.hosts),
                )
                for item in found
                if item.key or item.hosts
            ),
            tuple(
                sorted(
                    (
                        _host_row(item, host, self.judged.get(host.host, 0))
                        for item in found
                        for host in item.hosts
                        if host.status != "not_asked"
                    ),
                    key=lambda row: row.host,
                )
            ),
            tuple(
                sorted(
                    self.verdicts,
                    key=lambda item: (
                        item.cluster or "~",
                        item.code,
                        item.host or "",
                        item.component or "",
                    ),
                )
            ),
            tuple(
                sorted(
                    {
                        item
                        for item in self.not_judged
                        if (item.code, item.cluster) not in judged
                        and (item.cluster or item.code not in present)
                    },
                    key=lambda item: (item.cluster or "", item.code),
                )
            ),
            tuple(
                sorted(
                    self.findings,
                    key=lambda item: (
                        SEVERITIES.index(item.severity),
                        item.code not in FIRST,
                        item.code,
                        item.cluster or "",
                        item.host or "",
                        item.component or "",
                    ),
                )
            ),
            len(self.tier),
            tuple(self.coverage),
            tuple(self.lacks),
        )


class _Count:
    """What of each host of a cluster was not judged, and what the verdicts lack."""

    def __init__(self, cluster: Cluster, judged: list[Fault]) -> None:
        self._asked = {fault.code for fault in judged}
        self._open: dict[str, set[str]] = {host.host: set() for host in cluster.hosts}
        self.lacking: dict[tuple[str, str, str], None] = {}

    def node(self, host: Host, code: str, outcome: Outcome) -> None:
        if outcome.verdict == "unknown":
            self._open[host.host].add(code)
            self._note(outcome)

    def cluster(self, code: str, outcome: Outcome) -> None:
        """Open for its own host; else for the hosts that owe evidence, and for all of them where
        it is not known of the cluster.
        """
        if outcome.verdict not in ("unknown", "present"):
            return
        # the API may call a server what it likes
        owing = [str(lack.host) for lack in outcome.missing]
        if outcome.verdict == "unknown":
            owing = list(self._open) if outcome.host is None else [str(outcome.host)]
        for place in owing:
            if place in self._open:
                self._open[place].add(code)
        self._note(outcome)

    def _note(self, outcome: Outcome) -> None:
        for lack in outcome.missing:
            if lack.status not in ("not_asked", "ok"):
                # What a node or the API says may be of any type.
                status = lack.status if isinstance(lack.status, str) else "error"
                self.lacking[(str(lack.host), lack.collector, status)] = None

    def of_tier(self, tier: list[str]) -> dict[str, int]:
        asked = self._asked.intersection(tier)
        return {host: len(asked - left) for host, left in self._open.items()}


def _is_frozen(cluster: Cluster, collector: str) -> bool:
    """Tell whether the API answered this, and what it holds is old because nothing is written."""
    record = cluster.api.get(collector)
    answered = isinstance(record, Mapping) and record.get("status") == "ok"
    return answered and writes.refused(cluster)


def _lacks(
    cluster: Cluster, key: str | None, wanting: Iterable[tuple[str, str, str]]
) -> list[Lack]:
    """Each collector that gave no answer, with what it said.

    Hosts that did not answer say it themselves.
    """
    hosts = {host.host: host for host in cluster.hosts}
    servers = {str(row.get("address")): row for row in cluster.rows("locks", "servers")}
    found = []
    for place, collector, status in sorted(wanting):
        host = hosts.get(place)
        if collector in ("host", "inventory") or (
            host is not None and host.status != "ok" and collector not in cluster.api
        ):
            continue
        reason = host.errors.get(collector, "") if host is not None else ""
        if place == cluster.api_host and collector in cluster.api:
            reason = reason or one_line(cluster.api[collector].get("error") or "", MAX_ERROR)
        if (
            place == cluster.api_host
            and not reason
            and cluster.api_status not in ("ok", "not_asked")
        ):
            reason = one_line(cluster.api_reason, MAX_ERROR)
        if not reason and place == cluster.api_host and _is_frozen(cluster, collector):
            reason = FROZEN
        if not reason and place in servers:
            reason = one_line(servers[place].get("error") or "", MAX_ERROR)
        found.append(Lack(key, place, collector, status, reason))
    return found


def _of_cluster(fault: Fault, cluster: Cluster) -> list[Outcome]:
    try:
        return (
            [_as_of_now(fault, cluster, outcome) for outcome in fault.cluster(cluster)]
            if fault.cluster
            else []
        )
    except UNFORESEEN as error:
        where = cluster.api_host or next((host.host for host in cluster.hosts), "cluster API")
        return [Outcome((), (Missing(where, "judging", "error"),), note=unforeseen(error))]


def _as_of_now(fault: Fault, cluster: Cluster, outcome: Outcome) -> Outcome:
    """The outcome; unknown instead of clear where the API holds only the past.

    Clocks that differ are named as the reason.
    """
    if fault.present and outcome.verdict == "unknown" and not outcome.note:
        return outcome._replace(note=ages.clocks(cluster).doubt)
    if not fault.present or outcome.verdict != "clear" or not writes.refused(cluster):
        return outcome
    where = cluster.api_host or "cluster API"
    return outcome._replace(
        missing=(Missing(where, fault.cluster_needs[-1], "error"),), note=FROZEN
    )


def _short(key: str | None) -> str | None:
    return key[:KEY_DIGITS] if key else None


def _host_row(cluster: Cluster, host: Host, judged: int) -> HostRow:
    if host in cluster.members:
        role = "control_plane"
    else:
        role = (
            "worker"
            if cluster.key and (host.status == "ok" or "node" in host.groups)
            else "unknown"
        )
    return HostRow(
        host.host, host.node, _short(cluster.key), role, host.status, host.reason, judged
    )
