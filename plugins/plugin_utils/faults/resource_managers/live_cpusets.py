# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Predicates about the CPUs that containers really have, and about what cannot be frozen to
change them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...models import control_plane
from ...models import cpu_manager as pinning
from ...models.cluster import Host
from ...models.cpu_manager import Node
from ...models.result import Missing, Proof
from ...parsers import cpuset
from ...parsers.cpu_manager_state import CpuState
from ..base import Hit, Outcome, node_check
from .state_files import path, per_node, pins

# A kubelet applies what it decided once in a reconcile period of 10 s: what was decided since may
# not have arrived.
SETTLE_SECONDS = 30
SHOWN = 10
FREEZE = "unable to freeze"
RETURNED = (1, 1, 8)  # the runc that returns the error
_RUNC = re.compile(r"\brunc version (\d{1,4})\.(\d{1,4})\.(\d{1,4})")


@node_check(
    "KM308",
    "Containers run on other CPUs than the state says",
    severity="warning",
    applies="nodes with the static policy",
    needs=("system", "kubelet", "pinning"),
)
def drifted(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM308: a container runs on other CPUs than the kubelet's state gives it."""
    yield from (
        _settled(host, document, outcome) for outcome in per_node(_drifted, pins)(host, document)
    )


def _settled(host: Host, document: Mapping[str, Any], outcome: Outcome) -> Outcome:
    """What was decided a moment ago is on its way: nobody can call it drift yet."""
    node = pinning.read(document) if outcome.hits else None
    written, clock = (
        (node.file or {}).get("mtime") if node else None,
        control_plane.data(document, "system").get("clock"),
    )
    if (
        isinstance(written, (int, float))
        and isinstance(clock, (int, float))
        and clock - written < SETTLE_SECONDS
        and node
        and node.running
    ):
        return Outcome(
            (),
            (Missing(host.host, "pinning", "timeout"),),
            host=host.host,
            note=(
                f"{path(node)} was written {clock - written:.0f} s before: the kubelet may still be"
                " at it; audit again"
            ),
        )
    return outcome


def _drifted(host: Host, node: Node) -> Iterator[Hit]:
    wrong = [
        (one, wanted)
        for one in node.containers()
        for wanted in [_wanted(node, one)]
        if wanted is not None and _has(one) not in (None, wanted)
    ]
    if not wrong:
        return
    alone = [
        one for one, dummy in wrong if node.state and _key(node.state, one) in node.state.entries
    ]
    what = (
        f"{len(wrong)} container{'s' if len(wrong) > 1 else ''} of {host.node or host.host}"
        f" {'run' if len(wrong) > 1 else 'runs'} on other CPUs than the kubelet's state says"
        + (f", {len(alone)} of them pinned ones" if alone and len(wrong) > 1 else "")
    )
    proofs = [
        Proof(
            "process",
            host.host,
            pid=one.get("pid") if isinstance(one.get("pid"), int) else None,
            text=(
                f"container {one.get('name')} of pod {one.get('pod_uid')} has {one.get('cpus')};"
                f" the state gives it {cpuset.text(wanted)}"
            ),
        )
        for one, wanted in wrong[:SHOWN]
    ]
    yield Hit(
        what,
        tuple([*proofs, Proof("file", host.host, path=path(node))]),
        _heals(node),
        host=host.host,
        node=host.node,
    )


def _heals(node: Node) -> str:
    """Whether this kubelet writes the sets again by itself."""
    if not node.running:
        return "start the kubelet: it writes the sets of all containers when it starts"
    release = node.release
    if release is not None and release <= (1, 20):
        return (
            "a kubelet of this release writes every set again each cpuManagerReconcilePeriod (10"
            " s): where it stays so, the write fails; read its log for failed to update container"
        )
    if release is not None and release < (1, 23):
        return (
            "whether a kubelet of this release writes the sets again by itself is not known here:"
            " audit again; where it stays so, restart the kubelet, which writes all sets once"
        )
    return (
        "a kubelet since 1.23 writes a set only when its own decision changed: it does not heal"
        " this by itself; find who writes to the cgroups (another tool, an update of the runtime),"
        " then make the pods anew, or restart the kubelet, which writes all sets once"
    )


def _key(state: CpuState, one: Mapping[str, Any]) -> tuple[str, str]:
    return (
        ("", str(one.get("container_id")))
        if state.generation == 1
        else (str(one.get("pod_uid")), str(one.get("name")))
    )


def _wanted(node: Node, one: Mapping[str, Any]) -> cpuset.CPUs | None:
    """Its set by the state; None where nobody knows which container it is, or where its set is
    another's business.
    """
    state = node.state
    if state is None or one.get("name") is None:
        return None
    own, pod = state.entries.get(_key(state, one)), one.get("pod_uid")
    if own is not None:
        return own
    # Init containers share the CPUs of those that follow, and the kubelet leaves the pause
    # container alone; of what is in
    # no entry, only a pod without any is surely on the shared set.
    keys = (_key(state, other) for other in node.containers() if other.get("pod_uid") == pod)
    if any(holder == pod for holder, dummy in state.entries) or any(
        key in state.entries for key in keys
    ):
        return None
    return state.default


def _has(one: Mapping[str, Any]) -> cpuset.CPUs | None:
    try:
        return cpuset.parse(one["cpus"])
    except (cpuset.CpusetError, KeyError, TypeError, AttributeError):
        return None


@node_check(
    "KM311",
    "The runtime cannot freeze a container's cgroup",
    severity="warning",
    applies="nodes with a kubelet",
    needs=("system", "kubelet", "pinning", "kubelet_log"),
    tier="deep",
)
def unfreezable(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM311: a cgroup that runc cannot freeze to change its CPUs, or that stays frozen."""
    missing = host.missing("kubelet_log") + host.missing("pinning")
    lines = [str(line) for line in control_plane.data(document, "kubelet_log").get("lines") or ()]
    said = [line for line in lines if FREEZE in line.lower()]
    seen = control_plane.data(document, "pinning")
    frozen = [one for one in seen.get("frozen") or () if isinstance(one, Mapping)]
    if not said and not frozen:
        yield Outcome((), missing, host=host.host)
        return
    proofs = [Proof("log", host.host, text=line) for line in said[-3:]] + [
        _frozen(host, one) for one in frozen[:SHOWN]
    ]
    stuck = [one for one in seen.get("stuck") or () if isinstance(one, Mapping)] if said else []
    named = [one for one in stuck if any(str(one.get("container_id")) in line for line in said)]
    proofs += [_stuck(host, one) for one in (named or stuck)[:SHOWN]]
    proofs += (
        [Proof("process", host.host, text=_returned(str(seen["runc"])))] if seen.get("runc") else []
    )
    name, cures = (
        host.node or host.host,
        "the state file is not at fault, and a reset of it cures nothing",
    )
    if said:
        hit = Hit(
            f"runc could not freeze a container's cgroup on {name}, so that its CPUs could not be"
            f" changed: {cures}",
            tuple(proofs),
            "find the task that does not freeze (state D, or one that forks without end) in the"
            " cgroup that the line names, and make that pod anew; it is the freezer of cgroup v1:"
            " cgroup v2 is free of it",
            host=host.host,
            node=host.node,
        )
    else:
        hit = Hit(
            f"{len(frozen)} container{'s' if len(frozen) > 1 else ''} of {name}"
            f" {'are' if len(frozen) > 1 else 'is'} frozen: {cures}",
            tuple(proofs),
            "where nobody paused it on purpose (an old runc leaves cgroups frozen): write THAWED to"
            " its freezer.state, on cgroup v2 0 to cgroup.freeze",
            host=host.host,
            node=host.node,
        )
    yield Outcome((hit,), host=host.host)


def _returned(said: str) -> str:
    """What this runc makes of a cgroup that does not freeze."""
    match = _RUNC.search(said)
    if match is None:
        return f"{said} (since 1.1.8 it returns the error, before it only logged it)"
    if tuple(map(int, match.groups())) >= RETURNED:
        return f"{said}: it returns the error (since 1.1.8), and the kubelet tries again every 10 s"
    return f"{said}: it only logs that (since 1.1.8 it returns the error)"


def _stuck(host: Host, one: Mapping[str, Any]) -> Proof:
    tasks = _tasks(one)
    return Proof(
        "process",
        host.host,
        pid=next(
            (task[0] for task in one.get("tasks") or () if isinstance(task, list) and task), None
        ),
        text=(
            f"in state D now, which no freezer stops: {tasks}; container"
            f" {one.get('name') or one.get('container_id')} of pod"
            f" {one.get('pod') or one.get('pod_uid')}"
        ),
    )


def _tasks(one: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{task[1]} (pid {task[0]}, {task[2]})"
        for task in one.get("tasks") or ()
        if isinstance(task, list) and len(task) == 3
    )


def _frozen(host: Host, one: Mapping[str, Any]) -> Proof:
    tasks = _tasks(one)
    return Proof(
        "file",
        host.host,
        path=str(one.get("path")),
        text=(
            f"{one.get('state')}: container {one.get('container_id')} of pod {one.get('pod_uid')}"
            f"{f'; {tasks}' if tasks else ''}"
        ),
    )
