# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Predicates about the state files of the CPU and the memory manager of one node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...models import control_plane
from ...models import cpu_manager as pinning
from ...models.cluster import Host
from ...models.cpu_manager import Node
from ...models.kubelet import (
    dropin as kubelet_dropin,
)
from ...models.kubelet import (
    manager_policies as manager_values,
)
from ...models.kubelet import (
    refused_configuration as kubelet_refused,
)
from ...models.kubelet import (
    reserved_resources as manager_reserved,
)
from ...models.result import Missing, Proof
from ...parsers import cpu_manager_state as manager_state
from ...parsers import cpuset
from ...parsers.cpu_manager_state import STATIC, CpuState
from ..base import Hit, Outcome, node_check

RESET = (
    "drain {node}, stop its kubelet, move {files} out of its folder (do not delete it), start the"
    " kubelet, wait until the node is Ready, uncordon it"
)
UNDRAINED = (
    "no kubelet starts over it, so that {node} cannot be drained: its pods get other CPUs while"
    " they run when {files} is moved out of its folder (do not delete it) and the kubelet started;"
    " the plan names them, and does it with kubemend_allow: [reset_without_drain]"
)
STARTS_NOT = "its kubelet does not start"
WILL_NOT = "its kubelet runs, and will not start again"
PerNode = Callable[[Host, Node], Iterator[Hit]]


class Unjudged(Exception):
    """A predicate lacks what it judges by: the verdict is unknown. collector.

    The one whose evidence is short of it.
    """

    def __init__(self, reason: str, collector: str = "pinning") -> None:
        super().__init__(reason)
        self.collector = collector


class RefusedError(Exception):
    """No kubelet starts with the setting that a predicate compares with.

    It does not apply until that is corrected.
    """


