# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Phrases that every report format shares. Pure, and not escaped: each format escapes its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ...module_utils.shared import collector_names, step_kinds
from ..evidence.document import one_line
from ..faults import CATALOGUE
from ..models import natural_order, writes
from ..models import result as model_result
from ..models.natural_order import natural
from ..models.result import UNPROVEN
from ..planning import check_mode
from ..planning.plan import Step, only_risk
from . import host_names
from .run_info import Run

NAMES_SHOWN = 20
Order = tuple[int, bool, str, natural_order.Key, str]  # of findings
CONTROL_PLANE = "control plane"  # what lacks where no host of it is known
_FLAG = re.compile(r"--([a-z0-9][a-z0-9-]*)")
ORDER = {
    name: index
    for index, name in enumerate(("present", "unknown", "clear", "not_applicable", "not_judged"))
}
WORDS = {"not_applicable": "not applicable", "not_judged": "not judged", "not_asked": "not asked"}
REASONS = {
    "limit": "--limit left their hosts out",
    "tier": "an older release collected the evidence",
    "slice": "of whole clusters: replay judges the slices together",
}
CHECKED = {  # of a fault, by the evidence after the repair
    "clear": "no longer found",
    "not_applicable": "does not apply any more",
    "present": "still found",
    "unknown": "could not be judged",
    "not_judged": "not judged",
}
_TIME = re.compile(r"T([0-9]{2}:[0-9]{2}:[0-9]{2})")
DEEP = "needs -e kubemend_deep=true"
MODES = {
    "observe": "observe: changes nothing",
    "replay": "replay: changes nothing",
    "plan": "check mode: changes nothing",
    "repair": "repair: before",
    "verify": "repair: afterwards",
}
# The reason of a step whose risk has consent; a replay has no use for consent.
OBSERVES = {
    "observe": "an audit changes nothing; kubemend.remediation.remediate does it",
    "replay": "a replay changes nothing; kubemend.remediation.remediate does it on the cluster",
}
ABOUT = {"replay": "replay of recorded evidence", "capture": "capture of logs", "revert": "revert"}


def about(run: Run) -> str:
    """Return the title of a run: its symptom, or what kind of run it is."""
    if run.symptom:
        return run.symptom.title
    return ABOUT.get(run.mode, "audit")


def place(finding: model_result.Finding) -> str:
    """Return the code, host and component of a finding."""
    parts = (finding.code, finding.host or finding.node, finding.component)
    return " ".join(part for part in parts if part)


def places(findings: Iterable[model_result.Finding], run: Run) -> list[str]:
    """Return a line for each fault and component of findings: its title and all places."""
    names_by_fault: dict[tuple[str, str], list[str]] = {}
    for finding in sorted(findings, key=finding_order):
        names = names_by_fault.setdefault((finding.code, finding.component or ""), [])
        names += finding.everywhere or filter(None, (finding.node,))
    lines = []
    for (code, component), names in names_by_fault.items():
        head = " ".join(filter(None, (code, host_names.counted(names), component)))
        title = run.titles.get(code)
        lines.append(f"{head}: {title}" if title else head)
    return lines


def state_of(step: Step, done: Mapping[str, str] | None, mode: str) -> tuple[str, str]:
    """Return the state of a step, past or future, and the reason for it."""
    if not done and mode in OBSERVES and (step.allowed or _is_replayed(step, mode)):
        return "not done", OBSERVES[mode]
    blocked = ""
    if not step.allowed:
        blocked = step.blocked_by or ""
    if done:
        return _state_done(done["state"], mode), done.get("reason") or blocked
    return _state_planned(step, mode), blocked


def _is_replayed(step: Step, mode: str) -> bool:
    """Return whether only consent is missing, which has no effect on recorded evidence."""
    return mode == "replay" and only_risk(step)


def _state_done(state: str, mode: str) -> str:
    if mode == "plan":
        return check_mode.would(state)
    return state


def _state_planned(step: Step, mode: str) -> str:
    if not step.allowed:
        return "not done"
    if mode == "plan":
        return "will be done"
    return "to do"


