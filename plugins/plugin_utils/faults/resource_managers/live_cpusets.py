# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the CPUs that containers really have, and of cgroups that cannot be frozen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...evidence import contract
from ...evidence.answers.node.kubelet_log import KubeletLog
from ...evidence.answers.node.pinning import Container, FrozenCgroup, Pinning, StuckContainer, Task
from ...evidence.answers.node.system import System
from ...models import cpu_manager
from ...models.cluster import Host
from ...models.cpu_manager import Node
from ...models.result import EvidenceRef, Missing
from ...parsers import cpuset
from ...parsers.cpu_manager_state import CpuState
from ..base import CheckResult, Detection, node_check
from .state_files import path, per_node, pins

# A kubelet applies what it decided once in a reconcile period of 10 s: what was decided since may
# not have arrived.
SETTLE_SECONDS = 30
SHOWN = 10
NO_RESET = "the state file is not at fault, and a reset of it cures nothing"
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
def drifted(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM308: a container runs on other CPUs than the kubelet's state gives it."""
    yield from (
        _settled(host, document, outcome) for outcome in per_node(_drifted, pins)(host, document)
    )


def _settled(host: Host, document: Mapping[str, Any], outcome: CheckResult) -> CheckResult:
    """Return unknown in place of present where the kubelet may still be applying its decision."""
    if not outcome.hits:
        return outcome
    node = cpu_manager.read(document)
    if node is None or not node.running:
        return outcome
    age = _state_age(node, contract.answer(document, System).clock)
    if age is None or age >= SETTLE_SECONDS:
        return outcome
    return CheckResult(
        (),
        (Missing(host.host, "pinning", "starting"),),
        host=host.host,
        note=(f"{path(node)} was written {age:.0f} s before: the kubelet may still apply it"),
    )


def _state_age(node: Node, clock: float | None) -> float | None:
    """Return the seconds since the state file was written, or None."""
    if clock is None or node.file is None or node.file.mtime is None:
        return None
    return clock - node.file.mtime


def _drifted(host: Host, node: Node) -> Iterator[Detection]:
    drifts = list(_drifts(node))
    if not drifts:
        return
    proofs = [_drift_proof(host, container, cpus) for container, cpus in drifts[:SHOWN]]
    yield Detection(
        _drift_summary(node, [container for container, dummy in drifts]),
        (*proofs, EvidenceRef("file", host.host, path=path(node))),
        _heals(node),
        host=host.host,
        node=host.node,
    )


def _drifts(node: Node) -> Iterator[tuple[Container, cpuset.CPUs]]:
    """Yield the containers that run on other CPUs, each with those of the state."""
    for container in node.containers():
        cpus = _wanted(node, container)
        if cpus is not None and _has(container) not in (None, cpus):
            yield container, cpus


def _drift_summary(node: Node, containers: list[Container]) -> str:
    if len(containers) == 1:
        return "1 container runs on other CPUs than the kubelet's state says"
    summary = f"{len(containers)} containers run on other CPUs than the kubelet's state says"
    pinned = sum(_is_pinned(node, container) for container in containers)
    if pinned:
        summary += f", {pinned} of them pinned ones"
    return summary


def _is_pinned(node: Node, container: Container) -> bool:
    return node.state is not None and _key(node.state, container) in node.state.entries


def _drift_proof(host: Host, container: Container, cpus: cpuset.CPUs) -> EvidenceRef:
    return EvidenceRef(
        "process",
        host.host,
        pid=container.pid,
        text=(
            f"container {container.name} of pod {container.pod_uid} has"
            f" {container.cpus}; the state gives it {cpuset.text(cpus)}"
        ),
    )


def _heals(node: Node) -> str:
    """Return whether this kubelet writes the sets again by itself, as advice."""
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
        " then recreate the pods, or restart the kubelet, which writes all sets once"
    )


def _key(state: CpuState, container: Container) -> tuple[str, str]:
    if state.generation == 1:
        return "", str(container.container_id)
    return str(container.pod_uid), str(container.name)


def _wanted(node: Node, container: Container) -> cpuset.CPUs | None:
    """Return the container's set by the state.

    The result is None where the container is not known, or its set does not follow from the state.
    """
    state = node.state
    if state is None or container.name is None:
        return None
    own_cpus, pod = state.entries.get(_key(state, container)), container.pod_uid
    if own_cpus is not None:
        return own_cpus
    # Init containers share the CPUs of those that follow, and the kubelet leaves the pause
    # container alone; of what is in no entry, only a pod without any is surely on the shared set.
    if any(holder == pod for holder, dummy in state.entries):
        return None
    siblings = [other for other in node.containers() if other.pod_uid == pod]
    if any(_key(state, sibling) in state.entries for sibling in siblings):
        return None
    return state.default


