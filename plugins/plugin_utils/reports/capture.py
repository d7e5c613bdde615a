# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A capture in plain text: what is raised, what became of it, and where the lines lie."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from json import dumps
from pathlib import Path
from typing import Any

from ...module_utils.shared.journal_names import FOLDER as JOURNAL
from ...module_utils.shared.paths import ROOT
from ...module_utils.shared.pod_rejection import REJECTED
from ..capture import log_merge
from ..capture import outcome as capturing
from ..capture.outcome import Became
from ..capture.plan import KUBELET, REVERT, Plan
from ..evidence import document as evidence
from ..evidence import sources as evidence_sources
from ..models import cluster as clusters
from ..models import timeline
from ..models.result import Result
from ..run import cluster_lock as locking
from ..safe_io import atomic_file as private_files
from . import actions as unjudged
from . import json_report as json
from .run_info import Run
from .text import WIDTH
from .text_page import Page, plain
from .timeline import render as render_timeline

LINES, TIMELINE, WIDE = "lines.txt", "timeline.txt", 120
UNREADABLE = (
    "(no process tells its level: what they have again is what their command lines and files say)"
)
DIFF = " " * 6  # before a line of a diff, which no other line has


@dataclass(frozen=True)
class Made:
    """The report as the terminal shows it, why the run fails (an exit reason and one sentence,
    or ok and none), how many lines were captured.
    """

    text: str
    reason: str
    sentence: str
    lines: int


def planned(plan: Plan, check: bool, back_at: float, width: int = WIDTH) -> str:
    """What will be raised, before it is. back_at.

    When it is back by itself, for whoever interrupts this.
    """
    doing = "Check mode, nothing is changed. Would raise" if check else "Raising"
    how = "" if any(target.step for target in plan.targets) else ", without a restart"
    lines = (
        [f"{doing} for {plan.seconds} s{how}:"]
        if plan.targets
        else ["No level has to be raised; what is logged now is captured."]
    )
    for target in plan.targets:
        through = f" (asked through {target.host})" if target.host != target.on else ""
        through += f", by a restart of it ({target.step.get('target')})" if target.step else ""
        lines.append(
            f"  {target.on} {target.component}: {target.former} -> {target.level}{through}"
        )
        lines += [
            f"{DIFF}{line}" for line in str((target.step or {}).get("diff") or "").splitlines()
        ]
    lines += [f"  {note}" for note in plan.refused + plan.notes]
    if any(target.step and target.component == KUBELET for target in plan.targets) and plan.needles:
        lines.append(
            "  A kubelet that starts again rewrites the status of pods that it had rejected before"
            " (UnexpectedAdmissionError becomes ContainerStatusUnknown): look at the pod first."
        )
    if plan.targets and not check:
        lines.append(
            f"Run {plan.run_id}: should this be interrupted, the levels go back by themselves at"
            f" about {_at(back_at)}, or at once with {REVERT}{plan.run_id}"
        )
    return _wrapped(lines, width)


def refused(
    folder: str, plan: Plan, sentence: str, reason: str = "refused", formats: Iterable[str] = ()
) -> None:
    """Write the reports of a capture that ends before it begins.

    Nothing that was asked for may be raised, or nobody answers.
    """
    run = Run(
        plan.run_id,
        _at(plan.begun),
        evidence.now(),
        "capture",
        folder,
        evidence.TOOL_VERSION,
        notices=plan.refused + plan.notes,
        outcome=(2, reason, sentence),
    )
    page = Page(WIDTH, plain)
    page.line(f"Capture of run {plan.run_id}: {sentence}")  # which ends with what to copy
    for note in plan.notes:
        page.prose(note, indent=2)
    text = "".join(line + "\n" for line in page.lines)
    private_files.replace(Path(folder) / "report.txt", [text])
    unjudged.write(
        folder,
        formats,
        run,
        text,
        unjudged.of_capture(run, replace(plan, logging={}), (), frozenset()),
    )
    private_files.replace(
        Path(folder) / "report.json",
        [dumps({**json.render(Result(), run), "capture": _for_programs(plan, (), 0, None)}) + "\n"],
    )


