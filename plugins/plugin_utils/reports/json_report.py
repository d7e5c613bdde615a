# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Report.json, the report for programs (schema kubemend.report/1)."""

from __future__ import annotations

from collections.abc import Iterator
from json import dumps
from typing import Any

from ..models import result as model
from ..models.timeline import Timeline
from . import conclusion as said
from .run_info import Run, exit_of, summary
from .timeline import stamp

SCHEMA = model.REPORT_SCHEMA


def render(result: model.Result, run: Run) -> dict[str, Any]:
    """The report as a mapping that json.dumps takes.

    Untrusted text stays text, JSON's own quoting contains it.
    """
    return {
        name: list(value) if isinstance(value, Iterator) else value
        for name, value in _parts(result, run).items()
    }


def pieces(result: model.Result, run: Run) -> Iterator[str]:
    """The same as text, in the bytes of json.dumps(..., indent=1), without ever holding it.

    Of a large fleet it is larger than all that was judged.
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
    """No text has a line break within JSON's quotes."""
    return dumps(value, indent=1).replace("\n", "\n" + " " * depth)


def _parts(result: model.Result, run: Run) -> dict[str, Any]:
    """What there is one of for each host, fault or finding, is an iterator."""
    exit_code, exit_reason = exit_of(result, run)
    symptom = run.symptom
    return {
        "schema": SCHEMA,
        "tool_version": run.tool_version,
        "run_id": run.run_id,
        "started": run.started,
        "finished": run.finished,
        "mode": "repair" if run.mode == "verify" else run.mode,
        "exit_code": exit_code,
        "exit_reason": exit_reason,
        "notices": list(run.notices),
        "conclusion": said.conclusion(result, run),
        "faults": result.faults,
        "coverage": [
            {
                "cluster": item.cluster,
                "nodes": item.nodes,
                "audited": item.audited,
                "left": [{"name": name, "reason": reason} for name, reason in item.left],
            }
            for item in result.coverage
        ],
        "outside": [{"host": host, "reason": reason} for host, reason in run.outside],
        "clusters": [
            {
                "key": item.key,
                "kubernetes_version": item.kubernetes_version,
                "hosts": list(item.hosts),
            }
            for item in result.clusters
        ],
        "hosts": (
            {
                "host": item.host,
                "node": item.node,
                "cluster": item.cluster,
                "role": item.role,
                "status": item.status,
                "reason": item.reason,
                "judged": item.judged,
            }
            for item in result.hosts
        ),
        "verdicts": map(_verdict, result.verdicts),
        "not_judged": [
            {"code": item.code, "cluster": item.cluster, "reason": item.reason}
            for item in result.not_judged
        ],
        "lacks": [dict(said.lack_of(item)) for item in result.lacks],
        "findings": map(_finding, result.findings),
        "symptom": (
            None
            if symptom is None
            else {"name": symptom.name, "title": symptom.title, "causes": list(symptom.causes)}
        ),
        "plan": [step.shown() for step in run.plan],
        "steps": [
            {"id": step["id"], "state": step["state"], "reason": step.get("reason") or ""}
            for step in run.steps
        ],
        "timelines": [_timeline(item) for item in run.timelines],
        **({"scheduler_captures": [dict(item) for item in run.captures]} if run.captures else {}),
        "compared": None if run.compared is None else run.compared.shown(),
        "summary": summary(result),
    }


def _verdict(item: model.Verdict) -> dict[str, Any]:
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


def _finding(item: model.Finding) -> dict[str, Any]:
    return {
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
        # Only where one finding is of several hosts, which share a kernel: all others are as they
        # were.
        **({"hosts": list(item.hosts)} if item.hosts else {}),
    }


def _proof(item: model.Proof) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "host": item.host,
        "path": item.path,
        "line": item.line,
        "pid": item.pid,
        "argv": None if item.argv is None else list(item.argv),
        "object": item.object,
        "text": item.text,
    }
