# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a report may claim, in words that are not escaped.

Which hosts are healthy, what was not audited, and why answers are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..models import node_hosts
from ..models import result as model
from ..planning.plan import Step
from . import phrases as words
from .run_info import Run

HEALTHY = "healthy"
CODES_SHOWN = 8
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
    "error": "put right what it names and audit again",
}
# A collector that answered, of which a part is missing.
PARTS = {
    "denied": "a part of it may not be read",
    "timeout": "a part of it came too late, or the list was cut",
    "error": "a part of it cannot be used",
}


def about_hosts(
    hosts: Iterable[model.HostRow],
    findings: Sequence[model.Finding],
    result: model.Result,
    run: Run,
) -> dict[str, list[str]]:
    """Say of hosts without a finding that they are healthy, or how many faults were judged."""
    findings = list(findings)
    troubled: set[str | None] = {host for item in findings for host in item.everywhere}
    for item in findings:
        if item.host is None and not is_the_apis(item):
            troubled.update(proof.host for proof in item.evidence)
    whole = _whole_audit(result, run) and words.may_be_healthy(findings)
    well = whole and not any(
        item.severity == "critical" and not (item.host or item.node) for item in findings
    )
    found: dict[str, list[str]] = {}
    for row in hosts:
        if row.status != "ok" or row.host in troubled:
            continue
        healthy = well and _proven(row.cluster) and row.judged == result.faults
        text = HEALTHY if healthy else _no_finding(row, result)
        found.setdefault(text, []).append(row.host)
    return dict(sorted(found.items(), key=lambda item: (item[0] != HEALTHY, item[0])))


def _no_finding(row: model.HostRow, result: model.Result) -> str:
    unproven = "" if _proven(row.cluster) else "no cluster proven, "
    return f"no finding ({unproven}{row.judged} of {result.faults} faults judged)"


def _proven(key: str | None) -> bool:
    return key not in (None, model.UNPROVEN)


def is_the_apis(finding: model.Finding) -> bool:
    """Tell a finding that one host read from the API: it is no trouble of this host."""
    return (
        all(proof.kind == "api" for proof in finding.evidence)
        and len({proof.host for proof in finding.evidence}) == 1
    )


def _whole_audit(result: model.Result, run: Run) -> bool:
    """Tell whether the run judged its whole tier, not what a symptom or kubemend_faults names."""
    return run.symptom is None and run.faults is None and result.faults > 0


def conclusion(result: model.Result, run: Run) -> str:
    """Return the sentence for a whole audit without a problem; empty for any other run."""
    if not _whole_audit(result, run) or any(item.severity != "info" for item in result.findings):
        return ""
    asked = [row for row in result.hosts if row.status == "ok"]
    unknown = sorted({item.code for item in result.verdicts if item.verdict == "unknown"})
    # Of the deep tier it is no cluster's: nobody asked for it.
    skips = [item for item in result.not_judged if item.reason != "tier" or item.cluster]
    skipped = sorted({item.code for item in skips} - set(unknown))
    left = sorted({name for one in result.coverage for name, _reason in one.left})
    whole = {row.host for row in asked if row.judged == result.faults and _proven(row.cluster)}
    open_ones = [row.host for row in asked if row.host not in whole]
    blind = any(one.nodes is None for one in result.coverage if _proven(one.cluster))
    silent = len(asked) < len(result.hosts)
    if asked and not (unknown or skipped or left or open_ones or blind or silent):
        told = sum(item.severity == "info" for item in result.findings)
        more = f" ({told} finding{'s' if told > 1 else ''} for information)" if told else ""
        return f"No problems found: {result.faults} faults judged on {_hosts(len(asked))}{more}."
    lacks = [f"unknown: {_codes(unknown)}"] if unknown else []
    lacks += [f"not judged: {_codes(skipped)}"] if skipped else []
    if open_ones and not lacks:
        lacks.append(f"not all faults judged on {words.named(open_ones)}")
    lacks += [f"not audited: {words.named(left)}"] if left else []
    what = "; ".join(lacks) or "no host answered, or no API"
    return f"No problem is known, but not everything was judged; {what}."


def _codes(codes: Sequence[str]) -> str:
    return words.coded(codes) if len(codes) <= CODES_SHOWN else f"{len(codes)} faults"


def _hosts(count: int) -> str:
    return f"{count} host{'' if count == 1 else 's'}"


def covered(one: model.Coverage, run: Run) -> str:
    """Say which Nodes were audited, and why others were not; empty where no cluster is proven."""
    if not _proven(one.cluster) and all(reason != node_hosts.LIMIT for _name, reason in one.left):
        return ""
    reasons: dict[str, list[str]] = {}
    named = {**NOT_AUDITED, **(IN_REPLAY if run.mode == "replay" else {})}
    for name, reason in one.left:
        reasons.setdefault(named.get(reason, reason), []).append(name)
    nodes = "not known" if one.nodes is None else str(one.nodes)
    return "; ".join(
        (
            f"Nodes in the API: {nodes}",
            f"audited: {one.audited}",
            *(f"{reason}: {words.named(names)}" for reason, names in reasons.items()),
        )
    )


def reasons(lacks: Iterable[model.Lack]) -> list[str]:
    """Say why answers are missing, with the way out: one line for all that say the same."""
    groups: dict[tuple[str, str], dict[str, list[str]]] = {}
    for lack in lacks:
        text = lack.reason or PARTS.get(lack.status, "")
        if text:
            groups.setdefault((lack.status, text), {}).setdefault(lack.host, []).append(
                lack.collector
            )
    found = []
    for (status, text), places in sorted(groups.items()):
        alike: dict[tuple[str, ...], list[str]] = {}
        for host, collectors in places.items():
            alike.setdefault(tuple(collectors), []).append(host)
        where = ", ".join(
            f"{' '.join(collectors)} of {words.named(hosts)}" for collectors, hosts in alike.items()
        )
        way = WAYS_OUT.get(status, "")
        found.append(
            f"{where} ({words.WORDS.get(status, status)}): {text}" + (f"; {way}" if way else "")
        )
    return found


def by_hand(item: model.Finding, steps: Sequence[Step]) -> str:
    """Return the risk of the plan's step that does a finding's remedy, or that it is manual."""
    steps = [step for step in steps if step.code == item.code]
    if item.host is not None:
        steps = [step for step in steps if step.host in item.everywhere]
    risks = [step.risk for step in steps if step.cluster in (None, item.cluster)]
    return f"risk {max(risks)}" if any(risks) else "manual"


def lack_of(lack: model.Lack) -> Mapping[str, str | None]:
    """Return it as report.json has it."""
    return {
        "cluster": lack.cluster,
        "host": lack.host,
        "collector": lack.collector,
        "status": lack.status,
        "reason": lack.reason or PARTS.get(lack.status, ""),
        "way_out": WAYS_OUT.get(lack.status, ""),
    }