def make(folder: str, plan: Plan, width: int = WIDTH, formats: Iterable[str] = ()) -> Made:
    """Merge what was captured, write lines.txt and the reports, and say what became of it. width.

    Of the terminal.
    """
    documents = list(log_merge.load(capturing.place(folder) / "logs"))
    merged = log_merge.merge(documents)
    private_files.replace(capturing.place(folder) / LINES, [log_merge.render(merged)])
    done, restarts = _meanwhile(plan, capturing.became(folder, plan.targets), documents)
    reason, sentence = _verdict(folder, plan, done, bool(documents))
    text = [f"Capture of run {plan.run_id}: level {plan.level} for {plan.seconds} s"]
    text += _levels(plan, done) + [f"  {note}" for note in plan.refused + plan.notes]
    read = frozenset(str(document.get("host")) for document in documents)
    unread = [host for host, names in plan.logging.items() if names and host not in read]
    notices = restarts + log_merge.notices(documents)
    noticed = [f"  {one}" for one in notices] + [
        f"  {host}: what it logged was not read" for host in unread
    ]
    if noticed:
        text += ["", "Noticed:", *noticed]
    raised = sum(one.raised for one in done)
    where = Path(folder) / capturing.FOLDER / LINES
    text += [
        "",
        f"kubemend: {raised} levels raised, {sum(one.restored is True for one in done)} put back;"
        f" {len(merged)} lines of {len({line.host for line in merged})} hosts: {where}"
        + (f"; {sentence}" if sentence else ""),
    ]
    pods, lacking = _timelines(folder, merged, plan.begun)
    whole = capturing.place(folder) / TIMELINE
    if pods:
        private_files.replace(whole, [_rendered(pods, WIDE, everything=True)])
    told = [*lacking, *([f"with every line: {whole}", ""] if pods else [])]
    shown, kept = (
        _rendered(pods, columns, everything=False) + _wrapped(told + text, columns)
        for columns in (width, WIDTH)
    )
    private_files.replace(Path(folder) / "report.txt", [kept])
    run = Run(
        plan.run_id,
        _at(plan.begun),
        evidence.now(),
        "capture",
        folder,
        evidence.TOOL_VERSION,
        timelines=pods,
        notices=plan.refused + plan.notes + lacking + tuple(notices),
        outcome=(0 if reason == "ok" else 2, reason, sentence),
    )
    document = {
        **json.render(Result(), run),
        "capture": _for_programs(plan, done, len(merged), str(where)),
    }
    private_files.replace(Path(folder) / "report.json", [dumps(document) + "\n"])
    unjudged.write(
        folder,
        formats,
        run,
        _wrapped(told + text, WIDTH),
        unjudged.of_capture(run, plan, done, read),
    )
    return Made(shown, reason, sentence, len(merged))


def _meanwhile(
    plan: Plan, done: tuple[Became, ...], documents: Iterable[Mapping[str, Any]]
) -> tuple[tuple[Became, ...], list[str]]:
    """What was started again since the levels were raised.

    Its level went with it, so that nothing is left to be put back. And a notice each.
    """
    answered = {
        str(document.get("host")): document
        for document in documents
        if document.get("status") == "ok" and document.get("started")
    }
    found, notices = [], {}
    for one in done:
        target, document = one.target, answered.get(one.target.on)
        if document and not target.step and one.restored is not None:
            host, since = (log_merge.started(document, name) for name in ("host", target.component))
            if host is not None and host > plan.begun:
                notices[
                    f"{target.on} was started again at {_at(host)}: its levels were up until then"
                ] = None
            elif since is not None and since > plan.begun:
                notices[
                    f"{target.component} of {target.on} was started again at {_at(since)}: its"
                    " level was up until then"
                ] = None
            if one.restored is False and (since is None or since > plan.begun):
                what = (
                    f"it was started again at {_at(since)}, with its own level"
                    if since
                    else "it does not run, and starts with its own level"
                )
                one = replace(one, restored=True, trying=False, reason=what)
        found.append(one)
    return tuple(found), list(notices)


def _for_programs(
    plan: Plan, done: Iterable[Became], lines: int, path: str | None
) -> dict[str, Any]:
    return {
        "level": plan.level,
        "seconds": plan.seconds,
        "lines": lines,
        "path": path,
        "levels": [
            {
                "host": one.target.on,
                "component": one.target.component,
                "through": one.target.host,
                "former": one.target.former,
                "level": one.target.level,
                "way": "restart" if one.target.step else "run-time",
                "restarted": list(one.restarted),
                "log_until_then": _kept(plan, one),
                "raised": one.raised,
                "restored": one.restored,
                "reason": one.reason,
            }
            for one in done
        ],
    }


def _at(seconds: float) -> str:
    return log_merge.stamp(seconds)[:19] + "Z"


