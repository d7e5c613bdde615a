# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A log capture in plain text: the raised levels, their outcome, and where the lines lie."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from json import dumps
from pathlib import Path
from typing import Any

from ...module_utils.shared.journal_names import FOLDER as JOURNAL
from ...module_utils.shared.paths import ROOT
from ...module_utils.shared.pod_rejection import REJECTED
from ...module_utils.shared.text import counted
from ...module_utils.shared.version import TOOL_VERSION
from ..capture import log_merge, outcome
from ..capture.outcome import Became
from ..capture.plan import KUBELET, Plan, Target
from ..evidence import document as evidence_document
from ..evidence import sources
from ..models import cluster as model_cluster
from ..models import moments, timeline
from ..models.result import Result
from ..run import cluster_lock, command_line
from ..safe_io import atomic_file
from . import actions, json_report
from .run_info import Run
from .text import WIDTH
from .text_page import Page, plain
from .timeline import render as render_timeline

LINES, TIMELINE, WIDE = "lines.txt", "timeline.txt", 120
UNREADABLE = (
    "(no process reports its level: what they have again is what their command lines and files say)"
)
REWRITES = (
    "  A kubelet that starts again rewrites the status of pods that it had rejected before"
    " (UnexpectedAdmissionError becomes ContainerStatusUnknown): look at the pod first."
)
DIFF = " " * 6  # before a line of a diff, which no other line has


@dataclass(frozen=True)
class CaptureReport:
    """The report of a capture.

    Attributes:
        text: the report as the console shows it.
        reason: the exit reason, ok if the run does not fail.
        sentence: why the run fails, empty if it does not.
        lines: the number of captured lines.
    """

    text: str
    reason: str
    sentence: str
    lines: int


def planned(plan: Plan, check: bool, back_at: float, width: int = WIDTH) -> str:
    """Return which levels will be raised, before they are.

    The levels are restored without this run at back_at, which matters if it is interrupted.
    """
    lines = [_planned_head(plan, check)]
    for target in plan.targets:
        lines += _planned_lines(target)
    lines += [f"  {note}" for note in plan.refused + plan.notes]
    restarts_kubelet = any(target.step and target.component == KUBELET for target in plan.targets)
    if restarts_kubelet and plan.needles:
        lines.append(REWRITES)
    if plan.targets and not check:
        lines.append(
            f"Run {plan.run_id}: should this be interrupted, the levels go back by themselves at"
            f" about {_time(back_at)}, or at once with {command_line.revert(plan.run_id)}"
        )
    return _wrapped(lines, width)


def _planned_head(plan: Plan, check: bool) -> str:
    if not plan.targets:
        return "No level has to be raised; what is logged now is captured."
    verb = "Raising"
    if check:
        verb = "Check mode, nothing is changed. Would raise"
    if any(target.step for target in plan.targets):
        return f"{verb} for {plan.seconds} s:"
    return f"{verb} for {plan.seconds} s, without a restart:"


def _planned_lines(target: Target) -> Iterator[str]:
    line = f"  {_name(target)}: {target.former} -> {target.level}"
    if target.host != target.on:
        line += f" (asked through {target.host})"
    if not target.step:
        yield line
        return
    yield f"{line}, by a restart of it ({target.step.get('target')})"
    for diff_line in str(target.step.get("diff") or "").splitlines():
        yield f"{DIFF}{diff_line}"


def _name(target: Target) -> str:
    return f"{target.on} {target.component}"


def refused(
    folder: str, plan: Plan, sentence: str, reason: str = "refused", formats: Iterable[str] = ()
) -> None:
    """Write the reports of a capture that ends before it starts.

    Either no requested level may be raised, or no host answers.
    """
    run = _run(folder, plan, plan.refused + plan.notes, (2, reason, sentence))
    page = Page(WIDTH, plain)
    page.line(f"Capture of run {plan.run_id}: {sentence}")  # which ends with what to copy
    for note in plan.notes:
        page.prose(note, indent=2)
    text = page.text()
    atomic_file.replace(Path(folder) / "report.txt", [text])
    cases = actions.of_capture(run, replace(plan, logging={}), (), frozenset())
    actions.write(folder, formats, run, text, cases)
    _write_json(folder, run, _for_programs(plan, (), 0, None))