def checks(steps: Iterable[Step], run: Run) -> list[str]:
    """Return what the checks after these steps found of their faults, a line for each answer."""
    done = {step["id"]: step for step in run.steps}
    hosts: dict[tuple[str, str], list[str]] = {}
    times: dict[tuple[str, str], str] = {}
    for step in steps:
        for check in done.get(step.id, {}).get("verified", ()):
            answer = check["code"], check["verdict"]
            hosts.setdefault(answer, []).append(step.host)
            times[answer] = max(times.get(answer, ""), check["at"] or "")
    several = len({verdict for _code, verdict in hosts}) > 1
    lines = []
    for (code, verdict), names in hosts.items():
        line = f"{code} {run.titles.get(code, '')}".rstrip() + f": {CHECKED[verdict]}"
        if times[code, verdict]:
            line += f" at {_clock(times[code, verdict])}"
        lines.append(f"{line} on {host_names.counted(names)}" if several else line)
    return lines


def _clock(moment: str) -> str:
    """Return the time of day of a moment, and the moment as it is where it has none."""
    match = _TIME.search(one_line(moment, 40))
    return f"{match[1]} UTC" if match else one_line(moment, 40)


def cluster_keys(result: model_result.Result) -> list[str | None]:
    """Return known clusters, then others that any row is about; None (no cluster) is last."""
    keys: dict[str | None, None] = dict.fromkeys(
        item.key for item in result.clusters if item.key != UNPROVEN
    )
    for rows in (result.hosts, result.verdicts, result.findings):
        keys.update(dict.fromkeys(item.cluster for item in rows))
    return sorted(keys, key=lambda key: key is None)


def finding_order(finding: model_result.Finding) -> Order:
    """Return the sort key of a finding: worst first, waived ones last."""
    order = len(model_result.SEVERITIES)
    if finding.severity in model_result.SEVERITIES:
        order = model_result.SEVERITIES.index(finding.severity)
    if finding.waived is not None:
        order += len(model_result.SEVERITIES)
    code, host, component = finding.code, natural(finding.host), finding.component or ""
    return order, code not in model_result.FIRST, code, host, component


def may_be_healthy(findings: Iterable[model_result.Finding]) -> bool:
    """Return whether any host of their cluster may be called healthy.

    While the API server writes nothing, its evidence is old, and no host may.
    """
    return not any(finding.code == writes.CODE for finding in findings)


def _has_place(proof: model_result.EvidenceRef) -> bool:
    return bool(proof.path or proof.pid is not None or proof.object)


def is_in_summary(finding: model_result.Finding, proof: model_result.EvidenceRef) -> bool:
    """Return whether a proof adds nothing to the summary of its finding."""
    return not _has_place(proof) and (proof.text or "") in finding.summary


def proof_lines(finding: model_result.Finding, named: bool = False) -> list[str]:
    """Return the evidence of a finding, a line each; not escaped.

    A line names its host if it is another one than the finding's, or if named. An answer of the
    API is about its object, not about the host that asked.
    """
    flags, lines = flags_of(finding), []
    for proof in finding.evidence:
        if is_in_summary(finding, proof):
            continue
        line = pointer(proof, flags)
        foreign = proof.host != finding.host and proof.kind != "api"
        if proof.host and (named or foreign):
            line = f"{proof.host}: {line}"
        lines.append(line)
    return lines


def flags_of(finding: model_result.Finding) -> frozenset[str]:
    """Return the command-line flags that a finding names: of a long argv only these are shown."""
    proofs = (proof.text or "" for proof in finding.evidence)
    texts = [finding.summary, finding.remedy or "", *proofs]
    names = {name for text in texts for name in _FLAG.findall(text)}
    return frozenset(names or ("leader-elect",))


def pointer(proof: model_result.EvidenceRef, flags: frozenset[str]) -> str:
    """Return one pointer: the place first, then the text or arguments found there."""
    location = " ".join(_locations(proof)) or proof.kind
    if proof.argv:
        return f"{location}: {_argv(proof, flags)}"
    if not proof.text:
        return location
    if proof.kind == "http":
        return f"{location}: answers {proof.text}"
    return f"{location}: {proof.text}"