def _timelines(
    folder: str, lines: Iterable[log_merge.Line], begun: float
) -> tuple[tuple[timeline.Timeline, ...], tuple[str, ...]]:
    """What happened to the pod in question, by the API and the captured lines together.

    Nothing where none is.

    Where none was named, it is one that was rejected since `begun`, if any.
    """
    before, after = (_collectors(Path(folder) / name) for name in ("evidence", "evidence-after"))
    for key, collectors in after.items():
        seen, now = (
            ((before.get(key) or {}).get("pod") or {}).get("data"),
            (collectors.get("pod") or {}).get("data"),
        )
        if isinstance(seen, dict) and isinstance(now, dict) and not now.get("pod"):
            now["pod"] = seen.get("pod")  # it went meanwhile: what was known of it stays true
        if (
            isinstance(now, dict)
            and now.get("asked") == REJECTED
            and not _since(now.get("pod"), begun)
        ):
            collectors["pod"] = {}
    return timeline.of_clusters(
        (clusters.Cluster(None, [], collectors) for collectors in (after or before).values()),
        (
            {
                "time": line.time,
                "host": line.host,
                "component": line.component,
                "source": line.source,
                "text": line.text,
            }
            for line in lines
        ),
    )


def _since(pod: Any, begun: float) -> bool:
    created = clusters.timestamp(
        pod.get("created")
        if isinstance(pod, dict) and isinstance(pod.get("created"), str)
        else None
    )
    return created is not None and created.timestamp() >= int(begun)


def _collectors(folder: Path) -> dict[str, dict[str, Any]]:
    """What the API of each cluster said, by the cluster's key."""
    if not any(folder.glob("*.cluster.json")):
        return {}
    return {
        str(document.get("cluster_key")): document.get("collectors") or {}
        for document in evidence_sources.stream([str(folder)])
        if document.get("kind") == "cluster"
    }


def _wrapped(lines: Iterable[str], width: int) -> str:
    """These lines in that width.

    But a diff, and a command at the end of a line, which is to be copied.
    """
    page = Page(width, plain)
    for line in lines:
        if not line or line.startswith(DIFF):
            page.line(line)
            continue
        indent = len(line) - len(line.lstrip(" "))
        said, command, of_run = line.partition(REVERT)
        page.prose(said.strip(" "), indent=indent)
        if command:
            page.line(" " * (indent + 2) + command + of_run)
    return "".join(line + "\n" for line in page.lines)


def _rendered(pods: Iterable[timeline.Timeline], width: int, everything: bool) -> str:
    page = Page(width, plain)
    for one in pods:
        render_timeline(page, one, everything)
        page.gap()
    return "".join(line + "\n" for line in page.lines)


def _levels(plan: Plan, done: Collection[Became]) -> list[str]:
    lines = []
    for one in done:
        target = one.target
        if one.restored is None:
            lines.append(f"  {target.on} {target.component}: not raised: {one.reason}")
        elif one.restored:
            end = (
                f", not raised any more: {one.reason}"
                if one.reason
                else f" -> {target.former} again"
            )
            lines.append(
                f"  {target.on} {target.component}: {target.former} -> {target.level}{end}"
            )
        else:
            lines.append(
                f"  {target.on} {target.component}: {target.former} -> {target.level}, NOT PUT"
                f" BACK: {one.reason}"
                + (f"; a service on {target.host} goes on trying" if one.trying else "")
            )
        if target.step and (one.raised or one.restarted):
            times = ", again at ".join(one.restarted) or "a time that its host does not say"
            back = (
                ", again by a service of its host"
                if one.restored and not one.reason and len(one.restarted) == 1
                else ""
            )
            kept = _kept(plan, one)
            lines.append(
                f"    by a restart: restarted at {times}{back}"
                + (f"; what it logged until then: {kept} on {target.on}" if kept else "")
            )
    if any(one.restored and not one.reason and not one.target.step for one in done):
        lines.append(f"  {UNREADABLE}")
    return lines


def _kept(plan: Plan, one: Became) -> str | None:
    """Where its host keeps what went with its pod; a kubelet's lines stay in journald."""
    target = one.target
    return (
        f"{ROOT}/{JOURNAL}/{plan.run_id}/log-{target.component}-*"
        if target.step and one.raised and target.component != KUBELET
        else None
    )


def _verdict(folder: str, plan: Plan, done: tuple[Became, ...], read: bool) -> tuple[str, str]:
    left = [one for one in done if one.restored is False]
    if left:
        names = ", ".join(f"{one.target.component} of {one.target.on}" for one in left)
        trying = (
            f"; a service there goes on trying, or take it back with {REVERT}{plan.run_id}"
            if any(one.trying for one in left)
            else ""
        )
        return (
            "failed",
            (
                f"the level of {names} was not put back"
                f" ({'; '.join(dict.fromkeys(one.reason for one in left))}){trying}"
            ),
        )
    for host in plan.raising:
        held, sentence = locking.holds(folder, plan.run_id, host)
        if not held:
            return "refused", sentence
    refused = [one for one in done if one.restored is None]
    if refused:
        first = refused[0]
        return (
            "refused",
            (
                f"the level of {first.target.component} of {first.target.on} was not raised:"
                f" {first.reason}"
            ),
        )
    if not read and any(plan.logging.values()):
        return "failed", "the capture was ended before anything was read"
    return "ok", ""
