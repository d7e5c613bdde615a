# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every face of a report says in the same words. Pure, and not escaped.

Each face does that in its own way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ...module_utils.shared import collector_names
from ..models import result as model
from ..models import writes
from ..models.result import UNPROVEN
from ..planning import check_mode as looks
from ..planning.plan import Step
from .run_info import Run

NAMES_SHOWN = 20
CONTROL_PLANE = "control plane"  # what lacks where no host of it is known
_FLAG = re.compile(r"--([a-z0-9][a-z0-9-]*)")
ORDER = {
    name: index
    for index, name in enumerate(("present", "unknown", "clear", "not_applicable", "not_judged"))
}
WORDS = {"not_applicable": "not applicable", "not_judged": "not judged", "not_asked": "not asked"}
REASONS = {
    "limit": "--limit left their hosts out",
    "tier": "kubemend_deep is not set, or an older release collected",
    "slice": "of whole clusters: replay judges the slices together",
}
MODES = {
    "observe": "observe: changes nothing",
    "replay": "replay: changes nothing",
    "plan": "check mode: changes nothing",
    "repair": "repair: before",
    "verify": "repair: afterwards",
}


# What a plan's step says that only consent was given for: such a run repairs nothing.
OBSERVES = {
    "observe": "an audit changes nothing; kubemend.remediation.remediate does it",
    "replay": "a replay changes nothing; kubemend.remediation.remediate does it on the cluster",
}
ABOUT = {"replay": "replay of recorded evidence", "capture": "capture of logs", "revert": "revert"}


def about(run: Run) -> str:
    return run.symptom.title if run.symptom else ABOUT.get(run.mode, "audit")


def place(item: model.Finding) -> str:
    return " ".join(part for part in (item.code, item.host or item.node, item.component) if part)


def state_of(step: Step, done: Mapping[str, str] | None, mode: str) -> tuple[str, str]:
    """What became of a step, or will, and why."""
    if done:
        state = looks.would(done["state"]) if mode == "plan" else done["state"]
    elif step.allowed and mode in OBSERVES:
        return "not done", OBSERVES[mode]
    else:
        state = "not done" if not step.allowed else "will be done" if mode == "plan" else "to do"
    return state, (done or {}).get("reason") or (step.blocked_by or "" if not step.allowed else "")


def cluster_keys(result: model.Result) -> list[str | None]:
    """Known clusters first, then whatever else something was said about; None (no cluster) last."""
    keys: dict[str | None, None] = dict.fromkeys(
        item.key for item in result.clusters if item.key != UNPROVEN
    )
    for rows in (result.hosts, result.verdicts, result.findings):
        keys.update(dict.fromkeys(item.cluster for item in rows))
    return sorted(keys, key=lambda key: key is None)


def finding_order(item: model.Finding) -> tuple[int, bool, str, str, str]:
    known = item.severity in model.SEVERITIES
    rank = model.SEVERITIES.index(item.severity) if known else len(model.SEVERITIES)
    return rank, item.code not in model.FIRST, item.code, item.host or "", item.component or ""


def may_be_healthy(findings: Iterable[model.Finding]) -> bool:
    """Whether any host of their cluster may be called healthy.

    None while nothing is written, because its evidence from the API is old.
    """
    return not any(item.code == writes.CODE for item in findings)


def in_order(findings: Iterable[model.Finding]) -> list[model.Finding]:
    """Sort findings worst first, and a consequence below what it is because of."""
    groups: dict[tuple[str, str], list[model.Finding]] = {}
    for item in sorted(findings, key=finding_order):
        groups.setdefault((item.severity, item.code), []).append(item)
    found: list[model.Finding] = []
    begun: set[tuple[str, str]] = set()

    def visit(group: tuple[str, str]) -> None:
        if group in begun:
            return
        begun.add(group)
        causes = {code for item in groups[group] for code in item.because}
        for other in groups:
            if other[1] in causes:
                visit(other)
        found.extend(groups[group])

    for group in groups:
        visit(group)
    return found


def alike(findings: Iterable[model.Finding]) -> list[list[model.Finding]]:
    """Findings that say the same of several hosts and point at nothing of each host's own read
    as one.
    """
    groups: dict[object, list[model.Finding]] = {}
    for item in findings:
        own = any(proof.path or proof.pid is not None or proof.object for proof in item.evidence)
        said = tuple((proof.kind, proof.text) for proof in item.evidence)
        same = (
            item.code,
            item.severity,
            item.component,
            item.summary,
            item.because,
            item.remedy,
            item.command,
            said,
        )
        groups.setdefault(id(item) if own or not item.host else same, []).append(item)
    return list(groups.values())


def said_already(item: model.Finding, proof: model.Proof) -> bool:
    """Whether a proof tells no more than the summary of its finding."""
    return (
        not (proof.path or proof.pid is not None or proof.object)
        and (proof.text or "") in item.summary
    )


def proof_lines(item: model.Finding) -> list[str]:
    """What proves a finding, a line each; not escaped."""
    flags, lines = flags_of(item), []
    for proof in item.evidence:
        if not said_already(item, proof):
            prefix = f"{proof.host}: " if proof.host and proof.host != item.host else ""
            lines.append(f"{prefix}{pointer(proof, flags)}")
    return lines


def flags_of(item: model.Finding) -> frozenset[str]:
    """The command-line flags that a finding speaks of: of a long argv only these are shown."""
    texts = [item.summary, item.remedy or "", *(proof.text or "" for proof in item.evidence)]
    names = {name for text in texts for name in _FLAG.findall(text)}
    return frozenset(names or ("leader-elect",))


