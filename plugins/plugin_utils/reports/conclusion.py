# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The claims of a report, not escaped.

They say which hosts are healthy, which were not audited, and why answers are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...module_utils.shared.text import counted
from ..models import node_hosts
from ..models import result as model_result
from ..planning.plan import Step
from . import host_names, phrases
from .run_info import Run

HEALTHY = "healthy"
MANUAL = "manual"
CODES_SHOWN = 4
LONG_REASON = 40  # characters; a short one may stand twice
NOT_AUDITED = {
    node_hosts.NO_HOST: "not in this inventory",
    "limit": "not asked (--limit)",
    "unreachable": "did not answer",
    "error": "gave no evidence",
    "group": "in the inventory, but in no group that kubemend uses",
    "pattern": "in the inventory, but not named by kubemend_hosts",
}
IN_REPLAY = {node_hosts.NO_HOST: "no evidence of"}
WAYS_OUT = {
    "denied": "kubemend_become and the rights in docs/rights.md decide what may be read",
    "timeout": "a higher kubemend_timeout gives it more time",
    "error": "correct what it names and audit again",
    "starting": "audit again in three minutes",
}
NOTES = "audit again; where it stays, see the notes of that host"
# A collector that answered, of which a part is missing.
PARTS = {
    "denied": "a part of it may not be read",
    "timeout": "a part of it came too late, or the list was cut",
    "error": "a part of it cannot be used",
    "starting": "a start or a change of these minutes may not be complete yet",
}


def about_hosts(
    hosts: Iterable[model_result.HostRow],
    findings: Sequence[model_result.Finding],
    result: model_result.Result,
    run: Run,
) -> dict[str, list[str]]:
    """Group hosts without a finding: healthy ones, and those with how many faults were judged."""
    findings = list(findings)
    troubled = _troubled_hosts(findings)
    may_be_healthy = (
        _is_whole_audit(result, run)
        and phrases.may_be_healthy(findings)
        and not any(map(_is_critical_without_host, findings))
    )
    names_by_text: dict[str, list[str]] = {}
    for row in hosts:
        if row.status != "ok" or row.host in troubled:
            continue
        text = _no_finding(row, result)
        if may_be_healthy and _is_whole(row, result):
            text = HEALTHY
        names_by_text.setdefault(text, []).append(row.host)
    return dict(sorted(names_by_text.items(), key=lambda item: (item[0] != HEALTHY, item[0])))


def _troubled_hosts(findings: Iterable[model_result.Finding]) -> set[str | None]:
    troubled: set[str | None] = set()
    for finding in findings:
        troubled.update(finding.everywhere)
        if finding.host is None and not is_read_from_api(finding):
            troubled.update(proof.host for proof in finding.evidence)
    return troubled


def _is_critical_without_host(finding: model_result.Finding) -> bool:
    return finding.severity == "critical" and not (finding.host or finding.node)


def _no_finding(row: model_result.HostRow, result: model_result.Result) -> str:
    unproven = "no cluster proven, "
    if _is_proven(row.cluster):
        unproven = ""
    return f"no finding ({unproven}{row.judged} of {counted(result.faults, 'fault')} judged)"


def _is_proven(key: str | None) -> bool:
    return key not in (None, model_result.UNPROVEN)


def is_read_from_api(finding: model_result.Finding) -> bool:
    """Return whether one host read a finding from the API: it is no trouble of this host."""
    return (
        all(proof.kind == "api" for proof in finding.evidence)
        and len({proof.host for proof in finding.evidence}) == 1
    )


def _is_whole_audit(result: model_result.Result, run: Run) -> bool:
    """Return whether the run judged its whole tier, no symptom or kubemend_faults."""
    return run.symptom is None and run.faults is None and result.faults > 0


def _is_whole(row: model_result.HostRow, result: model_result.Result) -> bool:
    """Return whether all faults were judged on a host of a known cluster."""
    return row.judged == result.faults and _is_proven(row.cluster)


