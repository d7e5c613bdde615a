# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluate evidence on the controller, write the reports and decide the exit code."""

from __future__ import annotations

import itertools
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.release import __version__
from ansible.utils import color
from ansible.utils.display import Display

from ..module_utils.shared.version import TOOL_VERSION
from ..plugin_utils.bundle import writer
from ..plugin_utils.capture import outcome as capture_outcome
from ..plugin_utils.capture import scheduler
from ..plugin_utils.evidence import sources
from ..plugin_utils.evidence.document import UNFORESEEN, EvidenceError, one_line
from ..plugin_utils.faults import CATALOGUE, engine, symptoms
from ..plugin_utils.models import cluster, node_hosts, timeline
from ..plugin_utils.models import result as model_result
from ..plugin_utils.models import waivers as model_waivers
from ..plugin_utils.parsers import pflag
from ..plugin_utils.planning import check_mode, plan
from ..plugin_utils.planning.remedies import workload_patch_file
from ..plugin_utils.reports import diff as report_diff
from ..plugin_utils.reports import (
    github,
    html,
    json_report,
    junit,
    pending_notices,
    prometheus,
    sarif,
    taint_notices,
    text,
)
from ..plugin_utils.reports.run_info import Run, Symptom, exit_of, last_line, summary
from ..plugin_utils.reports.text_page import Paint, plain
from ..plugin_utils.run import (
    cluster_lock,
    cluster_names,
    command_line,
    console,
    fault_pages,
    history,
    inventory,
    retention,
    run_files,
    run_plan,
    waivers_file,
)
from ..plugin_utils.run.report_dir import FACES, remove_face, write_patches
from ..plugin_utils.run.settings import SettingsError
from ..plugin_utils.run.variables import DEFAULT_FORMATS, FAIL_ON, FORMATS
from ..plugin_utils.safe_io import atomic_file
from ..plugin_utils.transport import progress

