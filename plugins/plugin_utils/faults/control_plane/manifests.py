# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Predicates about the static pod folder of one host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...evidence.document import NEVER_BEGAN, one_line
from ...models import control_plane
from ...models.cluster import Cluster, Host
from ...models.control_plane import FileUse, Process
from ...models.result import Missing, Proof
from ...parsers import pflag as flags
from ..base import Hit, Outcome, node_check

# The kubelet looks every 20 s and then needs a graceful stop and a start: a younger change is no
# fault yet.
SETTLE_SECONDS = 60


def _applies(host: Host) -> bool:
    return host.statuses.get("manifests") != "absent" or host.status != "ok"


def _unread(host: Host) -> tuple[Missing, ...]:
    if host.status != "ok":
        return host.missing("manifests")
    unread = host.control_plane.unread if host.control_plane else ()
    return host.missing("manifests") + (
        (Missing(host.host, "manifests", "denied"),) if unread else ()
    )


@node_check(
    "KM107",
    "Manifest does not parse",
    severity="critical",
    applies="every file in the static pod folder whose name begins with no dot",
    risk=2,
    needs=("kubelet", "manifests"),
)
def broken(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM107: the kubelet drops a manifest that it cannot read and stops the component that ran
    from it.
    """
    hits = []
    for item in host.control_plane.broken if host.control_plane else ():
        what = (
            f"{item.component} is or will be stopped"
            if item.component
            else "the kubelet ignores it"
        )
        hits.append(
            Hit(
                f"manifest does not parse ({item.problem}): {what}",
                (
                    Proof(
                        "file",
                        host.host,
                        path=item.path,
                        line=item.line,
                        text=item.text or item.problem,
                    ),
                ),
                f"mend {item.path}{f':{item.line}' if item.line else ''}, or move the file out of"
                " the folder",
                host.host,
                host.node,
                item.component,
                severity=None if item.component else "warning",
            )
        )
    yield Outcome(tuple(hits), _unread(host), _applies(host), host=host.host)


@node_check(
    "KM108",
    "Manifest newer than its process",
    severity="critical",
    applies="components that run as static pods",
    risk=2,
    needs=("system", "kubelet", "manifests", "instances"),
)
def outdated(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM108: the manifest asks for another command line than the one that runs from it."""
    plane = host.control_plane
    if plane is None or host.status != "ok":
        yield Outcome((), _unread(host) + host.missing("instances"), _applies(host), host=host.host)
        return
    hits, missing = [], list(_unread(host) + host.missing("instances"))
    for process in plane.processes:
        uses = [use for use in plane.files if use.component == process.component and process.static]
        if not uses or any(_agrees(use, process) for use in uses):
            continue
        use = next((item for item in uses if item.usual), uses[0])
        fresh = plane.clock - use.mtime < SETTLE_SECONDS
        if fresh and not plane.kubelet_problem:
            missing.append(Missing(host.host, "instances", "timeout"))
        else:
            hits.append(_outdated(host, use, process, plane.kubelet_problem))
    note = (
        "changed less than a minute ago: the kubelet may still be at it"
        if missing and not hits
        else ""
    )
    yield Outcome(
        tuple(hits), tuple(dict.fromkeys(missing)), _applies(host), host=host.host, note=note
    )


def _agrees(use: FileUse, process: Process) -> bool:
    """Whether the process runs what the manifest asks for.

    Of a shell's line only the flag of election is compared.
    """
    if use.words and use.words[0].rsplit("/", 1)[-1] in ("sh", "bash", "dash", "ash"):
        running = flags.bool_flag(process.argv, "leader-elect")
        return (use.flag is None) == (running is None) and (
            use.flag is None or use.flag.value == running.value
        )
    wanted = [word for word in use.words if word.startswith("--")]
    return wanted == [word for word in process.argv if word.startswith("--")] or not wanted


def _outdated(host: Host, use: FileUse, process: Process, reason: str) -> Hit:
    running = [word for word in process.argv if word.startswith("--")]
    wanted = [word for word in use.words if word.startswith("--")]
    only_file = [word for word in wanted if word not in running] or wanted[:1]
    only_process = [word for word in running if word not in wanted]
    because = reason or "the kubelet runs; it did not take the change"
    proofs = [
        Proof("file", host.host, path=use.path, text=" ".join(only_file)),
        Proof(
            "process",
            host.host,
            pid=process.pid,
            argv=process.argv,
            text=f"runs with {' '.join(only_process) or 'none of these'}",
        ),
    ]
    if reason:
        proofs.append(Proof("unit", host.host, object="kubelet", text=reason))
    return Hit(
        f"the process is older than its manifest and does not follow it: {because}",
        tuple(proofs),
        (
            "mend the kubelet first; it loads the manifest when it is back"
            if reason
            else (
                "find out why the kubelet did not take the manifest (its log), then let it restart"
                " the component"
            )
        ),
        host.host,
        host.node,
        process.component,
    )


@node_check(
    "KM109",
    "Second manifest or a backup of one in the static pod folder",
    severity="critical",
    applies="the static pod folder",
    risk=2,
    needs=("kubelet", "manifests"),
)
def second_manifest(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM109: two files of one pod, or of one component.

    The kubelet loads every file whose name begins with no dot.
    """
    plane = host.control_plane
    groups: dict[str, list[FileUse]] = {}
    for use in plane.files if plane else ():
        groups.setdefault(use.component, []).append(use)
    hits = []
    for component, uses in sorted(groups.items()):
        paths = sorted({use.path for use in uses})
        if len(paths) < 2:
            continue
        usual = [use.path for use in uses if use.usual]
        stray = [path for path in paths if path not in usual] or paths[1:]
        same = len({use.pod for use in uses}) == 1
        effect = (
            "one pod from two files: either may win" if same else "the component is started twice"
        )
        hits.append(
            Hit(
                f"{len(paths)} manifests of {component} in the static pod folder: {effect}",
                tuple(
                    Proof("file", host.host, path=path, text=_difference(uses, path))
                    for path in paths
                ),
                f"move {', '.join(stray)} out of the folder, once you know that the other file is"
                " the right one",
                host.host,
                host.node,
                component,
            )
        )
    yield Outcome((*hits, *_pods_twice(host)), _unread(host), _applies(host), host=host.host)


def _pods_twice(host: Host) -> Iterator[Hit]:
    """Other static pods of two files.

    A load balancer before the API servers, or what holds their address.
    """
    others: dict[str, list[str]] = {}
    for path, pod in host.control_plane.others if host.control_plane else ():
        others.setdefault(pod, []).append(path)
    for pod, paths in sorted(others.items()):
        if len(paths) > 1:
            yield Hit(
                f"{len(paths)} manifests of the pod {one_line(pod, 120)} in the static pod folder:"
                " either may win",
                tuple(Proof("file", host.host, path=path) for path in sorted(paths)),
                f"compare {' and '.join(sorted(paths))}, and move the wrong one out of the folder",
                host.host,
                host.node,
                severity="warning",
                risk=0,
            )


def _difference(uses: list[FileUse], path: str) -> str:
    mine = next(set(use.words) for use in uses if use.path == path)
    others = set().union(*(set(use.words) for use in uses if use.path != path))
    return (
        "only here: " + " ".join(sorted(mine - others))
        if mine - others
        else "no argument that is only here"
    )


@node_check(
    "KM901",
    "Host did not answer",
    severity="warning",
    applies="every host that the run asked",
)
def unanswered(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM901: the host gave no evidence."""
    if host.status in ("ok", "not_asked"):
        yield Outcome((), () if host.status == "ok" else host.missing("system"), host=host.host)
        return
    how = "did not answer" if host.status == "unreachable" else "gave no evidence"
    reason = host.reason or host.status
    what = (
        "put right what the inventory says of it"
        if reason.startswith(NEVER_BEGAN)
        else "bring the host or its ssh back, or name what stands in its way"
    )
    yield Outcome(
        (
            Hit(
                f"the host {how}: {reason}",
                (Proof("log", host.host, text=reason),),
                f"{what}; what it runs is unknown until then",
                host.host,
                host.node,
            ),
        ),
        host=host.host,
    )


@node_check(
    "KM902",
    "Interrupted change",
    severity="critical",
    applies="hosts that a repairing run has changed",
    risk=2,
    needs=("journal",),
)
def interrupted(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM902: the node's journal holds a change without its end, or a step without its proof, and
    nobody is at work.
    """
    if host.status != "ok" or host.statuses.get("journal") not in ("ok", "absent"):
        # Evidence of before the journal was collected says nothing about it.
        asked = host.status != "ok" or "journal" in host.statuses
        yield Outcome((), host.missing("journal") if asked else (), asked, host=host.host)
        return
    found = control_plane.data(document, "journal")
    busy = bool(found.get("busy"))
    working = [one for one in found.get("unproven") or () if one.get("running")]
    left = [
        (one, f"{one.get('what')}: the file is as {one.get('state')} the change")
        for one in found.get("pending") or ()
    ]
    left += [
        (one, f"step {one.get('step')} was never proven")
        for one in found.get("unproven") or ()
        if not one.get("running")
    ]
    hits = []
    for one, said in () if busy else left:
        hits.append(
            Hit(
                f"a change of run {one.get('run_id')} was interrupted",
                (
                    Proof(
                        "file",
                        host.host,
                        path=str(one.get("path") or "/var/lib/kubemend/journal"),
                        text=said,
                    ),
                ),
                "let the next repairing run finish or undo it",
                host.host,
                host.node,
            )
        )
    for one in () if busy else found.get("down") or ():
        hits.append(
            Hit(
                f"step {one.get('step')} of run {one.get('run_id')} failed, and"
                f" {one.get('component')} does not run",
                (
                    Proof(
                        "file",
                        host.host,
                        path=str(one.get("path") or "/var/lib/kubemend/journal"),
                        text=str(one.get("reason")),
                    ),
                ),
                f"bring {one.get('component')} back (journalctl -u kubelet, crictl ps -a), or take"
                " the run back with kubemend.remediation.revert -e"
                f" kubemend_run_id={one.get('run_id')}",
                host.host,
                host.node,
            )
        )
    # What is under way may still end badly: nobody knows yet.
    under_way = (Missing(host.host, "journal", "busy"),) if busy or working else ()
    note = (
        f"step {working[0].get('step')} of run {working[0].get('run_id')} is at work on {host.host}"
        if working
        else ""
    )
    yield Outcome(
        _together(hits), under_way, host.statuses.get("journal") == "ok", host=host.host, note=note
    )


def _together(hits: list[Hit]) -> tuple[Hit, ...]:
    """One finding of all that was left open: one repair ends it."""
    if len(hits) < 2:
        return tuple(hits)
    first, more = hits[0], len(hits) - 1
    proofs = tuple(dict.fromkeys(proof for hit in hits for proof in hit.evidence))
    return (
        replace(
            first,
            summary=f"{first.summary}, and {more} more {'is' if more == 1 else 'are'} left open",
            evidence=proofs,
        ),
    )


def cordon_left(cluster: Cluster) -> Iterator[Outcome]:
    """KM903: a node is cordoned by a run of ours that is no longer at work. Nothing without one.

    What hosts say of it is left_behind's.
    """
    # A run that works holds most masters: the one that asked the API speaks for those that this run
    # does not ask.
    unasked = tuple(
        Missing(host.host, "host", host.status)
        for host in cluster.hosts
        if host.status == "not_asked" and cluster.answer("work") is None
    )
    for node in (cluster.answer("nodes") or {}).get("items") or ():
        cordon = node.get("cordon") or {}
        if not cordon or cordon.get("held"):
            continue
        name, run = str(node.get("name")), one_line(cordon.get("run"), 40)
        proof = Proof(
            "api",
            cluster.api_host or "",
            object=f"Node {name}",
            text=(
                f"annotation kubemend.io/cordon: run {run}, "
                f"{one_line(cordon.get('reason'), 120)}, at {one_line(cordon.get('at'), 40)}"
            ),
        )
        ready = node.get("ready") == "True"
        if unasked:  # its run may be at work from there
            yield Outcome((), unasked)
            continue
        if cordon.get("run") in cluster.working:
            yield Outcome(
                (),
                (Missing(cluster.api_host or "cluster API", "journal", "busy"),),
                note=(
                    f"{name} is cordoned by run {run}, which works or holds the lock"
                    " (kubemend_take_lock takes it, if you know that it is gone)"
                ),
            )
            continue
        yield Outcome(
            (
                Hit(
                    f"{name} is still cordoned by run {run}",
                    (proof,),
                    (
                        "let the next repairing run take the cordon away"
                        if ready
                        else (
                            "bring the node back first: it is not ready; then the next repairing"
                            " run takes the cordon away"
                        )
                    ),
                    host=next((host.host for host in cluster.hosts if host.node == name), None),
                    node=name,
                ),
            )
        )


def left_behind(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM903: a log level that a capture raised from this host is still raised although its time
    is over.
    """
    if host.status != "ok" or host.statuses.get("journal") not in ("ok", "absent"):
        asked = host.status != "ok" or "journal" in host.statuses
        yield Outcome((), host.missing("journal") if asked else (), asked, host=host.host)
        return
    known = control_plane.data(document, "journal").get("levels")
    # evidence of before levels were journalled
    if known is None and host.statuses["journal"] == "ok":
        yield Outcome((), (Missing(host.host, "journal", "not_asked"),), host=host.host)
        return
    found = [one for one in known or () if one.get("overdue")]
    hits = tuple(
        Hit(
            f"the {one.get('path')} is still {one.get('level')} instead of {one.get('former')}"
            f" since run {one.get('run_id')}",
            (
                Proof(
                    "file",
                    host.host,
                    path=f"/var/lib/kubemend/journal/{one.get('run_id')}/{one.get('entry')}.json",
                    text=f"raised at {one.get('at')}",
                ),
            ),
            str(
                one.get("by_hand")
                or f"put it back: kubemend.remediation.revert -e kubemend_run_id={one.get('run_id')}"
            ),
            host.host,
            host.node,
        )
        for one in found
    )
    yield Outcome(hits, (), host.statuses.get("journal") == "ok", host=host.host)
