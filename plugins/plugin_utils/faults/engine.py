# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluate evidence documents: a pure function from documents to a result.

Documents are streamed. Node checks read one document at a time, cluster checks the small extracts
that are kept, so that memory does not grow with the size of the evidence, and slices of a fleet
merge to the same verdicts.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..evidence import contract
from ..evidence.answers.cluster.locks import Locks
from ..evidence.document import UNFORESEEN, one_line, unforeseen
from ..models import ages, membership, node_hosts, shared_kernel, writes
from ..models import cluster as model_cluster
from ..models.cluster import MAX_ERROR, Cluster, Host
from ..models.natural_order import natural
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
from . import CATALOGUE, measured_state
from .base import (
    CLEAR,
    CORE,
    UPGRADE,
    CheckResult,
    Detection,
    Fault,
    depends,
    not_applicable,
    unknown,
)

KEY_DIGITS = 16
COLLECT_AFTER = 10_000  # new objects
FROZEN = f"the cluster accepts no writes ({writes.CODE}): what the API holds is of before"
NOT_A_NODE = "KM905"
# What many hosts have in common: results that say no more, and those of what was not asked, by the
# reason.
PLAIN = {True: CLEAR, False: not_applicable("")}
NOT_ASKED = {
    "limit": unknown(Missing("", "host", "not_asked")),
    "tier": unknown(Missing("", "", "not_asked")),
}
_Results = list[tuple[Fault, CheckResult]]
_Skipped = tuple[str, str | None, str]  # code, cluster, reason


def evaluate(
    documents: Iterable[Mapping[str, Any]],
    faults: frozenset[str] | None = None,
    deep: bool = False,
    part: bool = False,
    upgrade_to: tuple[int, int] | None = None,
) -> Result:
    """Return the verdict of every fault (or of the codes in faults) over evidence documents."""
    return evaluate_clusters(documents, faults, deep, part, upgrade_to)[0]


