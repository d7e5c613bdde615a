# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the static pod directory of one host, and what kubemend runs left on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...evidence import contract
from ...evidence.answers.cluster.nodes import Cordon, Node, Nodes
from ...evidence.answers.cluster.work import Work
from ...evidence.answers.kubemend_journal import OpenStep
from ...evidence.answers.node.journal import Journal, PendingChange, RaisedLevel
from ...evidence.document import one_line
from ...models import control_plane
from ...models.cluster import Cluster, Host
from ...models.control_plane import FileUse, Process
from ...models.result import EvidenceRef, Missing
from ...parsers import pflag
from ..base import CheckResult, Detection, node_check, present, unknown

# The kubelet reads the directory every 20 s and then needs a graceful stop and a start: a younger
# change is no fault yet.
SETTLE_SECONDS = 60
SHOWN = 5  # arguments that a summary names
JOURNAL = "/var/lib/kubemend/journal"


def _applies(host: Host) -> bool:
    return host.statuses.get("manifests") != "absent" or host.status != "ok"


def _unread(host: Host) -> tuple[Missing, ...]:
    if host.status == "ok" and host.control_plane and host.control_plane.unread:
        return (*host.missing("manifests"), Missing(host.host, "manifests", "denied"))
    return host.missing("manifests")


@node_check(
    "KM107",
    "Manifest does not parse",
    severity="critical",
    applies="every file in the static pod folder whose name begins with no dot",
    risk=2,
    needs=("kubelet", "manifests"),
)
def broken(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM107: report manifests that the kubelet cannot read.

    It drops such a manifest and stops the component that ran from it.
    """
    hits: list[Detection] = []
    if host.control_plane:
        hits = [_broken_hit(host, manifest) for manifest in host.control_plane.broken]
    yield CheckResult(tuple(hits), _unread(host), _applies(host), host=host.host)


def _broken_hit(host: Host, manifest: control_plane.BrokenFile) -> Detection:
    effect: str = "the kubelet ignores it"
    severity: str | None = "warning"
    if manifest.component:
        effect, severity = f"{manifest.component} is or will be stopped", None
    place = manifest.path
    if manifest.line:
        place = f"{manifest.path}:{manifest.line}"
    proof = EvidenceRef(
        "file",
        host.host,
        path=manifest.path,
        line=manifest.line,
        text=manifest.text or manifest.problem,
    )
    return Detection(
        f"manifest does not parse ({manifest.problem}): {effect}",
        (proof,),
        f"correct {place}, or move the file out of the folder",
        host.host,
        host.node,
        manifest.component,
        severity=severity,
    )


@node_check(
    "KM108",
    "Manifest newer than its process",
    severity="critical",
    applies="components that run as static pods",
    risk=2,
    needs=("system", "kubelet", "manifests", "instances"),
)
def outdated(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM108: report a manifest whose command line is not the one that runs from it."""
    plane = host.control_plane
    missing = list(_unread(host) + host.missing("instances"))
    if plane is None or host.status != "ok":
        yield CheckResult((), tuple(missing), _applies(host), host=host.host)
        return
    hits = []
    for process in plane.processes:
        use = _outdated_manifest(plane, process)
        if use is None:
            continue
        if plane.clock - use.changed < SETTLE_SECONDS and not plane.kubelet_problem:
            missing.append(Missing(host.host, "instances", "starting"))
        else:
            hits.append(_outdated(host, use, process, plane.kubelet_problem))
    note = ""
    if missing and not hits:
        note = "changed less than a minute ago: the kubelet may still start it"
    unique = tuple(dict.fromkeys(missing))
    yield CheckResult(tuple(hits), unique, _applies(host), host=host.host, note=note)


def _outdated_manifest(plane: control_plane.ControlPlane, process: Process) -> FileUse | None:
    """Return the manifest that a process does not follow, or None."""
    if not process.static:
        return None
    uses = [use for use in plane.files if use.component == process.component]
    if not uses or any(_agrees(use, process) for use in uses):
        return None
    return next((use for use in uses if use.usual), uses[0])


def _agrees(use: FileUse, process: Process) -> bool:
    """Tell whether a process runs with the arguments of its manifest.

    If the manifest starts a shell, only the flag of leader election is compared.
    """
    if use.words and use.words[0].rsplit("/", 1)[-1] in ("sh", "bash", "dash", "ash"):
        running = pflag.bool_flag(process.argv, "leader-elect")
        if use.flag is None or running is None:
            return use.flag is None and running is None
        return use.flag.value == running.value
    expected_flags = _flags(use.words)
    return expected_flags == _flags(process.argv) or not expected_flags


def _flags(words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith("--")]


def _outdated(host: Host, use: FileUse, process: Process, reason: str) -> Detection:
    running, expected_flags = _flags(process.argv), _flags(use.words)
    only_file = [word for word in expected_flags if word not in running] or expected_flags[:1]
    only_process = [word for word in running if word not in expected_flags]
    because = reason or "the kubelet runs; it did not take the change"
    text = f"runs with {' '.join(only_process) or 'none of these'}"
    proofs = [
        EvidenceRef("file", host.host, path=use.path, text=" ".join(only_file)),
        EvidenceRef("process", host.host, pid=process.pid, argv=process.argv, text=text),
    ]
    remedy = (
        "find out why the kubelet did not take the manifest (its log), then let it restart the"
        " component"
    )
    if reason:
        proofs.append(EvidenceRef("unit", host.host, object="kubelet", text=reason))
        remedy = "repair the kubelet first; it loads the manifest when it is back"
    return Detection(
        f"the process is older than its manifest and does not follow it: {because}",
        tuple(proofs),
        remedy,
        host.host,
        host.node,
        process.component,
    )


@node_check(
    "KM109",
    "Duplicate or backup manifest in the static pod folder",
    severity="critical",
    applies="the static pod folder",
    risk=2,
    needs=("kubelet", "manifests"),
)
def second_manifest(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM109: report two files of one pod, or of one component.

    The kubelet loads every file whose name begins with no dot.
    """
    groups: dict[str, list[FileUse]] = {}
    paths_by_pod: dict[str, list[str]] = {}
    if host.control_plane:
        for use in host.control_plane.files:
            groups.setdefault(use.component, []).append(use)
        for path, pod in host.control_plane.others:
            paths_by_pod.setdefault(pod, []).append(path)
    hits = [
        _component_twice(host, component, uses)
        for component, uses in sorted(groups.items())
        if len({use.path for use in uses}) > 1
    ]
    hits += [
        _pod_twice(host, pod, sorted(paths))
        for pod, paths in sorted(paths_by_pod.items())
        if len(paths) > 1
    ]
    yield CheckResult(tuple(hits), _unread(host), _applies(host), host=host.host)


def _component_twice(host: Host, component: str, uses: list[FileUse]) -> Detection:
    paths = sorted({use.path for use in uses})
    usual = [use.path for use in uses if use.usual]
    stray = [path for path in paths if path not in usual] or paths[1:]
    effect = "the component is started twice"
    if len({use.pod for use in uses}) == 1:
        effect = f"both define one pod, and the kubelet runs either{_winner(host, component, uses)}"
    names = ", ".join(one_line(path.rpartition("/")[2], 120) for path in paths)
    return Detection(
        f"{len(paths)} manifests of {component} in the static pod folder ({names}): {effect}",
        tuple(
            EvidenceRef("file", host.host, path=path, text=_difference(uses, path))
            for path in paths
        ),
        f"move {', '.join(stray)} out of the folder, once you know that the other file is the"
        " right one",
        host.host,
        host.node,
        component,
    )


def _winner(host: Host, component: str, uses: list[FileUse]) -> str:
    """Return which of the files the process runs from, "" where that is not certain."""
    flags = _running_flags(host, component)
    winners = {use.path for use in uses if flags and _flags(use.words) == flags}
    if len(winners) != 1:
        return ""
    path = winners.pop()
    words = dict.fromkeys(word for use in uses for word in _flags(use.words))
    lost = [word for word in words if word not in flags]
    text = f"; now it runs with the arguments of {one_line(path.rpartition('/')[2], 120)}"
    if lost:
        text += f", without {' '.join(lost[:SHOWN])}"
    return one_line(text, 500)


def _running_flags(host: Host, component: str) -> list[str]:
    """Return the flags of the one static pod of a component that runs, else none."""
    if host.control_plane is None:
        return []
    processes = host.control_plane.processes
    running = [row for row in processes if row.component == component and row.static]
    if len(running) != 1:
        return []
    return _flags(running[0].argv)


def _pod_twice(host: Host, pod: str, paths: list[str]) -> Detection:
    """Report another static pod of two files, as a load balancer before the API servers."""
    return Detection(
        f"{len(paths)} manifests of the pod {one_line(pod, 120)} in the static pod folder:"
        " the kubelet runs either",
        tuple(EvidenceRef("file", host.host, path=path) for path in paths),
        f"compare {' and '.join(paths)}, and move the wrong one out of the folder",
        host.host,
        host.node,
        severity="warning",
        risk=0,
    )


def _difference(uses: list[FileUse], path: str) -> str:
    words = next(set(use.words) for use in uses if use.path == path)
    other_words = set().union(*(set(use.words) for use in uses if use.path != path))
    only_here = sorted(words - other_words)
    if not only_here:
        return "has no argument that the other lacks"
    return "only this file has: " + " ".join(only_here)


@node_check(
    "KM902",
    "Interrupted change",
    severity="critical",
    applies="hosts that a repairing run has changed",
    risk=2,
    needs=("journal",),
)
def interrupted(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM902: report a change without its end, or a step that was not verified, in the journal.

    The verdict is unknown while a run works on the host.
    """
    unread = _journal_unread(host)
    if unread is not None:
        yield unread
        return
    journal = contract.answer(document, Journal)
    working = [step for step in journal.unproven if step.running]
    hits: list[Detection] = []
    if not journal.busy:
        hits = [*_unfinished(host, journal), *_down(host, journal)]
    # What is under way may still fail.
    under_way: tuple[Missing, ...] = ()
    if journal.busy or working:
        under_way = (Missing(host.host, "journal", "busy"),)
    note = ""
    if working:
        note = f"step {working[0].step} of run {working[0].run_id} is at work on {host.host}"
    applies = host.statuses.get("journal") == "ok"
    yield CheckResult(_together(hits), under_way, applies, host=host.host, note=note)


def _journal_unread(host: Host) -> CheckResult | None:
    """Return the result for a host whose journal was not read, or None."""
    if host.status == "ok" and host.statuses.get("journal") in ("ok", "absent"):
        return None
    # Evidence of before the journal was collected has nothing about it.
    is_requested = host.status != "ok" or "journal" in host.statuses
    missing: tuple[Missing, ...] = ()
    if is_requested:
        missing = host.missing("journal")
    return CheckResult((), missing, is_requested, host=host.host)


def _unfinished(host: Host, journal: Journal) -> Iterator[Detection]:
    """Yield a hit for each change without its end, and for each step that was not verified."""
    for change in journal.pending:
        text = f"{change.what}: the file is as {change.state} the change"
        yield _unfinished_hit(host, change, text)
    for step in journal.unproven:
        if not step.running:
            yield _unfinished_hit(host, step, f"step {step.step} was never proven")


def _unfinished_hit(host: Host, entry: PendingChange | OpenStep, text: str) -> Detection:
    return Detection(
        f"a change of run {entry.run_id} was interrupted",
        (EvidenceRef("file", host.host, path=entry.path or JOURNAL, text=text),),
        "let the next repairing run finish or undo it",
        host.host,
        host.node,
    )


def _down(host: Host, journal: Journal) -> Iterator[Detection]:
    """Yield a hit for each component that a failed step left down."""
    for step in journal.down:
        path = step.path or JOURNAL
        yield Detection(
            f"step {step.step} of run {step.run_id} failed, and {step.component} does not run",
            (EvidenceRef("file", host.host, path=path, text=str(step.reason)),),
            f"bring {step.component} back (journalctl -u kubelet, crictl ps -a), or take the run"
            f" back with kubemend.remediation.revert -e kubemend_run_id={step.run_id}",
            host.host,
            host.node,
        )


def _together(hits: list[Detection]) -> tuple[Detection, ...]:
    """Join everything that is unfinished to one hit: one repair ends it."""
    if len(hits) < 2:
        return tuple(hits)
    first, more = hits[0], len(hits) - 1
    verb = "are"
    if more == 1:
        verb = "is"
    proofs = tuple(dict.fromkeys(proof for hit in hits for proof in hit.evidence))
    summary = f"{first.summary}, and {more} more {verb} left open"
    return (replace(first, summary=summary, evidence=proofs),)


def cordon_left(cluster: Cluster) -> Iterator[CheckResult]:
    """KM903: report a node that is cordoned by a kubemend run that does not work any more.

    What the hosts report is evaluated by left_behind.
    """
    # A run that works locks most control plane nodes: the one that asked the API speaks for those
    # that this run does not ask.
    unasked: tuple[Missing, ...] = ()
    if not cluster.answered(Work):
        unasked = tuple(
            Missing(host.host, "host", host.status)
            for host in cluster.hosts
            if host.status == "not_asked"
        )
    for node in cluster.typed(Nodes).items:
        if node.cordon is not None and not node.cordon.held:
            yield _cordoned(cluster, node, node.cordon, unasked)


def _cordoned(
    cluster: Cluster,
    node: Node,
    cordon: Cordon,
    unasked: tuple[Missing, ...],
) -> CheckResult:
    name, run = str(node.name), one_line(cordon.run, 40)
    if unasked:  # its run may be at work from there
        return CheckResult((), unasked)
    if cordon.run in cluster.working:
        note = (
            f"{name} is cordoned by run {run}, which works or holds the lock"
            " (kubemend_take_lock takes it, if you know that it is gone)"
        )
        return unknown(cluster.missing_answer("journal", "busy"), note=note)
    text = (
        f"annotation kubemend.io/cordon: run {run}, "
        f"{one_line(cordon.reason, 120)}, at {one_line(cordon.at, 40)}"
    )
    remedy = (
        "bring the node back first: it is not ready; then the next repairing run takes the cordon"
        " away"
    )
    if node.ready == "True":
        remedy = "let the next repairing run take the cordon away"
    return present(
        Detection(
            f"{name} is still cordoned by run {run}",
            (EvidenceRef("api", cluster.api_host or "", object=f"Node {name}", text=text),),
            remedy,
            host=next((host.host for host in cluster.hosts if host.node == name), None),
            node=name,
        )
    )


def left_behind(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM903: report a log verbosity that a capture raised, and whose time is over."""
    unread = _journal_unread(host)
    if unread is not None:
        yield unread
        return
    levels = contract.answer(document, Journal).levels
    # evidence of before levels were journalled
    if levels is None and host.statuses["journal"] == "ok":
        yield unknown(Missing(host.host, "journal", "not_asked"), host=host.host)
        return
    hits = tuple(_raised(host, level) for level in levels or () if level.overdue)
    yield CheckResult(hits, (), host.statuses.get("journal") == "ok", host=host.host)


def _raised(host: Host, level: RaisedLevel) -> Detection:
    path = f"{JOURNAL}/{level.run_id}/{level.entry}.json"
    revert = f"put it back: kubemend.remediation.revert -e kubemend_run_id={level.run_id}"
    return Detection(
        f"the {level.path} is still {level.level} instead of {level.former} since run"
        f" {level.run_id}",
        (EvidenceRef("file", host.host, path=path, text=f"raised at {level.at}"),),
        level.by_hand or revert,
        host.host,
        host.node,
    )