def pointer(proof: model.Proof, flags: frozenset[str]) -> str:
    """One pointer: the place first, then what is there."""
    where = [proof.object] if proof.object else []
    if proof.path:
        where.append(proof.path + (f":{proof.line}" if proof.line else ""))
    if proof.pid is not None:
        where.append(f"pid {proof.pid}")
    if not where:
        where.append(proof.kind)
    what = []
    if proof.argv:
        what.append(_argv(proof, flags))
    elif proof.text:
        what.append(("answers " if proof.kind == "http" else "") + proof.text)
    return ": ".join((" ".join(where), *what))


def _argv(proof: model.Proof, flags: frozenset[str]) -> str:
    """The program's name and the arguments in question; text, where there is one, names those.

    Else all of them.
    """
    argv = proof.argv or ()
    name = argv[0].rsplit("/", 1)[-1]
    if proof.text:
        return f"{name} … {proof.text}"
    kept = [word for word in argv[1:] if (match := _FLAG.match(word)) and match.group(1) in flags]
    if not kept:
        return " ".join((name, *argv[1:]))
    return " ".join((name, *kept)) if len(kept) == len(argv) - 1 else " ".join((name, "…", *kept))


def differential(
    causes: Iterable[str], verdicts: Sequence[model.Verdict], not_judged: Sequence[model.NotJudged]
) -> list[tuple[str, str, str]]:
    """(verdict, code, where or what is missing) of each cause, present ones first."""
    rows = []
    for code in causes:
        mine = [item for item in verdicts if item.code == code]
        verdict = min(
            (item.verdict for item in mine), key=lambda name: ORDER[name], default="not_judged"
        )
        rows.append((verdict, code, detail_of(code, verdict, mine, not_judged)))
    return sorted(rows, key=lambda row: (ORDER[row[0]], row[1]))


def detail_of(
    code: str, verdict: str, mine: Sequence[model.Verdict], not_judged: Sequence[model.NotJudged]
) -> str:
    if verdict == "present":
        places = [
            " ".join(part for part in (item.host, item.component) if part)
            for item in mine
            if item.verdict == verdict
        ]
        return named([place for place in dict.fromkeys(places) if place])
    if verdict == "unknown":
        return "missing " + lacking(lack for item in mine for lack in item.missing)
    if verdict == "not_judged":
        return next(
            (
                f"({REASONS.get(item.reason, item.reason)})"
                for item in not_judged
                if item.code == code
            ),
            "",
        )
    return ""


def unknowns(
    verdicts: Iterable[model.Verdict], hosts: Sequence[model.HostRow]
) -> list[tuple[str, str]]:
    """Unknown verdicts, one (codes, what is missing) for all that lack the same evidence.

    30 of one silent host read as one line.
    """
    silent = {item.host for item in hosts if item.status != "ok"}
    by_code: dict[str, dict[tuple[str, str, str], None]] = {}
    for item in verdicts:
        if item.verdict == "unknown":
            lacks = by_code.setdefault(item.code, {})
            for lack in item.missing:
                through, whole = (
                    lack.collector in collector_names.CLUSTER,
                    lack.host in silent or lack.collector == "host",
                )
                host = f"the API through {lack.host}" if through and whole else lack.host
                lacks[(host, "host" if whole else lack.collector, lack.status)] = None
    groups: dict[frozenset[tuple[str, str, str]], list[str]] = {}
    for code, wanting in by_code.items():
        groups.setdefault(frozenset(wanting), []).append(code)
    return [
        (coded(codes), lacking(model.Missing(*lack) for lack in sorted(same)) or "evidence")
        for same, codes in sorted(groups.items(), key=lambda group: (-len(group[1]), group[1]))
    ]


def lacking(lacks: Iterable[model.Missing]) -> str:
    """Hosts by what they lack: "m2 (unreachable), component_http of m1, m3 (denied)"."""
    groups: dict[tuple[str, str], dict[str, None]] = {}
    for lack in lacks:
        groups.setdefault((lack.collector, lack.status), {})[lack.host] = None
    parts = []
    for (collector, status), names in sorted(
        groups.items(), key=lambda group: (group[0][0] != "host", group[0])
    ):
        if collector == "inventory":
            parts.append(_not_in_inventory(list(names)))
            continue
        of = "" if collector == "host" else f"{collector} of "
        parts.append(f"{of}{named(list(names))} ({WORDS.get(status, status)})")
    return ", ".join(parts)


def _not_in_inventory(names: Sequence[str]) -> str:
    """Of what no host of the run is.

    Members that something names, or the control plane as a whole.
    """
    hosts = [name for name in names if name != CONTROL_PLANE]
    parts = (
        ["every host of the control plane (none is in this run)"] if len(hosts) < len(names) else []
    )
    return ", ".join(parts + ([f"{named(hosts)} (no host of this run)"] if hosts else []))


def left_out(not_judged: Iterable[model.NotJudged]) -> str:
    """Codes by why they were not judged."""
    reasons: dict[str, list[str]] = {}
    for item in not_judged:
        reasons.setdefault(REASONS.get(item.reason, item.reason), []).append(item.code)
    return "; ".join(f"{coded(codes)} ({reason})" for reason, codes in sorted(reasons.items()))


def fine(verdicts: Iterable[model.Verdict]) -> list[tuple[str, str]]:
    """(clear or not applicable, its codes)."""
    worst: dict[str, str] = {}
    for item in verdicts:
        before = worst.get(item.code, item.verdict)
        worst[item.code] = min(before, item.verdict, key=lambda name: ORDER[name])
    found = [
        (verdict, [code for code, its in worst.items() if its == verdict])
        for verdict in ("clear", "not_applicable")
    ]
    return [(verdict, coded(codes)) for verdict, codes in found if codes]


def named(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN])
    more = len(names) - NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def coded(codes: Iterable[str]) -> str:
    return " ".join(sorted(set(codes)))