def _run(folder: str, plan: Plan, notices: tuple[str, ...], result: tuple[int, str, str]) -> Run:
    return Run(
        plan.run_id,
        _time(plan.begun),
        evidence_document.now(),
        "capture",
        folder,
        TOOL_VERSION,
        notices=notices,
        outcome=result,
    )


def _write_json(folder: str, run: Run, capture: Mapping[str, Any]) -> None:
    document = {**json_report.render(Result(), run), "capture": capture}
    atomic_file.replace(Path(folder) / "report.json", [dumps(document) + "\n"])


def make(folder: str, plan: Plan, width: int = WIDTH, formats: Iterable[str] = ()) -> CaptureReport:
    """Merge the captured lines, write lines.txt and the reports, and return the outcome.

    The width is that of the console.
    """
    documents = list(log_merge.load(outcome.place(folder) / "logs"))
    merged = log_merge.merge(documents)
    atomic_file.replace(outcome.place(folder) / LINES, [log_merge.render(merged)])
    done, restarts = _with_restarts(plan, outcome.became(folder, plan.targets), documents)
    reason, sentence = _verdict(folder, plan, done, bool(documents))
    read = frozenset(str(document.get("host")) for document in documents)
    notices = restarts + log_merge.notices(documents)
    path = Path(folder) / outcome.FOLDER / LINES
    pods, lacking = _timelines(folder, merged, plan.begun)
    lines = [
        *lacking,
        *_write_timelines(folder, pods),
        f"Capture of run {plan.run_id}: level {plan.level} for {plan.seconds} s",
        *_levels(plan, done),
        *(f"  {note}" for note in plan.refused + plan.notes),
        *_noticed(notices, plan, read),
        "",
        _last_line(done, merged, path, sentence),
    ]
    shown, kept = (
        _rendered(pods, columns, everything=False) + _wrapped(lines, columns)
        for columns in (width, WIDTH)
    )
    atomic_file.replace(Path(folder) / "report.txt", [kept])
    code = 2
    if reason == "ok":
        code = 0
    all_notices = plan.refused + plan.notes + lacking + tuple(notices)
    run = replace(_run(folder, plan, all_notices, (code, reason, sentence)), timelines=pods)
    _write_json(folder, run, _for_programs(plan, done, len(merged), str(path)))
    cases = actions.of_capture(run, plan, done, read)
    actions.write(folder, formats, run, _wrapped(lines, WIDTH), cases)
    return CaptureReport(shown, reason, sentence, len(merged))


def _write_timelines(folder: str, pods: Sequence[timeline.Timeline]) -> list[str]:
    """Write the whole timelines to a file, and return the lines that name it."""
    if not pods:
        return []
    path = outcome.place(folder) / TIMELINE
    atomic_file.replace(path, [_rendered(pods, WIDE, everything=True)])
    return [f"with every line: {path}", ""]


def _noticed(notices: Iterable[str], plan: Plan, read: Collection[str]) -> list[str]:
    lines = [f"  {notice}" for notice in notices]
    for host, names in plan.logging.items():
        if names and host not in read:
            lines.append(f"  {host}: what it logged was not read")
    if not lines:
        return []
    return ["", "Noticed:", *lines]


def _last_line(
    done: Sequence[Became], lines: Sequence[log_merge.Line], path: Path, sentence: str
) -> str:
    raised = sum(item.raised for item in done)
    restored = sum(item.restored is True for item in done)
    hosts = len({line.host for line in lines})
    text = (
        f"kubemend: {counted(raised, 'level')} raised, {restored} put back;"
        f" {counted(len(lines), 'line')} of {counted(hosts, 'host')}: {path}"
    )
    if sentence:
        text += f"; {sentence}"
    return text