def evaluate_clusters(
    documents: Iterable[Mapping[str, Any]],
    faults: frozenset[str] | None = None,
    deep: bool = False,
    part: bool = False,
    upgrade_to: tuple[int, int] | None = None,
) -> tuple[Result, list[Cluster]]:
    """Return the verdicts, and the clusters that they were evaluated on.

    Args:
        documents: the evidence of hosts and of the API.
        faults: the codes to evaluate, or None for all that concern the present release.
        deep: whether deep collectors ran; without them faults that need one are not evaluated.
        part: whether these are only some hosts of their clusters. Cluster checks are then left
            to the merge of all parts.
        upgrade_to: the minor release of an upgrade, or None for the one that follows.
    """
    selection = _Selection.select_faults(faults, deep, part)
    with _rare_collections():
        return _evaluated(documents, selection, upgrade_to)


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Let Python look for cycles of objects less often than it does.

    Judging makes hardly any, keeps objects of each host, and each look goes through many of these.
    """
    former = gc.get_threshold()
    if former[0]:
        gc.set_threshold(max(former[0], COLLECT_AFTER), *former[1:])
    try:
        yield
    finally:
        gc.set_threshold(*former)


def _evaluated(
    documents: Iterable[Mapping[str, Any]],
    selection: _Selection,
    upgrade_to: tuple[int, int] | None,
) -> tuple[Result, list[Cluster]]:
    """Return the verdicts, and the clusters that they were evaluated on."""
    hosts: list[Host] = []
    api: list[Mapping[str, Any]] = []
    by_host: dict[str, _Results] = {}
    for document in documents:
        if document.get("kind") == "cluster":
            api.append(document)
            continue
        host, by_host_results = selection.evaluate_host(contract.checked(document))
        hosts.append(host)
        by_host[host.host] = by_host_results
    builder = _ResultBuilder(selection)
    clusters_found = assembled(hosts, api)
    for cluster in clusters_found:
        cluster.upgrade_to = upgrade_to
        builder.enter_cluster(cluster, by_host)
    return builder.result(clusters_found), clusters_found


def extract(document: Mapping[str, Any]) -> Host:
    """Return the extract of one host, whatever the shape of its evidence."""
    return _evaluate_host(contract.checked(document), [])[0]


@dataclass(frozen=True)
class _Selection:
    """The faults that a run evaluates.

    early: deep faults of which a plain run reports only that they are present.
    skipped: what is not evaluated.
    tier: the codes that count as evaluated for a host.
    """

    evaluated: list[Fault]
    early: list[Fault]
    skipped: list[_Skipped]
    tier: list[str]

    @classmethod
    def select_faults(cls, codes: frozenset[str] | None, deep: bool, part: bool) -> _Selection:
        """Select the faults with these codes (None: all) that such a run can evaluate."""
        selected = [fault for fault in CATALOGUE.values() if _is_selected(fault, codes)]
        tier = [code for code, fault in CATALOGUE.items() if _is_in_tier(fault, deep)]
        reasons = {fault.code: _skip_reason(fault, tier, part) for fault in selected}
        skipped: list[_Skipped] = [
            (code, None, reason) for code, reason in reasons.items() if reason
        ]
        evaluated = [fault for fault in selected if not reasons[fault.code]]
        early = [fault for fault in selected if fault.sooner and fault not in evaluated]
        return cls(evaluated, early, skipped, tier)

    def evaluate_host(self, document: Mapping[str, Any]) -> tuple[Host, _Results]:
        """Return the extract of one host, and the results of the node checks."""
        host, results = _evaluate_host(document, self.evaluated)
        early = _early_results(self.early, host, document)
        results += [(fault, outcome) for fault, outcome in early if outcome.hits]
        return host, results


def _is_selected(fault: Fault, codes: frozenset[str] | None) -> bool:
    if codes is None:
        return fault.tier != UPGRADE
    return fault.code in codes


def _is_in_tier(fault: Fault, deep: bool) -> bool:
    return fault.tier == CORE or (deep and fault.tier != UPGRADE)


def _skip_reason(fault: Fault, tier: list[str], part: bool) -> str:
    """Return why a run cannot evaluate a fault, or "" if it can."""
    if part and fault.cluster:
        return "slice"
    if fault.code not in tier and fault.tier != UPGRADE:
        return "tier"
    return ""


def _evaluate_host(document: Mapping[str, Any], faults: list[Fault]) -> tuple[Host, _Results]:
    try:
        host = model_cluster.host_of(document)
        return host, _node_results(faults, host, document)
    except UNFORESEEN as error:
        host = model_cluster.unjudged(document, unforeseen(error))
        return host, _node_results(faults, host, {"host": host.host, "collectors": {}})


def _early_results(faults: list[Fault], host: Host, document: Mapping[str, Any]) -> _Results:
    """Return the results of deep checks in a plain run; one that fails takes nothing with it."""
    if host.status == "ok":
        with contextlib.suppress(*UNFORESEEN):
            return _node_results(faults, host, document)
    return _evaluate_host(document, faults)[1]


def _node_results(faults: list[Fault], host: Host, document: Mapping[str, Any]) -> _Results:
    checks = [(fault, fault.node) for fault in faults if fault.node is not None]
    return [
        (fault, _kept(fault, host, outcome))
        for fault, check in checks
        for outcome in check(host, document)
    ]


def _kept(fault: Fault, host: Host, outcome: CheckResult) -> CheckResult:
    """Return what is kept of a result of this host until its cluster is known.

    Hits tell what the host measured. Most results of a fleet say nothing of their own: all hosts
    share one of those.
    """
    if outcome.hits:
        hits = tuple(measured_state.of_node(hit, host, fault.code) for hit in outcome.hits)
        return outcome._replace(hits=hits)
    if outcome.missing:
        reason = _why_not_asked(outcome)
        return NOT_ASKED[reason] if outcome.applies and reason else outcome
    of_its_own = outcome.component or outcome.note or outcome.settled
    if not of_its_own and outcome.host in (None, host.host):
        return PLAIN[outcome.applies]
    return outcome


def assembled(hosts: list[Host], api: Iterable[Mapping[str, Any]]) -> list[Cluster]:
    """Return the clusters of these hosts.

    Evidence that keeps them from being assembled counts as an error of its host.
    """
    api = [contract.checked(document) for document in api]
    try:
        return membership.assemble(hosts, api)
    except UNFORESEEN as error:
        reason = unforeseen(error)
    usable = [
        host if _assembles([host], []) else model_cluster.unjudged(vars(host), reason)
        for host in hosts
    ]
    return membership.assemble(usable, [_usable(document, usable, reason) for document in api])


def _usable(document: Mapping[str, Any], hosts: list[Host], reason: str) -> Mapping[str, Any]:
    """Return an answer of the API, or an error in its place if it cannot be assembled."""
    if _assembles(hosts, [document]):
        return document
    return {**document, "status": "error", "reason": reason, "collectors": {}}


def _assembles(hosts: list[Host], api: list[Mapping[str, Any]]) -> bool:
    try:
        membership.assemble(hosts, api)
    except UNFORESEEN:
        return False
    return True


def _may_cause(cause: Finding, finding: Finding) -> bool:
    """Tell whether one finding may explain another one, and not the other way round.

    A finding of the same fault may if the other one's component needs its component, on the same
    host. Of two faults that may explain each other, the one whose component is named is the cause.
    """
    if cause.code == finding.code:
        return cause.host == finding.host and depends(finding.component, cause.component)
    if (finding.code, finding.component) not in CATALOGUE[cause.code].explained_by:
        return True
    is_named = (cause.code, cause.component) in CATALOGUE[finding.code].explained_by
    return is_named and bool(cause.component) and not finding.component


def _same_place(cause: Finding, finding: Finding) -> bool:
    """Tell whether a cause concerns a component, or the node of the finding that it explains."""
    if CATALOGUE[finding.code].same_node and None not in (cause.node, finding.node):
        return cause.node == finding.node
    if cause.component or finding.node is None:
        return True
    return cause.node in (None, finding.node) or finding.host in cause.hosts


class _ResultBuilder:
    """Collects the results of checks as verdicts and findings."""

    def __init__(self, selection: _Selection) -> None:
        self.selection = selection
        self.verdicts: list[Verdict] = []
        self.findings: list[Finding] = []
        self.not_judged: set[_Skipped] = set(selection.skipped)
        # of a finding, by its id: what its kernel shares, and its rank
        self.kernels: dict[str, tuple[tuple[Any, ...], int]] = {}
        # what a host answers for all hosts of its kernel, and which host
        self.settled: dict[tuple[Any, ...], str] = {}
        self.coverage: list[Coverage] = []
        self.lacks: list[Lack] = []
        self.judged: dict[str, int] = {}  # of each host, how many faults of the tier

    def enter_cluster(self, cluster: Cluster, by_host: dict[str, _Results]) -> None:
        """Add the verdicts of a cluster's hosts and of the cluster itself."""
        key = _short(cluster.key)
        strange = node_hosts.not_nodes(cluster)
        if strange:
            self._enter_strangers(key, replace(cluster, hosts=strange))
            nodes = [host for host in cluster.hosts if host not in strange]
            cluster = replace(cluster, hosts=nodes)
            if not cluster.hosts:
                return
        count = _Count(cluster, self.selection.evaluated)
        for host in cluster.hosts:
            # taken out: of a large fleet, memory is for the results or for the verdicts
            for fault, outcome in by_host.pop(host.host, ()):
                self._enter(key, fault, outcome, host.host)
                count.node(host, fault.code, outcome)
        for fault in self.selection.evaluated:
            for outcome in _of_cluster(fault, cluster):
                self._enter(key, fault, outcome)
                count.cluster(fault.code, outcome)
        shared_kernel.merge(self.findings, self.verdicts, key, self.kernels, self.settled)
        self.judged.update(count.of_tier(self.selection.tier))
        self._link(key)
        self.coverage.append(node_hosts.coverage(cluster, key))
        self.lacks += _lacks(cluster, key, count.lacking)

    def _enter_strangers(self, key: str | None, cluster: Cluster) -> None:
        """Add the one verdict of machines that are no node, also if its fault was not selected."""
        fault = CATALOGUE[NOT_A_NODE]
        for outcome in _of_cluster(fault, cluster):
            self._enter(key, fault, outcome)
        self.judged.update({host.host: 1 for host in cluster.hosts})

    def _link(self, key: str | None) -> None:
        """Name in each finding the findings of its cluster that explain it."""
        for index, finding in enumerate(self.findings):
            if finding.cluster == key and CATALOGUE[finding.code].explained_by:
                because = {*finding.because, *self._causes(finding)}
                self.findings[index] = replace(finding, because=tuple(sorted(because)))

    def _causes(self, finding: Finding) -> set[str]:
        explained_by = CATALOGUE[finding.code].explained_by
        candidates = [
            cause
            for cause in self.findings
            if cause.cluster == finding.cluster
            and not explained_by.isdisjoint({(cause.code, cause.component), (cause.code, None)})
        ]
        return {
            cause.code
            for cause in candidates
            if _may_cause(cause, finding) and _same_place(cause, finding)
        }

    def _enter(
        self, key: str | None, fault: Fault, outcome: CheckResult, host: str | None = None
    ) -> None:
        """Add the verdict and the findings of a result.

        host: whose node check gave it; host and component are known then also without its word
        """
        verdict, place, component = outcome.verdict, outcome.host, outcome.component
        if place is None:
            place = host
        if component is None and host is not None:
            component = fault.component
        if verdict == "unknown":
            reason = _why_not_asked(outcome)
            if reason:
                self.not_judged.add((fault.code, key, reason))
                return
        missing: tuple[Missing, ...] = ()
        if verdict in ("unknown", "present"):
            missing = outcome.missing
        self.verdicts.append(
            Verdict(fault.code, key, verdict, place, component, missing, outcome.note)
        )
        if place:
            self.settled.update(dict.fromkeys(outcome.settled, place))
        for hit in outcome.hits:
            finding = _finding(fault, key, hit)
            self.findings.append(finding)
            if hit.kernel:
                self.kernels[finding.id] = hit.kernel, hit.rank

    def result(self, assembled_clusters: list[Cluster]) -> Result:
        """Return everything that was entered, sorted."""
        host_rows = [
            _host_row(cluster, host, self.judged.get(host.host, 0))
            for cluster in assembled_clusters
            for host in cluster.hosts
        ]
        requested_rows = [row for row in host_rows if row.status != "not_asked"]
        return Result(
            tuple(
                _cluster_row(cluster)
                for cluster in assembled_clusters
                if cluster.key or cluster.hosts
            ),
            tuple(sorted(requested_rows, key=lambda row: natural(row.host))),
            tuple(_ordered(self.verdicts)),
            tuple(sorted(self._open(), key=lambda item: (item.cluster or "", item.code))),
            tuple(sorted(self.findings, key=_finding_order)),
            len(self.selection.tier),
            tuple(self.coverage),
            tuple(self.lacks),
        )

    def _open(self) -> set[NotJudged]:
        """Return what was evaluated nowhere, although it was selected."""
        judged = {
            (verdict.code, verdict.cluster)
            for verdict in self.verdicts
            if verdict.verdict != "not_applicable"
        }
        present = {verdict.code for verdict in self.verdicts if verdict.verdict == "present"}
        rows = {NotJudged(*row) for row in self.not_judged if row[:2] not in judged}
        return {row for row in rows if row.cluster or row.code not in present}


