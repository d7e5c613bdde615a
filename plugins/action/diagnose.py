# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges evidence on the controller, writes the reports and decides the exit code."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.release import __version__
from ansible.utils import color

from ..plugin_utils.bundle import writer as bundle
from ..plugin_utils.capture import outcome as capturing
from ..plugin_utils.capture import scheduler as scheduler_capture
from ..plugin_utils.evidence import document as evidence
from ..plugin_utils.evidence import sources as evidence_sources
from ..plugin_utils.faults import engine as judge
from ..plugin_utils.faults import symptoms
from ..plugin_utils.models import cluster, node_hosts, timeline
from ..plugin_utils.models import result as model
from ..plugin_utils.planning import check_mode as looks
from ..plugin_utils.planning import plan
from ..plugin_utils.planning.remedies import workload_patch_file as patch_files
from ..plugin_utils.reports import diff as compare
from ..plugin_utils.reports import html as report_html
from ..plugin_utils.reports import json_report as report_json
from ..plugin_utils.reports import junit as report_junit
from ..plugin_utils.reports import pending_notices as pending_told
from ..plugin_utils.reports import taint_notices as taints_told
from ..plugin_utils.reports import text as report_text
from ..plugin_utils.reports.run_info import Run, Symptom, exit_of, last_line, summary
from ..plugin_utils.reports.text_page import plain
from ..plugin_utils.run import (
    cluster_lock as locking,
)
from ..plugin_utils.run import (
    console as terminal,
)
from ..plugin_utils.run import (
    inventory as run_hosts,
)
from ..plugin_utils.run import (
    run_files as run_folder,
)
from ..plugin_utils.run import (
    run_plan as planning,
)
from ..plugin_utils.run.report_dir import FACES, remove_face, write_patches
from ..plugin_utils.run.settings import DEFAULT_FORMATS, FAIL_ON, FORMATS, SettingsError
from ..plugin_utils.safe_io import atomic_file as private_files

SPEC = {
    "evidence": {"type": "list", "elements": "path", "required": True},
    "report_dir": {"type": "path", "required": True},
    "run_id": {"type": "str", "required": True},
    "started": {"type": "str"},
    "mode": {
        "type": "str",
        "choices": ["observe", "plan", "repair", "verify", "replay"],
        "default": "observe",
    },
    "max_risk": {"type": "int", "default": 0},
    "allow": {"type": "list", "elements": "str", "default": []},
    "drain_timeout": {"type": "int", "default": 900},
    "max_unavailable": {"type": "int", "default": 1},
    "cpu_manager": {"type": "dict"},
    "limits": {"type": "dict"},
    "profile": {"type": "list", "elements": "str", "default": []},
    "probe": {"type": "bool", "default": False},
    "cleanup_rejected": {"type": "bool", "default": False},
    "patch_workloads": {"type": "bool", "default": False},
    "prove_pinning": {"type": "bool", "default": False},
    "symptom": {"type": "str"},
    "faults": {"type": "list", "elements": "str"},
    "deep": {"type": "bool", "default": False},
    "part": {"type": "bool", "default": False},
    "take": {"type": "str"},
    "asked": {"type": "bool", "default": True},
    "fail_on": {"type": "str", "choices": list(FAIL_ON), "default": "never"},
    "formats": {
        "type": "list",
        "elements": "str",
        "choices": list(FORMATS),
        "default": list(DEFAULT_FORMATS),
    },
    "notices": {"type": "list", "elements": "str", "default": []},
    "bundle": {"type": "path"},
    "bundle_anonymous": {"type": "bool", "default": False},
    "compare_to": {"type": "path"},
    "hosts": {"type": "dict", "default": {}},
    "api_hosts": {"type": "list", "elements": "str", "default": []},
    "outside": {"type": "dict", "default": {}},
}
COLOURS = {
    "critical": "bright red",
    "warning": "bright purple",
    "info": "cyan",
    "present": "bright red",
    "unknown": "yellow",
    "clear": "green",
    "good": "green",
}
WAY_OUT = (
    "kubemend_evidence takes the folder of a run, its evidence/, a file of that, a bundle, or a"
    " list of them."
)
PAGES = Path(__file__).absolute().parents[2] / model.DOCS