def _with_restarts(
    plan: Plan, done: Iterable[Became], documents: Iterable[Mapping[str, Any]]
) -> tuple[tuple[Became, ...], list[str]]:
    """Return the outcomes and notices after restarts since the levels were raised.

    A restarted process has lost its raised level, so nothing remains to be restored.
    """
    answered = {
        str(document.get("host")): document
        for document in documents
        if document.get("status") == "ok" and document.get("started")
    }
    outcomes: list[Became] = []
    notices: dict[str, None] = {}
    for item in done:
        document = answered.get(item.target.on)
        if not document or item.target.step or item.restored is None:
            outcomes.append(item)
            continue
        since = log_merge.started(document, item.target.component)
        notice = _restart_notice(item.target, plan, log_merge.started(document, "host"), since)
        if notice:
            notices[notice] = None
        outcomes.append(_after_restart(item, plan, since))
    return tuple(outcomes), list(notices)


def _restart_notice(
    target: Target, plan: Plan, host_since: float | None, since: float | None
) -> str:
    if host_since is not None and host_since > plan.begun:
        return (
            f"{target.on} was started again at {_time(host_since)}: its levels were up until then"
        )
    if since is not None and since > plan.begun:
        return (
            f"{target.component} of {target.on} was started again at {_time(since)}: its"
            " level was up until then"
        )
    return ""


def _after_restart(item: Became, plan: Plan, since: float | None) -> Became:
    if item.restored is not False or (since is not None and since <= plan.begun):
        return item
    reason = "it does not run, and starts with its own level"
    if since:
        reason = f"it was started again at {_time(since)}, with its own level"
    return replace(item, restored=True, trying=False, reason=reason)


def _for_programs(
    plan: Plan, done: Iterable[Became], lines: int, path: str | None
) -> dict[str, Any]:
    return {
        "level": plan.level,
        "seconds": plan.seconds,
        "lines": lines,
        "path": path,
        "levels": [_level_for_programs(plan, item) for item in done],
    }


def _level_for_programs(plan: Plan, item: Became) -> dict[str, Any]:
    target = item.target
    way = "run-time"
    if target.step:
        way = "restart"
    return {
        "host": target.on,
        "component": target.component,
        "through": target.host,
        "former": target.former,
        "level": target.level,
        "way": way,
        "restarted": list(item.restarted),
        "log_until_then": _kept_log(plan, item),
        "raised": item.raised,
        "restored": item.restored,
        "reason": item.reason,
    }


def _time(seconds: float) -> str:
    return log_merge.stamp(seconds)[:19] + "Z"