def _locations(proof: model_result.EvidenceRef) -> list[str]:
    locations = []
    if proof.object:
        locations.append(proof.object)
    if proof.path and proof.line:
        locations.append(f"{proof.path}:{proof.line}")
    elif proof.path:
        locations.append(proof.path)
    if proof.pid is not None:
        locations.append(f"pid {proof.pid}")
    return locations


def _argv(proof: model_result.EvidenceRef, flags: frozenset[str]) -> str:
    """Return the program's name and its relevant arguments.

    These are the proof's text, else the arguments named in flags, else all.
    """
    argv = list(proof.argv or ())
    name = argv[0].rsplit("/", 1)[-1]
    if proof.text:
        return f"{name} … {proof.text}"
    relevant = [word for word in argv[1:] if _flag_name(word) in flags]
    if not relevant or len(relevant) == len(argv) - 1:
        return " ".join((name, *argv[1:]))
    return " ".join((name, "…", *relevant))


def _flag_name(word: str) -> str | None:
    match = _FLAG.match(word)
    if match is None:
        return None
    return match.group(1)


def label(finding: model_result.Finding) -> str:
    """Return the severity of a finding in capitals, and that it is waived."""
    severity = finding.severity.upper()
    if finding.waived is not None:
        return f"WAIVED {severity}"
    return severity


def waiver(waived: model_result.Waived) -> str:
    """Return until when, by whom and why a finding is accepted."""
    return f"waived until {waived.expires} by {waived.owner}: {waived.reason}"


def waived_codes(findings: Iterable[model_result.Finding]) -> frozenset[str]:
    """Return the faults all of whose findings are waived."""
    findings = list(findings)
    waived = {item.code for item in findings if item.waived is not None}
    return frozenset(waived - {item.code for item in findings if item.waived is None})


def cause_rows(
    causes: Iterable[str],
    verdicts: Sequence[model_result.Verdict],
    not_judged: Sequence[model_result.NotJudged],
    waived: Collection[str] = (),
) -> list[tuple[str, str, str]]:
    """Return (verdict, code, places or missing evidence) of each cause, present ones first.

    Of those in waived it says that they are.
    """
    rows = []
    for code in causes:
        own_verdicts = [item for item in verdicts if item.code == code]
        verdict = min(
            (item.verdict for item in own_verdicts),
            key=lambda name: ORDER[name],
            default="not_judged",
        )
        detail = detail_of(code, verdict, own_verdicts, not_judged)
        if code in waived:
            detail = "; ".join(filter(None, (detail, model_result.WAIVED)))
        rows.append((verdict, code, detail))
    return sorted(rows, key=lambda row: (ORDER[row[0]], row[1]))


def detail_of(
    code: str,
    verdict: str,
    verdicts: Sequence[model_result.Verdict],
    not_judged: Sequence[model_result.NotJudged],
) -> str:
    """Return the places of a present cause, or the evidence or reason that is missing."""
    if verdict == "present":
        return join_names(_present_places(verdicts))
    if verdict == "unknown":
        return "missing " + join_missing(lack for item in verdicts for lack in item.missing)
    if verdict == "not_judged":
        reasons = (unjudged(item) for item in not_judged if item.code == code)
        return next((f"({reason})" for reason in reasons), "")
    return ""


def _present_places(verdicts: Iterable[model_result.Verdict]) -> list[str]:
    present = (item for item in verdicts if item.verdict == "present")
    places = (" ".join(filter(None, (item.host, item.component))) for item in present)
    return [name for name in dict.fromkeys(places) if name]


_Lack = tuple[str, str, str]  # host, collector, status


def unknown_rows(
    verdicts: Iterable[model_result.Verdict], hosts: Sequence[model_result.HostRow]
) -> list[tuple[str, str]]:
    """Return (codes, missing evidence) of unknown verdicts, one row for each set of evidence."""
    silent = frozenset(item.host for item in hosts if item.status != "ok")
    lacks_by_code: dict[str, dict[_Lack, None]] = {}
    for item in verdicts:
        if item.verdict == "unknown":
            lacks = lacks_by_code.setdefault(item.code, {})
            lacks.update(dict.fromkeys(_lack_shown(lack, silent) for lack in item.missing))
    codes_by_lacks: dict[frozenset[_Lack], list[str]] = {}
    for code, lacks in lacks_by_code.items():
        codes_by_lacks.setdefault(frozenset(lacks), []).append(code)
    return [
        (
            join_codes(codes),
            join_missing(model_result.Missing(*lack) for lack in sorted(lacks)) or "evidence",
        )
        for lacks, codes in sorted(
            codes_by_lacks.items(), key=lambda group: (-len(group[1]), group[1])
        )
    ]