def _has(container: Container) -> cpuset.CPUs | None:
    if container.cpus is None:
        return None
    try:
        return cpuset.parse(container.cpus)
    except cpuset.CpusetError:
        return None


@node_check(
    "KM311",
    "The runtime cannot freeze a container's cgroup",
    severity="warning",
    applies="nodes with a kubelet",
    needs=("system", "kubelet", "pinning", "kubelet_log"),
    tier="deep",
)
def unfreezable(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM311: a cgroup that runc cannot freeze to change its CPUs, or that stays frozen."""
    log = contract.answer(document, KubeletLog).lines
    errors = [line for line in log if FREEZE in line.lower()]
    pinning = contract.answer(document, Pinning)
    if errors:
        hit = _freeze_failure(host, _freeze_proofs(host, errors, pinning))
    elif pinning.frozen:
        hit = _left_frozen(host, len(pinning.frozen), _freeze_proofs(host, errors, pinning))
    else:
        missing = host.missing("kubelet_log") + host.missing("pinning")
        yield CheckResult((), missing, host=host.host)
        return
    yield CheckResult((hit,), host=host.host)


def _freeze_proofs(host: Host, errors: list[str], pinning: Pinning) -> tuple[EvidenceRef, ...]:
    proofs = [EvidenceRef("log", host.host, text=line) for line in errors[-3:]]
    proofs += [_frozen(host, cgroup) for cgroup in (pinning.frozen or ())[:SHOWN]]
    if errors:
        stuck = pinning.stuck or ()
        named = tuple(container for container in stuck if _is_named(container, errors))
        proofs += [_stuck(host, container) for container in (named or stuck)[:SHOWN]]
    if pinning.runc:
        proofs.append(EvidenceRef("process", host.host, text=_returned(pinning.runc)))
    return tuple(proofs)


def _is_named(container: StuckContainer, lines: list[str]) -> bool:
    return any(str(container.container_id) in line for line in lines)


def _freeze_failure(host: Host, proofs: tuple[EvidenceRef, ...]) -> Detection:
    return Detection(
        f"runc could not freeze a container's cgroup, so that its CPUs"
        f" could not be changed: {NO_RESET}",
        proofs,
        "find the task that does not freeze (state D, or one that forks without end) in the"
        " cgroup that the line names, and recreate that pod; it is the freezer of cgroup v1:"
        " cgroup v2 is free of it",
        host=host.host,
        node=host.node,
    )


def _left_frozen(host: Host, count: int, proofs: tuple[EvidenceRef, ...]) -> Detection:
    summary = f"1 container is frozen: {NO_RESET}"
    if count > 1:
        summary = f"{count} containers are frozen: {NO_RESET}"
    return Detection(
        summary,
        proofs,
        "where it was not paused on purpose (an old runc leaves cgroups frozen): write THAWED to"
        " its freezer.state, on cgroup v2 0 to cgroup.freeze",
        host=host.host,
        node=host.node,
    )


def _returned(version: str) -> str:
    """Return the version line of runc with what it does about a cgroup that does not freeze."""
    match = _RUNC.search(version)
    if match is None:
        return f"{version} (since 1.1.8 it returns the error, before it only logged it)"
    if tuple(map(int, match.groups())) >= RETURNED:
        return (
            f"{version}: it returns the error (since 1.1.8), and the kubelet tries again every 10 s"
        )
    return f"{version}: it only logs that (since 1.1.8 it returns the error)"


def _stuck(host: Host, container: StuckContainer) -> EvidenceRef:
    return EvidenceRef(
        "process",
        host.host,
        pid=next((pid for pid, _name, _state in container.tasks), None),
        text=(
            f"in state D now, which no freezer stops: {_tasks(container.tasks)}; container"
            f" {container.name or container.container_id} of pod"
            f" {container.pod or container.pod_uid}"
        ),
    )


def _tasks(tasks: Iterable[Task]) -> str:
    return ", ".join(f"{name} (pid {pid}, {state})" for pid, name, state in tasks)


def _frozen(host: Host, cgroup: FrozenCgroup) -> EvidenceRef:
    text = f"{cgroup.state}: container {cgroup.container_id} of pod {cgroup.pod_uid}"
    tasks = _tasks(cgroup.tasks)
    if tasks:
        text += f"; {tasks}"
    return EvidenceRef("file", host.host, path=cgroup.path, text=text)