def _timelines(
    folder: str, lines: Iterable[log_merge.Line], begun: float
) -> tuple[tuple[timeline.Timeline, ...], tuple[str, ...]]:
    """Return the timelines of the requested pod, from the API and the captured lines together.

    If no pod was named, the pod is one that was rejected since `begun`, if any.
    """
    before, after = (_collectors(Path(folder) / name) for name in ("evidence", "evidence-after"))
    for key, collectors in after.items():
        _complete_pod(collectors, before.get(key) or {}, begun)
    return timeline.of_clusters(
        (model_cluster.Cluster(None, [], collectors) for collectors in (after or before).values()),
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


def _complete_pod(collectors: dict[str, Any], former: Mapping[str, Any], begun: float) -> None:
    """Keep the former data of a pod that is gone now; drop a pod that was rejected before."""
    former_data = (former.get("pod") or {}).get("data")
    data = (collectors.get("pod") or {}).get("data")
    if not isinstance(data, dict):
        return
    if isinstance(former_data, dict) and not data.get("pod"):
        data["pod"] = former_data.get("pod")
    if data.get("asked") == REJECTED and not _is_created_since(data.get("pod"), begun):
        collectors["pod"] = {}


def _is_created_since(pod: Any, begun: float) -> bool:
    if not isinstance(pod, dict) or not isinstance(pod.get("created"), str):
        return False
    created = moments.timestamp(pod["created"])
    return created is not None and created.timestamp() >= int(begun)


def _collectors(directory: Path) -> dict[str, dict[str, Any]]:
    """Return the API's answers of each cluster, by the cluster's key."""
    if not any(directory.glob("*.cluster.json")):
        return {}
    return {
        str(document.get("cluster_key")): document.get("collectors") or {}
        for document in sources.stream([str(directory)])
        if document.get("kind") == "cluster"
    }


def _wrapped(lines: Iterable[str], width: int) -> str:
    """Wrap lines, except a diff, and a command at the end of a line, which is to be copied."""
    page = Page(width, plain)
    for line in lines:
        if not line or line.startswith(DIFF):
            page.line(line)
            continue
        indent = len(line) - len(line.lstrip(" "))
        text, command = command_line.parted(line)
        page.prose(text.strip(" "), indent=indent)
        if command:
            page.line(" " * (indent + 2) + command)
    return page.text()


def _rendered(pods: Iterable[timeline.Timeline], width: int, everything: bool) -> str:
    page = Page(width, plain)
    for pod in pods:
        render_timeline(page, pod, everything)
        page.gap()
    return page.text()


def _levels(plan: Plan, done: Collection[Became]) -> list[str]:
    lines = []
    for item in done:
        lines.append(_level(item))
        if item.target.step and (item.raised or item.restarted):
            lines.append(_restarts(plan, item))
    if any(item.restored and not item.reason and not item.target.step for item in done):
        lines.append(f"  {UNREADABLE}")
    return lines


def _level(item: Became) -> str:
    target = item.target
    if item.restored is None:
        return f"  {_name(target)}: not raised: {item.reason}"
    change = f"  {_name(target)}: {target.former} -> {target.level}"
    if item.restored and item.reason:
        return f"{change}, not raised any more: {item.reason}"
    if item.restored:
        return f"{change} -> {target.former} again"
    if item.trying:
        return f"{change}, NOT PUT BACK: {item.reason}; a service on {target.host} goes on trying"
    return f"{change}, NOT PUT BACK: {item.reason}"


def _restarts(plan: Plan, item: Became) -> str:
    times = ", again at ".join(item.restarted) or "a time that its host does not say"
    line = f"    by a restart: restarted at {times}"
    if item.restored and not item.reason and len(item.restarted) == 1:
        line += ", again by a service of its host"
    kept = _kept_log(plan, item)
    if kept:
        line += f"; what it logged until then: {kept} on {item.target.on}"
    return line


def _kept_log(plan: Plan, item: Became) -> str | None:
    """Return where the host keeps the log of a restarted pod; a kubelet's is in journald."""
    target = item.target
    if not target.step or not item.raised or target.component == KUBELET:
        return None
    return f"{ROOT}/{JOURNAL}/{plan.run_id}/log-{target.component}-*"


def _verdict(folder: str, plan: Plan, done: Iterable[Became], read: bool) -> tuple[str, str]:
    raised = [item for item in done if item.restored is False]
    if raised:
        return "failed", _not_restored(plan, raised)
    for host in plan.raising:
        has_lock, sentence = cluster_lock.holds(folder, plan.run_id, host)
        if not has_lock:
            return "refused", sentence
    for item in done:
        if item.restored is None:
            target = item.target
            return (
                "refused",
                f"the level of {target.component} of {target.on} was not raised: {item.reason}",
            )
    if not read and any(plan.logging.values()):
        return "failed", "the capture was ended before anything was read"
    return "ok", ""


def _not_restored(plan: Plan, raised: Sequence[Became]) -> str:
    names = ", ".join(f"{item.target.component} of {item.target.on}" for item in raised)
    reasons = "; ".join(dict.fromkeys(item.reason for item in raised))
    sentence = f"the level of {names} was not put back ({reasons})"
    if any(item.trying for item in raised):
        command = command_line.revert(plan.run_id)
        sentence += f"; a service there goes on trying, or take it back with {command}"
    return sentence