def _lack_shown(lack: model_result.Missing, silent: frozenset[str]) -> _Lack:
    """Return a missing answer; of a silent host it is the host, or the API through it."""
    if lack.host not in silent and lack.collector != "host":
        return lack.host, lack.collector, lack.status
    if lack.collector in collector_names.CLUSTER:
        return f"the API through {lack.host}", "host", lack.status
    return lack.host, "host", lack.status


def join_missing(lacks: Iterable[model_result.Missing]) -> str:
    """Join hosts by missing evidence: "m2 (unreachable), component_http of m1, m3 (denied)"."""
    groups: dict[tuple[str, str], dict[str, None]] = {}
    for lack in lacks:
        groups.setdefault((lack.collector, lack.status), {})[lack.host] = None
    parts = []
    for (collector, status), hosts in sorted(
        groups.items(), key=lambda group: (group[0][0] != "host", group[0])
    ):
        names = list(hosts)
        if collector == "inventory":
            parts.append(_not_in_inventory(names))
        elif collector == "host":
            parts.append(f"{host_names.join(names)} ({WORDS.get(status, status)})")
        else:
            parts.append(f"{collector} of {host_names.join(names)} ({WORDS.get(status, status)})")
    return ", ".join(parts)


def _not_in_inventory(names: Sequence[str]) -> str:
    """Return the members that something names, or the control plane as a whole."""
    hosts = [name for name in names if name != CONTROL_PLANE]
    parts = []
    if len(hosts) < len(names):
        parts.append("every host of the control plane (none is in this run)")
    if hosts:
        parts.append(f"{host_names.join(hosts)} (no host of this run)")
    return ", ".join(parts)


def unjudged(item: model_result.NotJudged) -> str:
    """Return why a run did not judge a fault, and what would."""
    fault = CATALOGUE.get(item.code)
    if item.reason == "tier" and fault is not None and fault.tier == "deep":
        return DEEP
    return REASONS.get(item.reason, item.reason)


def clear_rows(verdicts: Iterable[model_result.Verdict]) -> list[tuple[str, str]]:
    """Return (clear or not applicable, its codes)."""
    worst: dict[str, str] = {}
    for item in verdicts:
        before = worst.get(item.code, item.verdict)
        worst[item.code] = min(before, item.verdict, key=lambda name: ORDER[name])
    groups = [
        (verdict, [code for code, state in worst.items() if state == verdict])
        for verdict in ("clear", "not_applicable")
    ]
    return [(verdict, join_codes(codes)) for verdict, codes in groups if codes]


def join_names(names: Sequence[str]) -> str:
    """Join the first NAMES_SHOWN names and count the others."""
    shown = ", ".join(names[:NAMES_SHOWN])
    more = len(names) - NAMES_SHOWN
    if more > 0:
        return f"{shown} and {more} more"
    return shown


def join_codes(codes: Iterable[str]) -> str:
    """Join codes, each once, sorted."""
    return " ".join(sorted(set(codes)))


def commands(result: model_result.Result, run: Run) -> Iterator[tuple[str, str]]:
    """Yield the command that does the steps that wait, and the one that takes steps back."""
    of_findings = {item.command for item in result.findings if item.command}
    if run.repair and len(of_findings) != 1:  # a single one stands with its findings
        yield "repair", run.repair
    if run.undo and _can_be_undone(run):
        yield "undo", run.undo


def _can_be_undone(run: Run) -> bool:
    """Tell whether this run did a step that the playbook revert takes back."""
    done = {step["id"] for step in run.steps if step["state"] == step_kinds.DONE}
    remedies = {step.remedy for step in run.plan if step.id in done}
    return any(step_kinds.kind_of(remedy).revertible for remedy in remedies)