class ActionModule(ActionBase):
    """Runs on the controller only, once, and never connects to a host."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        args = self.validate_argument_spec(argument_spec=SPEC)[1]
        try:
            if args["mode"] != "replay":
                run_hosts.note_unheard(
                    args["evidence"][0],
                    args["hosts"],
                    args["api_hosts"],
                    (task_vars or {}).get("hostvars"),
                )
            answer = _diagnose(args, bool(self._task.diff))
        except evidence.EvidenceError as error:
            answer = _input_error(f"{error} {WAY_OUT}" if args["mode"] == "replay" else str(error))
        except SettingsError as error:
            answer = _input_error(str(error))
        except OSError as error:
            answer = _input_error(
                f"{error.filename or args['report_dir']} cannot be used: {error.strerror}."
            )
        result.update(answer, changed=False)
        return result


def _diagnose(args: dict[str, Any], diff: bool) -> dict[str, Any]:
    chosen = None if args["faults"] is None else frozenset(args["faults"])
    earlier = (
        None
        if args["compare_to"] is None
        else compare.parse(compare.read(args["compare_to"]), args["compare_to"])
    )
    unread: list[str] = []
    judged, clusters = judge.examine(
        _documents(args, unread), chosen, deep=args["deep"], part=args["part"]
    )
    seen = judged
    judged = replace(
        judged, coverage=tuple(node_hosts.placed(one, args["outside"]) for one in judged.coverage)
    )
    planned = (
        run_folder.read_plan(args["report_dir"])
        if args["mode"] == "verify"
        else planning.plan_of(args, judged, clusters)
    )
    ask = looks.asked(planned) if args["mode"] == "plan" and not args["asked"] else ()
    if ask:
        return _before_looks(args, planned, ask)
    steps, outcome, told = planning.became(args, planned, judged, clusters)
    if args["mode"] != "replay":
        judged = replace(
            judged,
            findings=tuple(
                planning.with_command(item, planned, args["mode"] == "observe")
                for item in judged.findings
            ),
        )
    repairs = args["mode"] == "repair" and any(step.allowed for step in planned)
    timelines, lacking = timeline.of_clusters(clusters)
    captures, noted = _captured(args)
    pending, outcome = _of_pending(args, clusters, outcome)
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    run = Run(
        run_id=args["run_id"],
        started=args["started"] or now,
        finished=now,
        mode=args["mode"],
        report_dir=args["report_dir"],
        tool_version=evidence.TOOL_VERSION,
        # Whether the findings are bad enough to fail is asked when the repair is over.
        fail_on="never" if repairs else args["fail_on"],
        symptom=_symptom(args["symptom"]),
        notices=(
            *args["notices"],
            *unread,
            *pending,
            *taints_told.told(clusters, args["symptom"]),
            *_but_pending(args, lacking),
            *noted,
            *told,
        ),
        titles={code: fault.title for code, fault in judge.CATALOGUE.items()},
        plan=planned,
        steps=steps,
        diffs=diff,
        outcome=outcome,
        timelines=timelines,
        captures=captures,
        compared=None if earlier is None else compare.compare(earlier, judged),
        pages=str(PAGES) if PAGES.is_dir() else "",
        faults=chosen,
        outside=tuple((name, str(one["reason"])) for name, one in args["outside"].items()),
    )
    if args["mode"] == "repair":
        _write_plan(args, planned)
    run = _with_patches(run, patch_files.texts(judged.findings, clusters, judge.KEY_DIGITS))
    case = bundle.Case(
        lambda: _documents(args), seen, run, chosen, args["deep"], args["part"], __version__
    )
    run, packed = _packed(args, case, repairs)
    _write_reports(args["formats"], judged, run)
    if packed["bundle"] and "terminal" in args["formats"]:
        _show_bundle(args, case)
    return {
        **_answer(judged, run),
        **packed,
        "steps": (
            [{"id": step.id, "host": step.host} for step in planned if step.allowed]
            if repairs
            else []
        ),
    }


def _write_reports(formats: list[str], judged: model.Result, run: Run) -> None:
    """What the operator asked for; report.json and report.txt always."""
    private_files.replace(
        run.path("report.json"), itertools.chain(report_json.pieces(judged, run), ["\n"])
    )
    private_files.replace(run.path("report.txt"), [report_text.render(judged, run)])
    for name, render in (("html", report_html.render), ("junit", report_junit.render)):
        if name in formats:
            private_files.replace(run.path(FACES[name][0]), [render(judged, run)])
        else:
            remove_face(run.report_dir, name)
    if "terminal" in formats:
        _print(judged, run)


def _documents(args: dict[str, Any], notices: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """The evidence as it is judged, one document in memory at a time; notices.

    Takes what is said of files that cannot be read.
    """
    documents = evidence_sources.stream(args["evidence"], notices)
    if args["mode"] == "replay":  # which asks about another day, and often another controller
        return documents
    me = locking.controller(os.getppid())
    return (locking.without_gone(document, me, args["take"]) for document in documents)


def _packed(args: dict[str, Any], case: bundle.Case, repairs: bool) -> tuple[Run, dict[str, Any]]:
    """Write the bundle that was asked for.

    The run as its reports tell it, and what the result says of the bundle.

    Before the reports, which tell the run's exit code. The operator consented to the repair with or
    without a bundle: it only warns there.
    """
    why = _bundle(args, case) if args["bundle"] else None
    if why is None:
        return case.run, {"bundle": args["bundle"]}
    run = replace(case.run, notices=(*case.run.notices, why))
    if repairs:
        return run, {"bundle": None, "bundle_reason": why, "warnings": [why]}
    if not (run.outcome and run.outcome[0]):
        run = replace(run, outcome=(2, "input", why))
    return run, {"bundle": None, "bundle_reason": why}


def _bundle(args: dict[str, Any], case: bundle.Case) -> str | None:
    """Why the bundle could not be written."""
    try:
        bundle.write(args["bundle"], case, args["bundle_anonymous"])
    except bundle.BundleError as error:
        return str(error)
    except evidence.EvidenceError as error:
        return f"No bundle was written: {error}"
    except OSError as error:
        return (
            f"No bundle was written: {error.filename or args['bundle']} cannot be used:"
            f" {error.strerror}."
        )
    return None


def _show_bundle(args: dict[str, Any], case: bundle.Case) -> None:
    about = (
        "without names of hosts and people and without addresses"
        if args["bundle_anonymous"]
        else "with the names and addresses of your hosts"
    )
    terminal.show(
        f"kubemend: bundle: {args['bundle']} ({about}); to read it:"
        f" {bundle.command(args['bundle'], case)}"
    )


def _captured(args: dict[str, Any]) -> tuple[tuple[dict[str, Any], ...], list[str]]:
    """(what this run captured of schedulers that lead, notes about that).

    A file that cannot be read is a note too.
    """
    path = Path(args["report_dir"]) / capturing.FOLDER / scheduler_capture.DOCUMENT
    if args["mode"] == "replay" or not path.exists():
        return (), []
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return tuple(document["results"]), [str(note) for note in document["notes"]]
    except (OSError, *judge.UNFORESEEN) as error:
        return (), [f"kubemend_capture: {path} cannot be read ({evidence.one_line(error)})"]


def _of_pending(
    args: dict[str, Any], clusters: list[cluster.Cluster], outcome: tuple[int, str, str] | None
) -> tuple[tuple[str, ...], tuple[int, str, str] | None]:
    """What is said of pods that stay Pending, and what the run comes to.

    A pod that does not exist is bad input.
    """
    sentences, no_such_pod = pending_told.told(clusters, args["symptom"])
    if no_such_pod and not (outcome and outcome[0]):
        return sentences, (2, "input", no_such_pod)
    return sentences, outcome


def _but_pending(args: dict[str, Any], lacking: tuple[str, ...]) -> tuple[str, ...]:
    """Why there is no timeline: that symptom says it better."""
    return tuple(
        one
        for one in lacking
        if args["symptom"] != pending_told.SYMPTOM or not one.startswith(timeline.NONE)
    )


def _before_looks(
    args: dict[str, Any], steps: tuple[plan.Step, ...], ask: tuple[plan.Step, ...]
) -> dict[str, Any]:
    """Check mode: the steps whose hosts are asked before there is a report, which tells what
    they say.
    """
    _write_plan(args, steps)
    return {
        "report_dir": args["report_dir"],
        "run_id": args["run_id"],
        "exit_reason": "ok",
        "steps": [],
        "looks": [{"id": step.id, "host": step.host} for step in ask],
    }


def _write_plan(args: dict[str, Any], steps: tuple[plan.Step, ...]) -> None:
    """plan.json, which each step is read from."""
    settings = {name: args[name] for name in ("max_risk", "allow", "probe", "cleanup_rejected")}
    private_files.replace(
        str(Path(args["report_dir"]) / "plan.json"),
        [run_folder.plan_text(args["run_id"], settings, steps)],
    )


def _with_patches(run: Run, texts: dict[str, str]) -> Run:
    """The patches of this judgement as files; the run with a note where one is missing."""
    kept = write_patches(Path(run.path("patches")), texts)
    notes = (
        (
            f"{run.path('patches')} has files of somebody else or changed since"
            f" ({', '.join(kept)}), which stay: the findings have these patches."
        ),
    )
    return replace(run, notices=(*run.notices, *(notes if kept else ())))


def _symptom(name: str | None) -> Symptom | None:
    if name is None:
        return None
    found = symptoms.SYMPTOMS[name]
    return Symptom(found.name, found.title, tuple(found.causes))


def _answer(judged: model.Result, run: Run) -> dict[str, Any]:
    """Codes, names and paths: evidence text never becomes a variable."""
    code, reason = exit_of(judged, run)
    codes = {
        kind: sorted({item.code for item in judged.verdicts if item.verdict == kind})
        for kind in ("present", "unknown")
    }
    answer: dict[str, Any] = {
        "report_dir": run.report_dir,
        "run_id": run.run_id,
        "exit_reason": reason,
        "codes": codes,
        "summary": summary(judged),
    }
    if code and run.outcome is not None and run.outcome[0]:
        answer.update(failed=True, msg=evidence.one_line(run.outcome[2]))
    elif code:
        new = "" if run.compared is None else f" by what is new since run {run.compared.run_id}"
        answer.update(
            failed=True,
            msg=f"kubemend_fail_on={run.fail_on} is reached{new}: {last_line(judged, run)}",
        )
    return answer


def _input_error(sentence: str) -> dict[str, Any]:
    return {"failed": True, "exit_reason": "input", "msg": sentence}


def _print(judged: model.Result, run: Run) -> None:
    """The report, in the width and colour that Ansible has."""
    coloured = bool(color.ANSIBLE_COLOR)
    terminal.show(report_text.render(judged, run, terminal.width(), _paint if coloured else plain))


def _paint(text: str, kind: str) -> str:
    return color.stringc(text, COLOURS[kind]) if kind in COLOURS else text
