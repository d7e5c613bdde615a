# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: judges evidence on the controller, writes the reports and decides the exit code."""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.plugins.action import ActionBase
from ansible.release import __version__
from ansible.utils import color
from ansible.utils.display import Display

from ansible_collections.kubemend.remediation.plugins.plugin_utils import (
    boot_plan,
    bundle,
    capturing,
    cluster,
    evidence,
    judge,
    limits_plan,
    locking,
    model,
    node_plan,
    patch_files,
    patch_plan,
    pending_told,
    plan,
    remedies,
    reset_plan,
    run_folder,
    scheduler_capture,
    scheduler_plan,
    swap_plan,
    symptoms,
    timeline,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.report import compare
from ansible_collections.kubemend.remediation.plugins.plugin_utils.report import html as report_html
from ansible_collections.kubemend.remediation.plugins.plugin_utils.report import json as report_json
from ansible_collections.kubemend.remediation.plugins.plugin_utils.report import junit as report_junit
from ansible_collections.kubemend.remediation.plugins.plugin_utils.report import text as report_text
from ansible_collections.kubemend.remediation.plugins.plugin_utils.report.page import plain
from ansible_collections.kubemend.remediation.plugins.plugin_utils.report.run import Run, Symptom, exit_of, last_line, summary
from ansible_collections.kubemend.remediation.plugins.plugin_utils.settings import DEFAULT_FORMATS, FAIL_ON, FORMATS, SettingsError

SPEC = {
    "evidence": {"type": "list", "elements": "path", "required": True},
    "report_dir": {"type": "path", "required": True},
    "run_id": {"type": "str", "required": True},
    "started": {"type": "str"},
    "mode": {"type": "str", "choices": ["observe", "plan", "repair", "verify", "replay"], "default": "observe"},
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
    "fail_on": {"type": "str", "choices": list(FAIL_ON), "default": "never"},
    "formats": {"type": "list", "elements": "str", "choices": list(FORMATS), "default": list(DEFAULT_FORMATS)},
    "notices": {"type": "list", "elements": "str", "default": []},
    "bundle": {"type": "path"},
    "bundle_anonymous": {"type": "bool", "default": False},
    "compare_to": {"type": "path"},
}
COLOURS = {
    "critical": "bright red", "warning": "bright purple", "info": "cyan", "present": "bright red", "unknown": "yellow",
    "clear": "green", "good": "green",
}
WIDEST = 120
HEAD = 2048
# How these reports of ours begin: a file of the same name that somebody else put there does not.
OURS = {"html": re.compile(rb"\s*<!DOCTYPE html>(?s:.*)<title>kubemend: "),
        "junit": re.compile(rb"<\?xml [^>]*\?>\s*<testsuites name=\"kubemend\"")}
WALKED = ("KM404",)  # also of processes that only the deep tier looks at
REMEDIES = {**remedies.REMEDIES, **reset_plan.REMEDIES, **patch_plan.REMEDIES, **limits_plan.REMEDIES, **node_plan.REMEDIES, **swap_plan.REMEDIES,
            **boot_plan.REMEDIES, **scheduler_plan.REMEDIES}


class ActionModule(ActionBase):
    """Runs on the controller only, once, and never connects to a host."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        args = self.validate_argument_spec(argument_spec=SPEC)[1]
        try:
            answer = _diagnose(args, bool(self._task.diff))
        except (evidence.EvidenceError, SettingsError) as error:
            answer = _input_error(str(error))
        except OSError as error:
            answer = _input_error(f"{error.filename or args['report_dir']} cannot be used: {error.strerror}.")
        result.update(answer, changed=False)
        return result


def _diagnose(args: dict[str, Any], diff: bool) -> dict[str, Any]:
    chosen = None if args["faults"] is None else frozenset(args["faults"])
    earlier = None if args["compare_to"] is None else compare.parse(compare.read(args["compare_to"]), args["compare_to"])
    judged, clusters = judge.examine(_documents(args), chosen, deep=args["deep"], part=args["part"])
    seen = judged
    steps: tuple[dict[str, Any], ...] = ()
    outcome = None
    if args["mode"] == "verify":
        planned, steps = run_folder.read_plan(args["report_dir"]), run_folder.read_steps(args["report_dir"])
        outcome = run_folder.outcome(planned, steps, judged, run_folder.begun(args["report_dir"]))
    else:
        planned = _planned(args, judged, clusters)
    if args["mode"] != "replay":
        judged = replace(judged, findings=tuple(_with_command(item, planned) for item in judged.findings))
    repairs = args["mode"] == "repair" and any(step.allowed for step in planned)
    if args["mode"] == "repair" and not repairs:
        outcome = run_folder.withheld(planned)
    timelines, lacking = timeline.of_clusters(clusters)
    captures, noted = _captured(args)
    pending, outcome = _of_pending(args, clusters, outcome)
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    run = Run(
        run_id=args["run_id"], started=args["started"] or now, finished=now, mode=args["mode"],
        report_dir=args["report_dir"], tool_version=evidence.TOOL_VERSION,
        # Whether the findings are bad enough to fail is asked when the repair is over.
        fail_on="never" if repairs else args["fail_on"],
        symptom=_symptom(args["symptom"]), notices=(*args["notices"], *pending, *_but_pending(args, lacking), *noted),
        titles={code: fault.title for code, fault in judge.CATALOGUE.items()}, plan=planned, steps=steps, diffs=diff,
        outcome=outcome, timelines=timelines, captures=captures, compared=None if earlier is None else compare.compare(earlier, judged))
    if args["mode"] == "repair":
        _write(run.path("plan.json"), run_folder.plan_text(run.run_id, {name: args[name] for name in ("max_risk", "allow", "probe", "cleanup_rejected")},
                                                           planned))
    _write_patches(Path(run.path("patches")), patch_files.texts(judged.findings, clusters, judge.KEY_DIGITS))
    case = bundle.Case(lambda: _documents(args), seen, run, chosen, args["deep"], args["part"], __version__)
    run, packed = _packed(args, case, repairs)
    _write_reports(args["formats"], judged, run)
    if packed["bundle"] and "terminal" in args["formats"]:
        _show_bundle(args, case)
    return {**_answer(judged, run), **packed, "steps": [{"id": step.id, "host": step.host} for step in planned if step.allowed] if repairs else []}


def _write_reports(formats: list[str], judged: model.Result, run: Run) -> None:
    """What the operator asked for; report.json and report.txt always."""
    _write(run.path("report.json"), json.dumps(report_json.render(judged, run), indent=1) + "\n")
    _write(run.path("report.txt"), report_text.render(judged, run))
    for name, file, render in (("html", "report.html", report_html.render), ("junit", "junit.xml", report_junit.render)):
        if name in formats:
            _write(run.path(file), render(judged, run))
        elif OURS[name].match(_head(run.path(file))):  # one of an earlier run in this folder tells of another judgement
            Path(run.path(file)).unlink(missing_ok=True)
    if "terminal" in formats:
        _print(judged, run)


def _head(path: str) -> bytes:
    """How a file begins; nothing of what is no plain file or cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(handle, HEAD) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
    finally:
        os.close(handle)


def _documents(args: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The evidence as it is judged, one document in memory at a time."""
    documents = evidence.stream(args["evidence"])
    if args["mode"] == "replay":  # which asks about another day, and often another controller
        return documents
    me = locking.controller(os.getppid())
    return (locking.without_gone(document, me, args["take"]) for document in documents)


def _packed(args: dict[str, Any], case: bundle.Case, repairs: bool) -> tuple[Run, dict[str, Any]]:
    """Write the bundle that was asked for; the run as its reports tell it, and what the result says of the bundle.

    Before the reports, which tell the run's exit code. The operator consented to the repair with or without a bundle: it only warns there.
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
        return f"No bundle was written: {error.filename or args['bundle']} cannot be used: {error.strerror}."
    return None


def _show_bundle(args: dict[str, Any], case: bundle.Case) -> None:
    about = "without names of hosts and people and without addresses" if args["bundle_anonymous"] else "with the names and addresses of your hosts"
    _show(f"kubemend: bundle: {args['bundle']} ({about}); to read it: {bundle.command(args['bundle'], case)}")


def _captured(args: dict[str, Any]) -> tuple[tuple[dict[str, Any], ...], list[str]]:
    """(what this run captured of schedulers that lead, notes about that); a file that cannot be read is a note too."""
    path = Path(args["report_dir"]) / capturing.FOLDER / scheduler_capture.DOCUMENT
    if args["mode"] == "replay" or not path.exists():
        return (), []
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return tuple(document["results"]), [str(note) for note in document["notes"]]
    except (OSError, *judge.UNFORESEEN) as error:
        return (), [f"kubemend_capture: {path} cannot be read ({evidence.one_line(error)})"]


def _of_pending(args: dict[str, Any], clusters: list[cluster.Cluster], outcome: tuple[int, str, str] | None
                ) -> tuple[tuple[str, ...], tuple[int, str, str] | None]:
    """What is said of pods that stay Pending, and what the run comes to: a pod that does not exist is bad input."""
    sentences, no_such_pod = pending_told.told(clusters, args["symptom"])
    if no_such_pod and not (outcome and outcome[0]):
        return sentences, (2, "input", no_such_pod)
    return sentences, outcome


def _but_pending(args: dict[str, Any], lacking: tuple[str, ...]) -> tuple[str, ...]:
    """Why there is no timeline: that symptom says it better."""
    return tuple(one for one in lacking if args["symptom"] != pending_told.SYMPTOM or not one.startswith(timeline.NONE))


def _planned(args: dict[str, Any], judged: model.Result, clusters: list[cluster.Cluster]) -> tuple[plan.Step, ...]:
    """What the findings and the operator's own wishes ask for, with what forbids it."""
    consent = plan.Consent(args["max_risk"], frozenset(args["allow"]), _wishes(args),
                           args["drain_timeout"], args["max_unavailable"], args["cpu_manager"] or {}, args["limits"] or {}, frozenset(args["profile"]))
    wished = [*reset_plan.wishes(clusters, args["cpu_manager"] or {}, judge.KEY_DIGITS),
              *limits_plan.wishes(clusters, consent.profile, judge.KEY_DIGITS)]
    return plan.plan([*judged.findings, *wished], clusters, lambda host: evidence.find(args["evidence"], host), consent, REMEDIES, judge.KEY_DIGITS,
                     remedies.probe if args["probe"] else None)


def _wishes(args: dict[str, Any]) -> frozenset[str]:
    asked = {plan.CLEAN_UP: args["cleanup_rejected"], plan.PATCH: args["patch_workloads"], plan.PINNED: args["prove_pinning"]}
    return frozenset(name for name in asked if asked[name])


def _write_patches(folder: Path, texts: dict[str, str]) -> None:
    """The patches of this judgement, and no others."""
    for stale in folder.glob("*.yaml"):
        stale.unlink()
    if texts:
        folder.mkdir(mode=0o700, exist_ok=True)
    for name, text in texts.items():
        _write(str(folder / name), text)


def _with_command(finding: model.Finding, steps: tuple[plan.Step, ...]) -> model.Finding:
    """The exact command that repairs a finding, where nothing but the operator's consent is missing."""
    waiting = [step for step in steps if step.remedy not in (plan.PROBE, plan.CLEAN_UP) and (step.code, step.cluster) == (finding.code, finding.cluster)
               and step.component in (None, finding.component, "kubelet") and not step.allowed
               and (finding.host in (None, step.host) or finding.node == step.node or step.remedy == plan.LEADER)]
    if not waiting or not all(plan.only_risk(step) for step in waiting):
        return finding
    deep = " -e kubemend_deep=true" if judge.CATALOGUE[finding.code].tier == "deep" or finding.code in WALKED else ""
    return replace(finding, command="ansible-playbook -i INVENTORY kubemend.remediation.remediate "
                                    f"-e kubemend_faults={finding.code}{deep} -e kubemend_max_risk={max(step.risk for step in waiting)}")


def _symptom(name: str | None) -> Symptom | None:
    if name is None:
        return None
    found = symptoms.SYMPTOMS[name]
    return Symptom(found.name, found.title, tuple(found.causes))


def _answer(judged: model.Result, run: Run) -> dict[str, Any]:
    """Codes, names and paths: evidence text never becomes a variable."""
    code, reason = exit_of(judged, run)
    codes = {kind: sorted({item.code for item in judged.verdicts if item.verdict == kind})
             for kind in ("present", "unknown")}
    answer: dict[str, Any] = {
        "report_dir": run.report_dir, "run_id": run.run_id, "exit_reason": reason, "codes": codes,
        "summary": summary(judged),
    }
    if code and run.outcome is not None and run.outcome[0]:
        answer.update(failed=True, msg=evidence.one_line(run.outcome[2]))
    elif code:
        new = "" if run.compared is None else f" by what is new since run {run.compared.run_id}"
        answer.update(failed=True, msg=f"kubemend_fail_on={run.fail_on} is reached{new}: {last_line(judged, run)}")
    return answer


def _input_error(sentence: str) -> dict[str, Any]:
    return {"failed": True, "exit_reason": "input", "msg": sentence}


def _print(judged: model.Result, run: Run) -> None:
    """The report as the callback found it: on stdout, unless a callback writes JSON there for a program."""
    coloured = bool(color.ANSIBLE_COLOR)
    width = min(Display().columns, WIDEST)
    _show(report_text.render(judged, run, width, _paint if coloured else plain).rstrip("\n"))


def _show(text: str) -> None:
    callback = str(constants.config.get_config_value("DEFAULT_STDOUT_CALLBACK"))
    Display().display(text, stderr="json" in callback.rsplit(".", 1)[-1])


def _paint(text: str, kind: str) -> str:
    return color.stringc(text, COLOURS[kind]) if kind in COLOURS else text


def _write(path: str, text: str) -> None:
    """Replace a file in one step, readable by its owner only."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")  # 0600 by itself
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