SPEC = {
    "evidence": {"type": "list", "elements": "path", "required": True},
    "report_dir": {"type": "path", "required": True},
    "run_id": {"type": "str", "required": True},
    "started": {"type": "str"},
    "mode": {
        "type": "str",
        "choices": ["observe", "plan", "repair", "verify", "replay", "shown"],
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
    "upgrade_to": {"type": "str"},
    "take": {"type": "str"},
    "asked": {"type": "bool", "default": True},
    "held": {"type": "bool", "default": False},
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
    "waivers": {"type": "path"},
    "severity": {"type": "dict", "default": {}},
    "keep_runs": {"type": "str", "default": retention.ALL},
    "cluster_names": {"type": "dict", "default": {}},
    "hosts": {"type": "dict", "default": {}},
    "api_hosts": {"type": "list", "elements": "str", "default": []},
    "outside": {"type": "dict", "default": {}},
}
COLOURS = {
    "critical": "bright red",
    "warning": "bright yellow",
    "info": "cyan",
    "present": "bright red",
    "unknown": "bright purple",
    "clear": "green",
    "good": "green",
}
FOREIGN_SHOWN = 3  # folders that kubemend_keep_runs leaves
RENDERERS = {
    "html": html.render,
    "junit": junit.render,
    "prometheus": prometheus.render,
    "sarif": sarif.render,
}
WAY_OUT = (
    "kubemend_evidence takes the folder of a run, its evidence/, a file of that, a bundle, or a"
    " list of them."
)
PAGES = Path(__file__).absolute().parents[2] / model_result.DOCS


class ActionModule(ActionBase):
    """Evaluate the evidence on the controller only, once, without a connection to a host."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Evaluate the evidence, write the reports and return codes, names and paths."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        args = self.validate_argument_spec(argument_spec=SPEC)[1]
        try:
            if args["mode"] == "shown":
                console.show_held(args["report_dir"])
                return {**result, "changed": False}
            if args["mode"] != "replay":
                progress.remove(Path(args["evidence"][0]))
                hostvars = (task_vars or {}).get("hostvars")
                inventory.note_unheard(
                    args["evidence"][0], args["hosts"], args["api_hosts"], hostvars
                )
            answer = _diagnose(args, bool(self._task.diff))
        except EvidenceError as error:
            sentence = str(error)
            if args["mode"] == "replay":
                sentence += f" {WAY_OUT}"
            answer = _input_error(sentence)
        except SettingsError as error:
            answer = _input_error(str(error))
        except OSError as error:
            place = error.filename or args["report_dir"]
            answer = _input_error(f"{place} cannot be used: {error.strerror}.")
        result.update(answer, changed=False)
        return result


@dataclass(frozen=True)
class _Evaluation:
    """The findings of a run, and the steps that they call for.

    seen: the result that the evidence of a bundle must reproduce.
    judged: the result as it is reported.
    unread: notes about evidence that cannot be read.
    expired: waivers without effect.
    severities: those that the operator gave to codes of the findings.
    """

    seen: model_result.Result
    judged: model_result.Result
    clusters: list[cluster.Cluster]
    planned: tuple[plan.Step, ...]
    unread: tuple[str, ...]
    expired: tuple[model_waivers.Waiver, ...]
    severities: dict[str, str]


def _diagnose(args: dict[str, Any], diff: bool) -> dict[str, Any]:
    earlier = _earlier(args)
    evaluation = _evaluate(args)
    judged, planned = evaluation.judged, evaluation.planned
    if args["mode"] == "plan" and not args["asked"]:
        queried = check_mode.askable_steps(planned)
        if queried:
            return _before_looks(args, planned, queried)
    run = _run(args, diff, evaluation, earlier)
    if args["mode"] == "repair":
        _write_plan(args, planned)
    texts = workload_patch_file.texts(judged.findings, evaluation.clusters, engine.KEY_DIGITS)
    run = _with_patches(run, texts)
    case = writer.Case(
        lambda: _documents(args),
        evaluation.seen,
        run,
        _codes(args),
        args["deep"],
        args["part"],
        __version__,
        exit_of(judged, run),
        pflag.parse_version(args["upgrade_to"]),
    )
    steps = _steps_to_do(args, planned)
    run, packed = _packed(args, case, bool(steps))
    printed = _write_reports(args["formats"], judged, run)
    if packed["bundle"] and "terminal" in args["formats"]:
        printed.append(_bundle_line(args, case))
    if args["held"] and not steps and not exit_of(judged, run)[0]:
        console.hold(args["report_dir"], printed)
    else:
        console.show_all(printed)
    return {**_answer(judged, run), **packed, "steps": steps, **_without_old_runs(args, packed)}


def _without_old_runs(args: dict[str, Any], packed: dict[str, Any]) -> dict[str, Any]:
    """Remove old runs; return the warnings of the result."""
    warnings = list(packed.get("warnings", ()))
    foreign = retention.clean(args["keep_runs"], args["report_dir"], args["evidence"])
    if foreign:
        warnings.append(
            f"kubemend_keep_runs leaves {', '.join(foreign[:FOREIGN_SHOWN])}: a file there is not"
            " of kubemend, or cannot be removed. Move it, or remove the folder yourself."
        )
    return {"warnings": warnings} if warnings else {}


def _codes(args: dict[str, Any]) -> frozenset[str] | None:
    """Return the codes of the faults to evaluate; None for all."""
    if args["faults"] is None:
        return None
    return frozenset(args["faults"])


def _earlier(args: dict[str, Any]) -> report_diff.Earlier | None:
    """Return the earlier report that this one is compared to, if any."""
    if args["compare_to"] is None:
        return None
    return report_diff.parse(report_diff.read(args["compare_to"]), args["compare_to"])


def _evaluate(args: dict[str, Any]) -> _Evaluation:
    unread: list[str] = []
    result, clusters = engine.evaluate_clusters(
        _documents(args, unread),
        _codes(args),
        deep=args["deep"],
        part=args["part"],
        upgrade_to=pflag.parse_version(args["upgrade_to"]),
    )
    coverage = tuple(node_hosts.placed(row, args["outside"]) for row in result.coverage)
    placed = replace(result, coverage=coverage)
    judged = model_waivers.with_severities(placed, args["severity"])
    severities = model_waivers.changed_severities(placed, judged)
    waivers, today = _waivers(args), _today(args)
    judged = model_waivers.apply(judged, waivers, today)
    if args["mode"] != "replay":
        started = args["started"] or _now()
        judged = history.with_since(
            judged, args["report_dir"], args["run_id"], started, args["compare_to"]
        )
    if args["mode"] == "verify":
        planned = run_files.read_plan(args["report_dir"])
    else:
        planned = run_plan.plan_of(args, judged, clusters)
    if args["mode"] != "replay":
        observes = args["mode"] == "observe"
        hosts = command_line.options()
        findings = (
            run_plan.with_command(item, planned, observes, hosts) for item in judged.findings
        )
        judged = replace(judged, findings=tuple(findings))
    return _Evaluation(
        result,
        judged,
        clusters,
        planned,
        tuple(unread),
        model_waivers.expired(waivers, today),
        severities,
    )


def _waivers(args: dict[str, Any]) -> tuple[model_waivers.Waiver, ...]:
    if args["waivers"] is None:
        return ()
    return waivers_file.parse(waivers_file.read(args["waivers"]), args["waivers"], CATALOGUE)


def _today(args: dict[str, Any]) -> str:
    """Return the day on which the run began: both evaluations of a repair have the same waivers."""
    return str(args["started"] or _now())[:10]


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _steps_to_do(args: dict[str, Any], planned: tuple[plan.Step, ...]) -> list[dict[str, str]]:
    """Return the steps that a repair does now; none in the other modes."""
    if args["mode"] != "repair":
        return []
    return [{"id": step.id, "host": step.host} for step in planned if step.allowed]


def _run(
    args: dict[str, Any], diff: bool, evaluation: _Evaluation, earlier: report_diff.Earlier | None
) -> Run:
    """Return what the reports show of the run, besides its findings."""
    judged, planned, clusters = evaluation.judged, evaluation.planned, evaluation.clusters
    steps, outcome, notes = run_plan.became(args, planned, judged, clusters)
    timelines, lacking = timeline.of_clusters(clusters)
    captures, capture_notes = _captured(args)
    pending, outcome = _of_pending(args, clusters, outcome)
    now = _now()
    return Run(
        run_id=args["run_id"],
        started=args["started"] or now,
        finished=now,
        mode=args["mode"],
        report_dir=args["report_dir"],
        tool_version=TOOL_VERSION,
        fail_on=_fail_on(args, planned),
        symptom=_symptom(args["symptom"]),
        notices=(
            *args["notices"],
            *evaluation.unread,
            *pending,
            *taint_notices.render_sentences(clusters, args["symptom"]),
            *_but_pending(args, lacking),
            *capture_notes,
            *notes,
        ),
        titles={code: fault.title for code, fault in CATALOGUE.items()},
        plan=planned,
        steps=steps,
        diffs=diff,
        outcome=outcome,
        timelines=timelines,
        captures=captures,
        compared=_compared(earlier, judged),
        pages=_pages(),
        explain=command_line.explain(),
        undo=command_line.revert(args["run_id"]),
        repair=_repair_command(args, planned),
        faults=_codes(args),
        outside=tuple((name, str(row["reason"])) for name, row in args["outside"].items()),
        cluster_names=cluster_names.names(clusters, args["cluster_names"]),
        verbose=Display().verbosity > 0,
        evidence_time=max((item.collected_at for item in clusters), default=""),
        explanations=_explanations(judged),
        waivers_expired=evaluation.expired,
        severities=evaluation.severities,
    )


def _repair_command(args: dict[str, Any], planned: tuple[plan.Step, ...]) -> str:
    """Return the command for the steps that wait for consent; after a repair there is none."""
    if args["mode"] == "verify":
        return ""
    if args["mode"] == "replay":  # the hosts of the evidence may be of another inventory
        return run_plan.repair_command(planned, observing=True)
    return run_plan.repair_command(planned, args["mode"] == "observe", command_line.options())


def _fail_on(args: dict[str, Any], planned: tuple[plan.Step, ...]) -> str:
    """Return which findings fail the run; before a repair none, they are evaluated after it."""
    if _steps_to_do(args, planned):
        return "never"
    return str(args["fail_on"])


def _compared(
    earlier: report_diff.Earlier | None, judged: model_result.Result
) -> report_diff.Comparison | None:
    if earlier is None:
        return None
    return report_diff.compare(earlier, judged)


def _pages() -> str:
    """Return the directory of the pages of faults, if it is installed."""
    if PAGES.is_dir():
        return str(PAGES)
    return ""


def _explanations(judged: model_result.Result) -> dict[str, str]:
    return fault_pages.texts(str(PAGES), {finding.code for finding in judged.findings})


def _write_reports(formats: list[str], judged: model_result.Result, run: Run) -> list[str]:
    """Write the formats that the operator asked for; report.json and report.txt always.

    Return the texts to print.
    """
    printed = []
    atomic_file.replace(
        run.path("report.json"), itertools.chain(json_report.pieces(judged, run), ["\n"])
    )
    atomic_file.replace(run.path("report.txt"), [text.render(judged, run)])
    for name, render in RENDERERS.items():
        if name in formats:
            atomic_file.replace(run.path(FACES[name][0]), [render(judged, run)])
        else:
            remove_face(run.report_dir, name)
    if "terminal" in formats:
        printed.append(_terminal_text(judged, run, "github" in formats))
    if "github" in formats:
        printed.append(github.render(judged, run))
    return [content for content in printed if content]


def _documents(args: dict[str, Any], notices: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Return the evidence as it is evaluated, with one document in memory at a time.

    notices: a list to which notes about unreadable files are added.
    """
    documents = sources.stream(args["evidence"], notices)
    if args["mode"] == "replay":  # the evidence may be of another day and another controller
        return documents
    me = cluster_lock.controller(os.getppid())
    return (cluster_lock.without_gone(document, me, args["take"]) for document in documents)


def _packed(args: dict[str, Any], case: writer.Case, repairs: bool) -> tuple[Run, dict[str, Any]]:
    """Write the requested bundle; return (the run for its reports, further fields of the result).

    The bundle is written before the reports, which contain the run's exit code. In a repair a
    failure is only a warning, because the operator consented to the repair with or without a
    bundle.
    """
    reason = None
    if args["bundle"]:
        reason = _bundle(args, case)
    if reason is None:
        return case.run, {"bundle": args["bundle"]}
    run = replace(case.run, notices=(*case.run.notices, reason))
    if repairs:
        return run, {"bundle": None, "bundle_reason": reason, "warnings": [reason]}
    if not (run.outcome and run.outcome[0]):
        run = replace(run, outcome=(2, "input", reason))
    return run, {"bundle": None, "bundle_reason": reason}


def _bundle(args: dict[str, Any], case: writer.Case) -> str | None:
    """Write the bundle; return the reason why it could not be written, or None."""
    try:
        writer.write(args["bundle"], case, args["bundle_anonymous"])
    except writer.BundleError as error:
        return str(error)
    except EvidenceError as error:
        return f"No bundle was written: {error}"
    except OSError as error:
        return (
            f"No bundle was written: {error.filename or args['bundle']} cannot be used:"
            f" {error.strerror}."
        )
    return None


def _bundle_line(args: dict[str, Any], case: writer.Case) -> str:
    about = "with the names and addresses of your hosts"
    if args["bundle_anonymous"]:
        about = "without names of hosts and people and without addresses"
    return (
        f"kubemend: bundle: {args['bundle']} ({about}); to read it:"
        f" {writer.command(args['bundle'], case)}"
    )


def _captured(args: dict[str, Any]) -> tuple[tuple[dict[str, Any], ...], list[str]]:
    """Return (the captures of leading schedulers in this run, notes about them).

    A file that cannot be read causes a note.
    """
    path = Path(args["report_dir"]) / capture_outcome.FOLDER / scheduler.DOCUMENT
    if args["mode"] == "replay" or not path.exists():
        return (), []
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return tuple(document["results"]), [str(note) for note in document["notes"]]
    except (OSError, *UNFORESEEN) as error:
        return (), [f"kubemend_capture: {path} cannot be read ({one_line(error)})"]


def _of_pending(
    args: dict[str, Any], clusters: list[cluster.Cluster], outcome: tuple[int, str, str] | None
) -> tuple[tuple[str, ...], tuple[int, str, str] | None]:
    """Return (notes about pods that stay Pending, the outcome of the run).

    A pod that does not exist is an input error.
    """
    sentences, no_such_pod = pending_notices.render_sentences(clusters, args["symptom"])
    if no_such_pod and not (outcome and outcome[0]):
        return sentences, (2, "input", no_such_pod)
    return sentences, outcome


def _but_pending(args: dict[str, Any], lacking: tuple[str, ...]) -> tuple[str, ...]:
    """Return the reasons why there is no timeline, without those that the symptom explains."""
    if args["symptom"] != pending_notices.SYMPTOM:
        return lacking
    return tuple(reason for reason in lacking if not reason.startswith(timeline.NONE))


def _before_looks(
    args: dict[str, Any], steps: tuple[plan.Step, ...], queried: tuple[plan.Step, ...]
) -> dict[str, Any]:
    """Write the plan, and return the steps whose hosts check mode queries before the report."""
    _write_plan(args, steps)
    return {
        "report_dir": args["report_dir"],
        "run_id": args["run_id"],
        "exit_reason": "ok",
        "steps": [],
        "looks": [{"id": step.id, "host": step.host} for step in queried],
    }


def _write_plan(args: dict[str, Any], steps: tuple[plan.Step, ...]) -> None:
    """Write plan.json, which each step is read from."""
    settings = {name: args[name] for name in ("max_risk", "allow", "probe", "cleanup_rejected")}
    atomic_file.replace(
        str(Path(args["report_dir"]) / "plan.json"),
        [run_files.plan_text(args["run_id"], settings, steps)],
    )


def _with_patches(run: Run, texts: dict[str, str]) -> Run:
    """Write the patches as files; return the run with a note where one is missing."""
    unwritten = write_patches(Path(run.path("patches")), texts)
    if not unwritten:
        return run
    note = (
        f"{run.path('patches')} has files that kubemend did not write or that were changed since"
        f" ({', '.join(unwritten)}), which stay: the findings have these patches."
    )
    return replace(run, notices=(*run.notices, note))


def _symptom(name: str | None) -> Symptom | None:
    if name is None:
        return None
    symptom = symptoms.SYMPTOMS[name]
    return Symptom(symptom.name, symptom.title, tuple(symptom.causes))


def _answer(judged: model_result.Result, run: Run) -> dict[str, Any]:
    """Return codes, names and paths: evidence text never becomes a variable."""
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
    if code:
        answer.update(failed=True, msg=_failure(judged, run))
    return answer


def _failure(judged: model_result.Result, run: Run) -> str:
    """Return the message of a run that fails."""
    if run.outcome is not None and run.outcome[0]:
        return one_line(run.outcome[2])
    new = ""
    if run.compared is not None:
        new = f" by what is new since run {run.compared.run_id}"
    return f"kubemend_fail_on={run.fail_on} is reached{new}: {last_line(judged, run)}"


def _input_error(sentence: str) -> dict[str, Any]:
    return {"failed": True, "exit_reason": "input", "msg": sentence}


def _terminal_text(judged: model_result.Result, run: Run, fenced: bool = False) -> str:
    """Return the report to print, in the width and colour that Ansible has.

    Fenced, no line of it is a command to the runner of a GitHub workflow.
    """
    paint: Paint = plain
    if color.ANSIBLE_COLOR:
        paint = _paint
    report = text.render(judged, run, console.width(), paint)
    if fenced:
        report = github.fence(report, secrets.token_hex(16))
    return report


def _paint(content: str, kind: str) -> str:
    if kind not in COLOURS:
        return content
    return str(color.stringc(content, COLOURS[kind]))
