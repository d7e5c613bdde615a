# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Report.json, the report for programs (schema kubemend.report/1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from json import dumps
from typing import Any

from ..models import result as model_result
from ..models.timeline import Timeline
from ..models.waivers import Waiver
from . import conclusion
from .run_info import Run, Symptom, exit_of, summary
from .timeline import stamp

SCHEMA = model_result.REPORT_SCHEMA
PUBLIC_MODES = {"verify": "repair"}  # reports do not tell the second half of a repair apart


def render(result: model_result.Result, run: Run) -> dict[str, Any]:
    """Return the report as a mapping for json.dumps, whose quoting contains untrusted text."""
    report = _parts(result, run)
    for name, value in report.items():
        if isinstance(value, Iterator):
            report[name] = list(value)
    return report


def pieces(result: model_result.Result, run: Run) -> Iterator[str]:
    """Yield the report as json.dumps(..., indent=1) writes it, never held as a whole.

    The report of a large fleet is larger than all that was evaluated.
    """
    before = "{"
    for name, value in _parts(result, run).items():
        yield f"{before}\n {dumps(name)}: "
        if isinstance(value, Iterator):
            yield from _listed(value)
        else:
            yield _indented(value, 1)
        before = ","
    yield "\n}"


def _listed(items: Iterator[dict[str, Any]]) -> Iterator[str]:
    before = "["
    for item in items:
        yield f"{before}\n  {_indented(item, 2)}"
        before = ","
    yield "[]" if before == "[" else "\n ]"


def _indented(value: Any, depth: int) -> str:
    # Within JSON's quotes no text has a line break.
    return dumps(value, indent=1).replace("\n", "\n" + " " * depth)


def _parts(result: model_result.Result, run: Run) -> dict[str, Any]:
    """Return the fields; rows for each host, fault or finding are an iterator."""
    parts = {
        **_run_parts(result, run),
        **_result_parts(result, run),
        "symptom": _symptom(run.symptom),
        "plan": [step.shown() for step in run.plan],
        "steps": map(_ended_step, run.steps),
        "timelines": [_timeline(item) for item in run.timelines],
    }
    if run.captures:
        parts["scheduler_captures"] = [dict(item) for item in run.captures]
    if run.waivers_expired:
        parts["waivers_expired"] = [_waiver(item) for item in run.waivers_expired]
    parts["compared"] = None
    if run.compared is not None:
        parts["compared"] = run.compared.shown()
    parts["summary"] = summary(result)
    return parts


def _run_parts(result: model_result.Result, run: Run) -> dict[str, Any]:
    exit_code, exit_reason = exit_of(result, run)
    return {
        "schema": SCHEMA,
        "tool_version": run.tool_version,
        "run_id": run.run_id,
        "started": run.started,
        "finished": run.finished,
        "mode": PUBLIC_MODES.get(run.mode, run.mode),
        "exit_code": exit_code,
        "exit_reason": exit_reason,
        "notices": list(run.sentences),
        "conclusion": conclusion.conclusion(result, run),
        "faults": result.faults,
        "coverage": [_coverage(item) for item in result.coverage],
        "outside": [{"host": host, "reason": reason} for host, reason in run.outside],
    }


def _result_parts(result: model_result.Result, run: Run) -> dict[str, Any]:
    return {
        "clusters": [_cluster(item, run) for item in result.clusters],
        "hosts": map(_host, result.hosts),
        "verdicts": map(_verdict, result.verdicts),
        "not_judged": [
            {"code": item.code, "cluster": item.cluster, "reason": item.reason}
            for item in result.not_judged
        ],
        "lacks": [dict(conclusion.lack_of(item)) for item in result.lacks],
        "findings": map(_finding, result.findings),
    }


def _ended_step(step: Mapping[str, Any]) -> dict[str, Any]:
    row = {"id": step["id"], "state": step["state"], "reason": step.get("reason") or ""}
    if "verified" in step:
        row["verified"] = [dict(check) for check in step["verified"]]
    return row


def _waiver(item: Waiver) -> dict[str, Any]:
    return {
        "code": item.code,
        "hosts": item.hosts,
        "component": item.component,
        "reason": item.reason,
        "owner": item.owner,
        "expires": item.expires,
    }


def _coverage(item: model_result.Coverage) -> dict[str, Any]:
    return {
        "cluster": item.cluster,
        "nodes": item.nodes,
        "audited": item.audited,
        "left": [{"name": name, "reason": reason} for name, reason in item.left],
    }


def _cluster(item: model_result.ClusterRow, run: Run) -> dict[str, Any]:
    row = {
        "key": item.key,
        "kubernetes_version": item.kubernetes_version,
        "hosts": list(item.hosts),
    }
    if item.key in run.cluster_names:
        row["name"] = run.cluster_names[item.key]
    return row


def _host(item: model_result.HostRow) -> dict[str, Any]:
    return {
        "host": item.host,
        "node": item.node,
        "cluster": item.cluster,
        "role": item.role,
        "status": item.status,
        "reason": item.reason,
        "judged": item.judged,
    }


def _symptom(symptom: Symptom | None) -> dict[str, Any] | None:
    if symptom is None:
        return None
    return {"name": symptom.name, "title": symptom.title, "causes": list(symptom.causes)}


def _verdict(item: model_result.Verdict) -> dict[str, Any]:
    return {
        "code": item.code,
        "cluster": item.cluster,
        "host": item.host,
        "component": item.component,
        "verdict": item.verdict,
        "missing": [
            {"host": lack.host, "collector": lack.collector, "status": lack.status}
            for lack in item.missing
        ],
        "note": item.note,
    }


def _timeline(item: Timeline) -> dict[str, Any]:
    return {
        "pod": item.pod,
        "uid": item.uid or None,
        "entries": [
            {
                "time": stamp(entry) or None,
                "where": entry.where,
                "pod": entry.pod,
                "what": entry.what,
                "source": entry.source,
                "detail": entry.detail,
            }
            for entry in item.entries
        ],
    }


def _finding(item: model_result.Finding) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": item.id,
        "code": item.code,
        "severity": item.severity,
        "cluster": item.cluster,
        "host": item.host,
        "node": item.node,
        "component": item.component,
        "summary": item.summary,
        "because": list(item.because),
        "evidence": [_proof(proof) for proof in item.evidence],
        "remedy": item.remedy,
        "risk": item.risk,
        "command": item.command,
        "docs": item.docs,
    }
    if item.hosts:  # several hosts that share a kernel; all other findings are as they were
        row["hosts"] = list(item.hosts)
    if item.since is not None:
        row["since"] = item.since
    if item.waived is not None:
        row["waived"] = {
            "reason": item.waived.reason,
            "owner": item.waived.owner,
            "expires": item.waived.expires,
        }
    return row


def _proof(item: model_result.EvidenceRef) -> dict[str, Any]:
    argv = None
    if item.argv is not None:
        argv = list(item.argv)
    return {
        "kind": item.kind,
        "host": item.host,
        "path": item.path,
        "line": item.line,
        "pid": item.pid,
        "argv": argv,
        "object": item.object,
        "text": item.text,
    }