@dataclass(frozen=True)
class _Gaps:
    """What an audit without a problem did not evaluate; codes with their titles."""

    unknown: Mapping[str, str]
    skipped: Mapping[str, str]
    not_audited: list[str]
    partial_hosts: list[str]
    silent: bool

    def exist(self) -> bool:
        """Return whether anything was not evaluated."""
        return self.silent or any(
            (self.unknown, self.skipped, self.not_audited, self.partial_hosts)
        )

    def text(self) -> str:
        """Return what is missing."""
        parts = []
        if self.unknown:
            parts.append(f"unknown: {_codes(self.unknown)}")
        if self.skipped:
            parts.append(f"not judged: {_codes(self.skipped)}")
        if self.partial_hosts and not parts:
            parts.append(f"not all faults judged on {host_names.join(self.partial_hosts)}")
        if self.not_audited:
            parts.append(f"not audited: {host_names.join(self.not_audited)}")
        return "; ".join(parts) or "no host answered, or no API"


def _gaps(
    result: model_result.Result, answered: Collection[model_result.HostRow], run: Run
) -> _Gaps:
    unknown = {item.code for item in result.verdicts if item.verdict == "unknown"}
    # A fault of the deep tier that belongs to no cluster was not requested.
    skips = [item for item in result.not_judged if item.reason != "tier" or item.cluster]
    whole = {row.host for row in answered if _is_whole(row, result)}
    return _Gaps(
        _titles(unknown, run),
        _titles({item.code for item in skips} - unknown, run),
        sorted({name for item in result.coverage for name, _reason in item.left}),
        [row.host for row in answered if row.host not in whole],
        len(answered) < len(result.hosts) or _is_an_api_silent(result),
    )


def _is_an_api_silent(result: model_result.Result) -> bool:
    return any(item.nodes is None for item in result.coverage if _is_proven(item.cluster))


def conclusion(result: model_result.Result, run: Run) -> str:
    """Return the sentence for a whole audit without a problem; empty for any other run."""
    problems = any(item.state not in ("info", model_result.WAIVED) for item in result.findings)
    if problems or not _is_whole_audit(result, run):
        return ""
    answered = [row for row in result.hosts if row.status == "ok"]
    gaps = _gaps(result, answered, run)
    if not answered or gaps.exist():
        return f"{_known(result)}, but not everything was judged; {gaps.text()}."
    hosts = counted(len(answered), "host")
    return (
        f"No problems found{_waived(result)}: {counted(result.faults, 'fault')} judged on"
        f" {hosts}{_for_information(result)}."
    )


def _known(result: model_result.Result) -> str:
    """Return what is known of problems; a waived finding is one that is accepted."""
    count = _waived_count(result)
    if not count:
        return "No problem is known"
    verb = "is" if count == 1 else "are"
    return f"{counted(count, 'finding')} {verb} waived and no other problem is known"


def _waived_count(result: model_result.Result) -> int:
    return sum(item.waived is not None for item in result.findings)


def _waived(result: model_result.Result) -> str:
    count = _waived_count(result)
    if not count:
        return ""
    return f" but {counted(count, 'waived finding')}"


def _for_information(result: model_result.Result) -> str:
    count = sum(item.state == "info" for item in result.findings)
    if not count:
        return ""
    return f" ({counted(count, 'finding')} for information)"


def _titles(codes: Iterable[str], run: Run) -> dict[str, str]:
    return {code: run.titles.get(code, "") for code in sorted(codes)}


def _codes(titles: Mapping[str, str]) -> str:
    """Join a few codes, each with its title; return the number of many."""
    if len(titles) <= CODES_SHOWN:
        return ", ".join(f"{code} {title}".rstrip() for code, title in titles.items())
    return counted(len(titles), "fault")


def covered(coverage: model_result.Coverage, run: Run) -> str:
    """Return which Nodes were audited, and why others were not; empty without a known cluster."""
    excluded = coverage.left
    if not _is_proven(coverage.cluster) and all(
        reason != node_hosts.LIMIT for _name, reason in excluded
    ):
        return ""
    texts = dict(NOT_AUDITED)
    if run.mode == "replay":
        texts.update(IN_REPLAY)
    names_by_text: dict[str, list[str]] = {}
    for name, reason in excluded:
        names_by_text.setdefault(texts.get(reason, reason), []).append(name)
    nodes = "not known"
    if coverage.nodes is not None:
        nodes = str(coverage.nodes)
    parts = [f"Nodes in the API: {nodes}", f"audited: {coverage.audited}"]
    parts += [f"{text}: {host_names.join(names)}" for text, names in names_by_text.items()]
    return "; ".join(parts)