def per_node(
    look: PerNode, applies: Callable[[Node], bool] | None = None
) -> Callable[[Host, Mapping[str, Any]], Iterator[Outcome]]:
    """A predicate over one node. applies: whether its policy leaves room for this fault.

    Both may raise Unjudged.
    """

    def judge(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
        missing = host.missing("kubelet") + host.missing("pinning")
        if host.status == "ok" and host.statuses.get("kubelet") == "absent":
            yield Outcome(applies=False, host=host.host, note="no kubelet")
            return
        node = None if missing else pinning.read(document)
        if node is None:
            yield Outcome(
                missing=missing or (Missing(host.host, "kubelet", "absent"),), host=host.host
            )
            return
        try:
            fits = applies is None or applies(node)
            yield Outcome(tuple(look(host, node)) if fits else (), (), fits, host=host.host)
        except RefusedError as refused:
            yield Outcome(applies=False, host=host.host, note=str(refused))
        except Unjudged as error:
            yield Outcome(
                (), (Missing(host.host, error.collector, "error"),), host=host.host, note=str(error)
            )

    return judge


def state_check(
    code: str, title: str, *, policy: Callable[[Node], bool] | None = None, **metadata: Any
) -> Callable[[PerNode], PerNode]:
    """Register a node check of the managers' state; policy tells whether it leaves room for it."""

    def register(look: PerNode) -> PerNode:
        node_check(code, title, **metadata)(per_node(look, policy))
        return look

    return register


def path(node: Node) -> str:
    """Where the state lies."""
    return str(
        (node.file or {}).get("path")
        or f"{node.seen.get('root_dir') or '/var/lib/kubelet'}/cpu_manager_state"
    )


def consequence(node: Node) -> str:
    """What it means for the kubelet that is, or is not, there."""
    if node.running and node.lent:
        return (
            f"its kubelet runs by what a reset lent it ({' '.join(node.lent)}), until the next"
            " reset of its state or a reboot"
        )
    return WILL_NOT if node.running else STARTS_NOT


def told(node: Node) -> bool:
    """Whether the kubelet's policy is known at all: always, or Unjudged."""
    if node.policy is None:
        raise Unjudged(node.config.problem, "kubelet")
    return True


def told_policy(node: Node) -> bool:
    """Whether the kubelet's policy is known, and one that a kubelet takes.

    Only then its state is compared with it.
    """
    _taken(node, manager_values.CPU)
    return told(node)


def _taken(node: Node, *keys: str) -> None:
    """Raise RefusedError where a kubelet refuses one of these settings."""
    found = kubelet_refused.judged(node)
    if found.of(*keys):
        raise RefusedError(f"its kubelet refuses its configuration (KM506): {found.why}")


def told_static(node: Node) -> bool:
    """Whether it is told to pin."""
    return told(node) and node.policy == STATIC


def pins(node: Node) -> bool:
    """Whether configuration and state agree on the policy static.

    Only then the sets are looked at, and only where they are the kubelet's.
    """
    if not told_static(node):
        return False
    state = known_state(node)
    if state is None or state.problem or state.policy != STATIC or node.foreign():
        return False
    if state.more:
        raise Unjudged(_newer(node, state))
    return state.checksum != manager_state.WRONG


def known_state(node: Node) -> CpuState | None:
    """cpu_manager_state, None where there is none; Unjudged where it could not be read."""
    if node.trouble:
        raise Unjudged(f"{path(node)}: {node.trouble}")
    return node.state


def _newer(node: Node, state: CpuState) -> str:
    return f"{path(node)} is of a newer format ({', '.join(state.more[:5])}), which is not judged"


def _sure(node: Node) -> None:
    """Reservation and options are all read, or Unjudged."""
    if node.config.problem:
        raise Unjudged(node.config.problem, "kubelet")


def _hit(
    host: Host,
    node: Node,
    summary: str,
    proofs: Iterable[Proof],
    remedy: str = RESET,
    severity: str | None = None,
) -> Hit:
    files = " and ".join(
        [path(node)]
        + [
            str(one.get("path"))
            for one in [node.seen.get("memory_state")]
            if isinstance(one, Mapping)
        ]
    )
    said = (
        [Proof("log", host.host, text=node.last_words)]
        if node.last_words and STARTS_NOT in summary
        else []
    )
    remedy = _first(node) + remedy
    return Hit(
        summary,
        (*proofs, *said),
        remedy.format(node=host.node or host.host, files=files),
        host=host.host,
        node=host.node,
        severity=severity,
    )


def _first(node: Node) -> str:
    """What comes before a reset: it cures no kubelet that refuses its configuration."""
    found = kubelet_refused.judged(node)
    why = found.why.replace("{", "{{").replace("}", "}}")
    return f"first correct what its kubelet refuses (KM506: {why}); then " if found.refused else ""


def _over_it(node: Node) -> str:
    """The way out where no kubelet starts over the state."""
    return RESET if node.running else UNDRAINED


def _file(host: Host, node: Node, text: str) -> Proof:
    return Proof("file", host.host, path=path(node), text=text)


def _said(node: Node) -> str:
    state = node.state
    if state is None:
        return ""
    held = (
        f", {len(state.entries)} container{'s have' if len(state.entries) > 1 else ' has'}"
        f" {cpuset.text(state.assigned) or 'none'}"
        if state.entries
        else ""
    )
    return (
        f'policyName {state.policy}, defaultCpuSet "{cpuset.text(state.default)}"{held}, checksum'
        f" {state.checksum}"
    )


@state_check(
    "KM301",
    "CPU manager state is of another policy",
    severity="critical",
    applies="nodes with a kubelet",
    risk=3,
    needs=("system", "kubelet", "pinning"),
    policy=told_policy,
)
def differs(host: Host, node: Node) -> Iterator[Hit]:
    """KM301: a kubelet that starts finds the state of another policy."""
    state = known_state(node)
    if state is None or state.problem or node.policy == state.policy:
        return
    if state.more and not state.policy:
        raise Unjudged(_newer(node, state))
    told = (
        node.policy_setting.proof(host.host)
        if node.policy_setting
        else Proof("file", host.host, text="no cpuManagerPolicy is set: the default is none")
    )
    yield _hit(
        host,
        node,
        f"the kubelet of {host.node or host.host} is configured for the CPU manager policy"
        f" {node.policy}, its state is of {state.policy or 'none that it names'}:"
        f" {consequence(node)}",
        [told, _file(host, node, _said(node))],
    )


@state_check(
    "KM302",
    "CPU manager state is corrupt",
    severity="critical",
    applies="nodes with a kubelet",
    risk=3,
    needs=("system", "kubelet", "pinning"),
)
def corrupt(host: Host, node: Node) -> Iterator[Hit]:
    """KM302: it reads well, and is not what the checksum was made of."""
    state = known_state(node)
    if state and not state.problem and state.more:
        raise Unjudged(_newer(node, state))
    if state and not state.problem and state.checksum == manager_state.WRONG:
        yield _hit(
            host,
            node,
            f"cpu_manager_state of {host.node or host.host} does not have the checksum that it"
            f" names: {consequence(node)}",
            [_file(host, node, _said(node))],
            _over_it(node),
        )


@state_check(
    "KM303",
    "CPU manager state is empty or unreadable",
    severity="critical",
    applies="nodes with a kubelet",
    risk=3,
    needs=("system", "kubelet", "pinning"),
)
def unreadable(host: Host, node: Node) -> Iterator[Hit]:
    """KM303: empty, cut, of another shape, or of another version than the kubelet's."""
    state = known_state(node)
    problem = (state.problem or node.foreign()) if state else ""
    if problem:
        size = (node.file or {}).get("size")
        yield _hit(
            host,
            node,
            f"cpu_manager_state of {host.node or host.host} cannot be read by"
            f" {'a' if state and state.problem else 'its'} kubelet, {problem}: {consequence(node)}",
            [_file(host, node, f"{size} bytes; {problem}")],
            _over_it(node),
        )


@state_check(
    "KM304",
    "Reserved CPUs differ from the CPU manager's state",
    severity="critical",
    applies="nodes with the static policy",
    risk=3,
    needs=("system", "kubelet", "pinning"),
    policy=pins,
)
def reserved(host: Host, node: Node) -> Iterator[Hit]:
    """KM304: what is reserved now was given to a container, or (strict) is still in the shared
    set.
    """
    _sure(node)
    _taken(node, manager_reserved.LIST)
    kept, state, online = node.reservation(), node.state, node.online
    if state is None or kept.number == 0:
        return
    if kept.cpus is None:
        if not node.strict and online is not None and online <= state.default:
            return  # whichever they are
        raise Unjudged(kept.why, "kubelet")
    wrong = kept.cpus & state.default if node.strict else kept.cpus - state.default
    if not wrong or (online is not None and not kept.cpus <= online):
        return
    holders = [
        f"{container} of pod {pod} has {cpuset.text(cpus)}"
        for (pod, container), cpus in sorted(state.entries.items())
        if cpus & wrong
    ]
    how = "are still in the shared set" if node.strict else "are not in the shared set"
    yield _hit(
        host,
        node,
        f"the reserved CPUs {cpuset.text(wrong)} of {host.node or host.host} {how} of its state:"
        f" {consequence(node)}",
        [
            *(setting.proof(host.host) for setting in kept.settings),
            _file(host, node, _said(node) + "".join(f"; {one}" for one in holders[:5])),
        ],
    )


@state_check(
    "KM305",
    "The machine's CPUs differ from the CPU manager's state",
    severity="critical",
    applies="nodes with the static policy",
    risk=3,
    needs=("system", "kubelet", "pinning"),
    policy=pins,
)
def changed_machine(host: Host, node: Node) -> Iterator[Hit]:
    """KM305: CPUs came or went since the state was written."""
    _sure(node)
    _taken(node, manager_reserved.LIST)
    online, kept = node.online, node.reservation()
    if node.state is None:
        return
    if online is None:
        raise Unjudged("which CPUs are online could not be read")
    if node.strict and kept.cpus is None:
        raise Unjudged(kept.why, "kubelet")
    known = (
        node.state.default
        | node.state.assigned
        | (kept.cpus or frozenset() if node.strict else frozenset())
    )
    proofs = [
        Proof("file", host.host, path="/sys/devices/system/cpu/online", text=cpuset.text(online)),
        _file(host, node, _said(node)),
    ]
    if known != online:
        gone, new = cpuset.text(known - online), cpuset.text(online - known)
        what = " and ".join(
            part for part in (f"{gone} went" if gone else "", f"{new} came" if new else "") if part
        )
        yield _hit(
            host,
            node,
            f"the CPUs of {host.node or host.host} are not those of its state ({what}):"
            f" {consequence(node)}",
            proofs,
        )


@state_check(
    "KM306",
    "Sets of CPUs overlap in the CPU manager's state",
    severity="critical",
    applies="nodes with the static policy",
    risk=3,
    needs=("system", "kubelet", "pinning"),
    policy=pins,
)
def overlapping(host: Host, node: Node) -> Iterator[Hit]:
    """KM306: CPUs that one container has alone, and somebody else too.

    A kubelet gives the CPUs of an init container to those of its pod that start later, and keeps
    its entry: within one pod only what runs side by side counts.
    """
    running = {(one.get("pod_uid"), one.get("name")) for one in node.containers()}
    pairs = [
        (one, other)
        for one, other in (node.state.overlaps if node.state else ())
        if other is None or one[0] != other[0] or {one, other} <= running
    ]
    if node.state is None or not pairs:
        return
    entries, default = node.state.entries, node.state.default

    def common(one: tuple[str, str], other: tuple[str, str] | None) -> str:
        return cpuset.text(entries[one] & (default if other is None else entries[other]))

    texts = [
        f"{container} of pod {pod} and"
        f" {f'{other[1]} of pod {other[0]}' if other else 'the shared set'} both have"
        f" {common((pod, container), other)}"
        for (pod, container), other in pairs[:5]
    ]
    shared = any(other is None for dummy, other in pairs)
    yield _hit(
        host,
        node,
        f"sets of CPUs overlap in the state of {host.node or host.host}"
        + (f": {consequence(node)}" if shared else ""),
        [_file(host, node, text) for text in texts],
    )


@state_check(
    "KM307",
    "CPUs are kept for pods that are gone",
    severity="warning",
    applies="nodes with the static policy",
    risk=3,
    needs=("system", "kubelet", "pinning"),
    policy=pins,
)
def orphans(host: Host, node: Node) -> Iterator[Hit]:
    """KM307: CPUs kept for pods, or containers, that are gone from this node."""
    state = node.state
    if state is None or not state.entries:
        return
    by_pod = state.generation == 2
    there = _pods_there(node) if by_pod else _containers_there(node)
    gone = {
        key: cpus
        for key, cpus in state.entries.items()
        if there is not None and key[0 if by_pod else 1] not in there
    }
    if not gone:
        return
    lost, whose = (
        cpuset.text(frozenset().union(*gone.values())),
        {key[0 if by_pod else 1] for key in gone},
    )
    what, trace = (
        ("pod", "no folder under pods/")
        if by_pod
        else ("container", "no link to its log in /var/log/containers")
    )
    heals = "a kubelet that runs" if by_pod else "a kubelet of 1.17 that runs"
    yield _hit(
        host,
        node,
        f"CPUs {lost} of {host.node or host.host} are kept for {len(whose)}"
        f" {what}{'s' if len(whose) > 1 else ''} that {'are' if len(whose) > 1 else 'is'} gone",
        [
            _file(
                host,
                node,
                f"{f'{container} of pod {pod}' if pod else f'container {container}'} has"
                f" {cpuset.text(cpus)}: no process of it, and {trace}",
            )
            for (pod, container), cpus in sorted(gone.items())[:10]
        ],
        f"{heals} and reaches the API gives them back within a"
        f" minute{'' if by_pod else ', an older one does not'}; where they stay, the role"
        " cpu_manager_reset with kubemend_allow: [force_reset] resets its state; by hand: " + RESET,
    )


def _pods_there(node: Node) -> set[str] | None:
    """UIDs of the pods of which there is a process or the kubelet's folder, None where that is
    not known.
    """
    pods = node.seen.get("pods")
    return (
        {str(uid) for uid in pods} | {str(one.get("pod_uid")) for one in node.containers()}
        if isinstance(pods, list)
        else None
    )


def _containers_there(node: Node) -> set[str]:
    there = node.containers_there()
    if there is None:
        raise Unjudged(
            "its entries are by container, and which of those that have ended the kubelet still"
            " keeps is not known"
        )
    return there


@state_check(
    "KM309",
    "The static policy without reserved CPUs",
    severity="critical",
    applies="nodes whose kubelet is told the static policy",
    needs=("system", "kubelet", "pinning"),
    policy=told_static,
)
def unreserved(host: Host, node: Node) -> Iterator[Hit]:
    """KM309: the static policy needs CPUs that are kept from containers."""
    _sure(node)
    kept = node.reservation()
    if kept.number is None:
        raise Unjudged(kept.why, "kubelet")
    if kept.number == 0:
        told = (
            node.policy_setting.proof(host.host)
            if node.policy_setting
            else Proof("file", host.host, text="cpuManagerPolicy: static")
        )
        yield _hit(
            host,
            node,
            f"the kubelet of {host.node or host.host} is told the static policy and reserves no"
            f" CPU: {consequence(node)}",
            [told, *(setting.proof(host.host) for setting in kept.settings)],
            "set systemReserved.cpu, kubeReserved.cpu or reservedSystemCPUs in the configuration of"
            " this kubelet, and start it",
        )


@state_check(
    "KM310",
    "Memory manager state does not fit",
    severity="critical",
    applies="nodes with a kubelet",
    risk=3,
    needs=("system", "kubelet", "pinning"),
)
def memory(host: Host, node: Node) -> Iterator[Hit]:
    """KM310: the memory manager's file, likewise."""
    file = node.seen.get("memory_state")
    if not isinstance(file, Mapping):
        return
    if pinning.unread(file):
        raise Unjudged(f"{file.get('path')}: {pinning.unread(file)}")
    state, name = pinning.read_memory(file), host.node or host.host
    where = Proof(
        "file",
        host.host,
        path=file.get("path"),
        text=(
            f"{file.get('size')} bytes; {state.problem}"
            if state.problem
            else f"policyName {state.policy}"
        ),
    )
    if state.problem:
        yield _hit(
            host,
            node,
            f"memory_manager_state of {name} cannot be read by a kubelet, {state.problem}:"
            f" {consequence(node)}",
            [where],
            _over_it(node),
        )
        return
    _taken(node, manager_values.MEMORY)
    wanted, setting = pinning.memory_policy(node)
    if wanted is None:
        raise Unjudged(node.config.problem, "kubelet")
    if state.policy != wanted:
        proofs = [setting.proof(host.host)] if setting else []
        yield _hit(
            host,
            node,
            f"the kubelet of {name} is configured for the memory manager policy {wanted}, its state"
            f" is of {state.policy}: {consequence(node)}",
            [*proofs, where],
        )
    elif node.refused_memory:
        yield _hit(
            host,
            node,
            f"the memory manager of {name} refuses its state, which is not that of the machine and"
            f" its reservation: {consequence(node)}",
            [where, Proof("log", host.host, text=node.refused_memory)],
            _over_it(node),
        )
    elif state.checksum != manager_state.RIGHT:
        raise Unjudged(
            f"{file.get('path')} is of a newer format ({', '.join(state.more)}), which is not"
            " judged"
            if state.more
            else f"{file.get('path')} names no checksum, which not every release accepts"
        )


def lent(host: Host, document: Mapping[str, Any]) -> Hit | None:
    """Of KM903: arguments that a reset lent this kubelet, where no fault calls for that reset
    any more.
    """
    words, node = (
        kubelet_dropin.lent(control_plane.data(document, "kubelet")),
        pinning.read(document),
    )
    if not words or node is None or _calls_for_a_reset(host, node):
        return None
    return Hit(
        f"the kubelet of {host.node or host.host} still has {' '.join(words)} from a reset that did"
        " not come to its end",
        (Proof("file", host.host, path=kubelet_dropin.ENVIRONMENT, text=" ".join(words)),),
        "let the next repairing run take it away; so does a reboot, and the kubelet's next start is"
        " without it",
        host=host.host,
        node=host.node,
    )


def _calls_for_a_reset(host: Host, node: Node) -> bool:
    """Whether one of the faults that a reset cures is there, or cannot be judged."""
    try:
        own = any(
            True for look in (differs, corrupt, unreadable, memory) for dummy in look(host, node)
        )
        return own or (
            pins(node)
            and any(
                True
                for look in (reserved, changed_machine, overlapping)
                for dummy in look(host, node)
            )
        )
    except (RefusedError, Unjudged):
        return True