def _why_not_asked(outcome: CheckResult) -> str:
    """Return why nothing was asked of what a result lacks, or "" where something was."""
    reason = "tier"
    for missing in outcome.missing:
        if missing.status != "not_asked":
            return ""
        if missing.collector == "host":
            reason = "limit"
    return reason


def _finding(fault: Fault, key: str | None, hit: Detection) -> Finding:
    risk = fault.risk
    if hit.risk is not None:
        risk = hit.risk
    return Finding(
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
        risk,
        hit.command,
    )


def _cluster_row(cluster: Cluster) -> ClusterRow:
    names = tuple(host.host for host in cluster.hosts)
    return ClusterRow(_short(cluster.key) or UNPROVEN, cluster.version, names)


def _ordered(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return verdicts by cluster, fault, host and component.

    Of a large fleet they are a million: it is sorted by one after the other, from the last, since a
    key for each would take as much memory as the verdicts.
    """
    hosts = sorted({verdict.host for verdict in verdicts}, key=natural)
    ranks = {host: rank for rank, host in enumerate(hosts)}
    rows = sorted(verdicts, key=lambda verdict: verdict.component or "")
    rows.sort(key=lambda verdict: ranks[verdict.host])
    rows.sort(key=lambda verdict: verdict.code)
    rows.sort(key=lambda verdict: verdict.cluster or "~")
    return rows


def _finding_order(finding: Finding) -> tuple[Any, ...]:
    return (
        SEVERITIES.index(finding.severity),
        finding.code not in FIRST,
        finding.code,
        finding.cluster or "",
        natural(finding.host),
        finding.component or "",
    )


class _Count:
    """Counts what of each host was not evaluated, and collects what the verdicts lack."""

    def __init__(self, cluster: Cluster, faults: list[Fault]) -> None:
        self._evaluated = {fault.code for fault in faults}
        self._open: dict[str, set[str]] = {host.host: set() for host in cluster.hosts}
        self.lacking: dict[tuple[str, str, str], None] = {}

    def node(self, host: Host, code: str, outcome: CheckResult) -> None:
        """Count the result of a node check."""
        if outcome.verdict == "unknown":
            self._open[host.host].add(code)
            self._note(outcome)

    def cluster(self, code: str, outcome: CheckResult) -> None:
        """Count the result of a cluster check.

        It is open for its own host, else for the hosts that owe evidence, and for all of them if
        nothing is known about the cluster.
        """
        if outcome.verdict not in ("unknown", "present"):
            return
        for name in self._owing(outcome):
            if name in self._open:
                self._open[name].add(code)
        self._note(outcome)

    def _owing(self, outcome: CheckResult) -> list[str]:
        if outcome.verdict == "present":
            return [missing.host for missing in outcome.missing]
        if outcome.host is None:
            return list(self._open)
        return [str(outcome.host)]

    def _note(self, outcome: CheckResult) -> None:
        for missing in outcome.missing:
            if missing.status in ("not_asked", "ok"):
                continue
            status = missing.status
            if not isinstance(status, str):  # nodes and the API may give a value of any type
                status = "error"
            self.lacking[(missing.host, missing.collector, status)] = None

    def of_tier(self, tier: list[str]) -> dict[str, int]:
        """Return how many faults of the tier were evaluated for each host."""
        evaluated = self._evaluated.intersection(tier)
        return {host: len(evaluated - codes) for host, codes in self._open.items()}


def _is_frozen(cluster: Cluster, collector: str) -> bool:
    """Tell whether the API answered, but with old contents because nothing is written."""
    record = cluster.api.get(collector)
    answered = isinstance(record, Mapping) and record.get("status") == "ok"
    return answered and writes.refused(cluster)


def _lacks(
    cluster: Cluster, key: str | None, lacking: Iterable[tuple[str, str, str]]
) -> list[Lack]:
    """Return each collector without an answer, with the reason that it gave."""
    hosts = {host.host: host for host in cluster.hosts}
    servers = {str(server.address): server for server in cluster.typed(Locks).servers}
    lacks = []
    for place, collector, status in sorted(lacking):
        host = hosts.get(place)
        if _has_own_row(cluster, host, collector):
            continue
        reason = _lack_reason(cluster, host, place, collector)
        if not reason and place in servers:
            reason = one_line(servers[place].error or "", MAX_ERROR)
        lacks.append(Lack(key, place, collector, status, reason))
    return lacks


def _has_own_row(cluster: Cluster, host: Host | None, collector: str) -> bool:
    """Tell whether a lack is that of a host that did not answer, which the report lists itself."""
    if collector in ("host", "inventory"):
        return True
    return host is not None and host.status != "ok" and collector not in cluster.api


def _lack_reason(cluster: Cluster, host: Host | None, place: str, collector: str) -> str:
    """Return why a collector of a host or of the API gave no answer, or ""."""
    if host is not None and host.errors.get(collector):
        return host.errors[collector]
    is_of_host = host is not None and collector in host.statuses
    if place != cluster.api_host or is_of_host:
        return ""
    return _lack_reason_of_api(cluster, collector)


def _lack_reason_of_api(cluster: Cluster, collector: str) -> str:
    """Return why a collector of the API gave no answer, or ""."""
    if collector in cluster.api:
        error = one_line(cluster.api[collector].get("error") or "", MAX_ERROR)
        if error:
            return error
    if cluster.api_status not in ("ok", "not_asked"):
        reason = one_line(cluster.api_reason, MAX_ERROR)
        if reason:
            return reason
    if _is_frozen(cluster, collector):
        return FROZEN
    return ""


def _of_cluster(fault: Fault, cluster: Cluster) -> list[CheckResult]:
    if fault.cluster is None:
        return []
    try:
        return [
            _as_of_now(fault, cluster, _measured(outcome, cluster))
            for outcome in fault.cluster(cluster)
        ]
    except UNFORESEEN as error:
        place = cluster.api_host or next((host.host for host in cluster.hosts), "cluster API")
        return [unknown(Missing(place, "judging", "error"), note=unforeseen(error))]


def _measured(outcome: CheckResult, cluster: Cluster) -> CheckResult:
    """Return a result whose hits tell what their hosts measured."""
    if not outcome.hits:
        return outcome
    hosts = {host.host: host for host in cluster.hosts}
    hits = tuple(measured_state.of_cluster(hit, hosts) for hit in outcome.hits)
    return outcome._replace(hits=hits)


def _as_of_now(fault: Fault, cluster: Cluster, outcome: CheckResult) -> CheckResult:
    """Return the result, unknown instead of clear where the API holds only the past.

    Clocks that differ are named as the reason.
    """
    if not fault.current_only:
        return outcome
    if outcome.verdict == "unknown" and not outcome.note:
        return outcome._replace(note=ages.clocks(cluster).doubt)
    if outcome.verdict != "clear" or not writes.refused(cluster):
        return outcome
    missing = cluster.missing_answer(fault.cluster_needs[-1], "error")
    return outcome._replace(missing=(missing,), note=FROZEN)


def _short(key: str | None) -> str | None:
    if not key:
        return None
    return key[:KEY_DIGITS]


def _host_row(cluster: Cluster, host: Host, judged: int) -> HostRow:
    return HostRow(
        host.host,
        host.node,
        _short(cluster.key),
        _role(cluster, host),
        host.status,
        host.reason,
        judged,
    )


def _role(cluster: Cluster, host: Host) -> str:
    if host in cluster.members:
        return "control_plane"
    if cluster.key and (host.status == "ok" or "node" in host.groups):
        return "worker"
    return "unknown"