def reasons(lacks: Iterable[model_result.Lack]) -> list[str]:
    """Return why answers are missing, with the way out: one line for each reason."""
    groups: dict[tuple[str, str], dict[str, list[str]]] = {}
    for lack in lacks:
        text = lack.reason or PARTS.get(lack.status, "")
        if text:
            collectors_by_host = groups.setdefault((lack.status, text), {})
            collectors_by_host.setdefault(lack.host, []).append(lack.collector)
    return [
        _reason(status, text, collectors_by_host)
        for (status, text), collectors_by_host in sorted(groups.items())
    ]


def without_reasons(text: str, lacks: Iterable[model_result.Lack]) -> str:
    """Return a text without the reasons of missing answers, which the report states once."""
    reasons = {lack.reason for lack in lacks if len(lack.reason) > LONG_REASON}
    for reason in sorted(reasons, key=len, reverse=True):
        text = text.replace(f" ({reason})", "").replace(f": {reason}", "")
    return text


def _reason(status: str, text: str, collectors_by_host: Mapping[str, Sequence[str]]) -> str:
    hosts_by_collectors: dict[tuple[str, ...], list[str]] = {}
    for host, collectors in collectors_by_host.items():
        hosts_by_collectors.setdefault(tuple(collectors), []).append(host)
    sources = ", ".join(
        f"{' '.join(collectors)} of {host_names.join(hosts)}"
        for collectors, hosts in hosts_by_collectors.items()
    )
    line = f"{sources} ({phrases.WORDS.get(status, status)}): {text}"
    return "; ".join(filter(None, (line, _way_out(status, text))))


def _way_out(status: str, text: str) -> str:
    """Return what to do about a missing answer; a part of one is named by the checks' notes."""
    if text == PARTS["error"]:
        return NOTES
    return WAYS_OUT.get(status, "")


def fix_label(finding: model_result.Finding, steps: Sequence[Step]) -> str:
    """Return whether kubemend can do the fix of a finding, and at which risk."""
    if finding.waived is not None:
        return "fix (waived, not planned)"
    risk = remedy_risk(finding, steps)
    if risk == MANUAL:
        return f"fix ({MANUAL})"
    return f"fix (automatic, {risk})"


def fix_labels(steps: Iterable[Step]) -> Callable[[model_result.Finding], str]:
    """Return fix_label for many findings of one plan."""
    by_place: dict[tuple[str, str | None], list[Step]] = {}
    for step in steps:
        for code in step.codes:
            by_place.setdefault((code, step.host), []).append(step)
            by_place.setdefault((code, None), []).append(step)

    def label(finding: model_result.Finding) -> str:
        hosts: Sequence[str | None] = (None,)
        if finding.host is not None:
            hosts = finding.everywhere
        at_hosts = [step for host in hosts for step in by_place.get((finding.code, host), ())]
        return fix_label(finding, at_hosts)

    return label


def remedy_risk(finding: model_result.Finding, steps: Sequence[Step]) -> str:
    """Return the risk of the plan's step for a finding, or that its remedy is manual."""
    steps = [step for step in steps if finding.code in step.codes]
    if finding.host is not None:
        steps = [step for step in steps if step.host in finding.everywhere]
    able = [step for step in steps if not _is_only_a_refusal(step)]
    risks = [step.risk for step in able if step.cluster in (None, finding.cluster)]
    if any(risks):
        return f"risk {max(risks)}"
    return MANUAL


def _is_only_a_refusal(step: Step) -> bool:
    """Tell whether a step says why nothing is done, and has nothing that a node could do."""
    if not step.blocked_by or "kubemend_allow" in step.blocked_by:
        return False
    return step.change is None and step.expect is None and step.guard is None


def lack_of(lack: model_result.Lack) -> Mapping[str, str | None]:
    """Return a missing answer as report.json has it."""
    reason = lack.reason or PARTS.get(lack.status, "")
    return {
        "cluster": lack.cluster,
        "host": lack.host,
        "collector": lack.collector,
        "status": lack.status,
        "reason": reason,
        "way_out": _way_out(lack.status, reason),
    }
