# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the state files of the CPU manager and the memory manager of one node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ....module_utils.shared.text import counted
from ...evidence.answers.file_record import FileRecord
from ...models import cpu_manager
from ...models.cluster import Host
from ...models.cpu_manager import Node
from ...models.kubelet import (
    dropin,
    manager_policies,
    refused_configuration,
    reserved_resources,
)
from ...models.rancher_unit import RancherUnit
from ...models.result import EvidenceRef, Missing
from ...parsers import cpu_manager_state, cpuset
from ...parsers.cpu_manager_state import STATIC, CpuState
from ...parsers.memory_manager_state import MemoryState
from ..base import CheckResult, Detection, node_check

RESET = (
    "drain {node}, stop its kubelet, move {files} out of its folder (do not delete it), start the"
    " kubelet, wait until the node is Ready, uncordon it"
)
UNDRAINED = (
    "no kubelet starts over it, so that {node} cannot be drained: its pods get other CPUs while"
    " they run when {files} is moved out of its folder (do not delete it) and the kubelet started;"
    " the plan names them, and does it with kubemend_allow: [reset_without_drain]"
)
# k3s and RKE2 run the kubelet: their unit is what stops and starts it, and containers go on.
BY_HAND = (
    "kubectl drain {node} --ignore-daemonsets --delete-emptydir-data; on {node} systemctl stop"
    " {unit}, mv {files} to another folder (do not delete it), systemctl start {unit}; once the"
    " node is Ready kubectl uncordon {node}"
)
UNDRAINED_BY_HAND = (
    "on {node} systemctl stop {unit}, mv {files} to another folder (do not delete it), systemctl"
    " start {unit}. {node} cannot be drained first, because no kubelet starts with that state: its"
    " pods get other CPUs while they run"
)
OF_SERVER = ". On a server, this stops its API server and its etcd too: one server at a time"
STARTS_NOT = "the kubelet does not start"
WILL_NOT = "the kubelet still runs, and will not start again"
PerNode = Callable[[Host, Node], Iterator[Detection]]
Entry = tuple[str, str]  # (pod UID or "", container), a key of the state's entries
MAX_SHOWN_ENTRIES = 10
CHECKS: dict[str, Callable[[Host, Mapping[str, Any]], Iterator[CheckResult]]] = {}  # by code


class Unjudged(Exception):
    """A check lacks evidence, of this collector: the verdict is unknown."""

    def __init__(self, reason: str, collector: str = "pinning") -> None:
        super().__init__(reason)
        self.collector = collector


class RefusedError(Exception):
    """No kubelet starts with the setting that a check compares with: it does not apply."""


def per_node(
    look: PerNode, applies: Callable[[Node], bool] | None = None
) -> Callable[[Host, Mapping[str, Any]], Iterator[CheckResult]]:
    """Return a check of one node.

    applies: whether its policy leaves room for this fault

    Both functions may raise Unjudged.
    """

    def check(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
        if host.status == "ok" and host.statuses.get("kubelet") == "absent":
            yield CheckResult(applies=False, host=host.host, note="no kubelet")
            return
        missing, node = host.missing("kubelet") + host.missing("pinning"), None
        if not missing:
            node = cpu_manager.read(document)
        if node is None:
            missing = missing or (Missing(host.host, "kubelet", "absent"),)
            yield CheckResult(missing=missing, host=host.host)
            return
        yield _node_outcome(host, node, look, applies)

    return check


def _node_outcome(
    host: Host, node: Node, look: PerNode, applies: Callable[[Node], bool] | None
) -> CheckResult:
    try:
        if applies is not None and not applies(node):
            return CheckResult(applies=False, host=host.host)
        return CheckResult(tuple(look(host, node)), host=host.host)
    except RefusedError as refused:
        return CheckResult(applies=False, host=host.host, note=str(refused))
    except Unjudged as error:
        missing = (Missing(host.host, error.collector, "error"),)
        return CheckResult((), missing, host=host.host, note=str(error))


def path(node: Node) -> str:
    """Return the path of the state file."""
    if node.file is not None and node.file.path:
        return node.file.path
    return f"{node.seen.root_dir or '/var/lib/kubelet'}/cpu_manager_state"


def consequence(node: Node) -> str:
    """Return what the fault means for the kubelet that runs, or does not run, there."""
    if not node.running:
        return STARTS_NOT
    if node.lent:
        return (
            f"its kubelet runs by what a reset lent it ({' '.join(node.lent)}), until the next"
            " reset of its state or a reboot"
        )
    return WILL_NOT


def knows_policy(node: Node) -> bool:
    """Return True where the kubelet's policy is known; raise Unjudged elsewhere."""
    if node.policy is None:
        raise Unjudged(node.config.problem, "kubelet")
    return True


def knows_accepted_policy(node: Node) -> bool:
    """Tell whether the kubelet's policy is known, and one that a kubelet takes.

    Only then its state is compared with it.
    """
    _require_accepted(node, manager_policies.CPU)
    return knows_policy(node)


def _require_accepted(node: Node, *keys: str) -> None:
    """Raise RefusedError where a kubelet refuses one of these settings."""
    configuration = refused_configuration.judged(node)
    if configuration.refuses(*keys):
        reason = configuration.reason
        raise RefusedError(f"its kubelet refuses its configuration (KM506): {reason}")


def pins_by_configuration(node: Node) -> bool:
    """Tell whether the kubelet is configured to pin."""
    return knows_policy(node) and node.policy == STATIC


def pins(node: Node) -> bool:
    """Tell whether configuration and state agree on the policy static.

    Only then the sets are evaluated, and only where they are the kubelet's.
    """
    if not pins_by_configuration(node):
        return False
    state = known_state(node)
    if state is None or state.problem:
        return False
    if state.policy != STATIC or node.foreign():
        return False
    if state.more:
        raise Unjudged(_newer(node, state))
    return state.checksum != cpu_manager_state.WRONG


def known_state(node: Node) -> CpuState | None:
    """Return cpu_manager_state, None where there is none; raise Unjudged where it is unread."""
    if node.trouble:
        raise Unjudged(f"{path(node)}: {node.trouble}")
    return node.state


def _newer(node: Node, state: CpuState) -> str:
    return f"{path(node)} is of a newer format ({', '.join(state.more[:5])}), which is not judged"


def _require_configuration(node: Node) -> None:
    """Raise Unjudged where reservation or options are not all read."""
    if node.config.problem:
        raise Unjudged(node.config.problem, "kubelet")


def _hit(
    host: Host,
    node: Node,
    summary: str,
    proofs: Iterable[EvidenceRef],
    remedy: str = RESET,
    severity: str | None = None,
) -> Detection:
    log = []
    if node.last_words and STARTS_NOT in summary:
        log.append(EvidenceRef("log", host.host, text=node.last_words))
    remedy, risk = _before_reset(node) + remedy, None
    if host.rancher is not None:
        remedy, risk = _by_hand(remedy, host.rancher, is_running=node.running), 0
    return Detection(
        summary,
        (*proofs, *log),
        remedy.format(node=host.node or host.host, files=_state_files(node)),
        host=host.host,
        node=host.node,
        severity=severity,
        risk=risk,
    )


def _by_hand(remedy: str, rancher: RancherUnit, *, is_running: bool) -> str:
    """Return a remedy with the commands for a kubelet that k3s or RKE2 runs."""
    by_hand = BY_HAND if is_running else UNDRAINED_BY_HAND
    remedy = remedy.replace(UNDRAINED, by_hand).replace(RESET, by_hand)
    after = "" if rancher.is_agent else OF_SERVER
    return remedy.replace("{unit}", rancher.short_name) + after


def _state_files(node: Node) -> str:
    """Return the paths of the state files that a reset moves away."""
    memory_state = node.seen.memory_state
    if memory_state is None:
        return path(node)
    return f"{path(node)} and {memory_state.path}"


def _before_reset(node: Node) -> str:
    """Return what comes before a reset, which cures no kubelet that refuses its configuration."""
    configuration = refused_configuration.judged(node)
    if not configuration.refused:
        return ""
    reason = configuration.reason.replace("{", "{{").replace("}", "}}")
    return f"first correct what its kubelet refuses (KM506: {reason}); then "


def _over_it(node: Node) -> str:
    """Return the remedy where no kubelet starts over the state."""
    if node.running:
        return RESET
    return UNDRAINED


def _file(host: Host, node: Node, text: str) -> EvidenceRef:
    return EvidenceRef("file", host.host, path=path(node), text=text)


def _content(node: Node) -> str:
    """Return what the state file contains, on one line."""
    state = node.state
    if state is None:
        return ""
    return (
        f'policyName {state.policy}, defaultCpuSet "{cpuset.text(state.default)}"'
        f"{_assigned(state)}, checksum {state.checksum}"
    )


def _assigned(state: CpuState) -> str:
    if not state.entries:
        return ""
    containers = "1 container has"
    if len(state.entries) > 1:
        containers = f"{len(state.entries)} containers have"
    return f", {containers} {cpuset.text(state.assigned) or 'none'}"


def _policy_proof(host: Host, node: Node, default: str) -> EvidenceRef:
    """Return the place where the CPU manager policy is set.

    default: the text where it is not
    """
    if node.policy_setting:
        return node.policy_setting.proof(host.host)
    return EvidenceRef("file", host.host, text=default)


def state_check(
    code: str, title: str, *, policy: Callable[[Node], bool] | None = None, **metadata: Any
) -> Callable[[PerNode], PerNode]:
    """Register a node check of the managers' state; policy tells whether it leaves room for it."""

    def register(look: PerNode) -> PerNode:
        check = CHECKS[code] = per_node(look, policy)
        node_check(code, title, needs=("system", "kubelet", "pinning"), **metadata)(check)
        return look

    return register


@state_check(
    "KM301",
    "CPU manager state was written for another policy",
    severity="critical",
    applies="nodes with a kubelet",
    risk=3,
    policy=knows_accepted_policy,
)
def differs(host: Host, node: Node) -> Iterator[Detection]:
    """KM301: a kubelet that starts finds the state of another policy."""
    state = known_state(node)
    if state is None or state.problem or node.policy == state.policy:
        return
    if node.corrupt_state:
        return  # KM302: the kubelet tells another reason, which comes before a look at the policy
    if state.more and not state.policy:
        raise Unjudged(_newer(node, state))
    yield _hit(
        host,
        node,
        f"the kubelet is configured with the CPU manager policy {node.policy}; its state file was"
        f" written for {state.policy or 'no policy that it names'}: {consequence(node)}",
        [
            _policy_proof(host, node, "no cpuManagerPolicy is set: the default is none"),
            _file(host, node, _content(node)),
        ],
    )


@state_check(
    "KM302",
    "CPU manager state is corrupt",
    severity="critical",
    applies="nodes with a kubelet",
    risk=3,
)
def corrupt(host: Host, node: Node) -> Iterator[Detection]:
    """KM302: it is well formed, and corrupt by its checksum or by the kubelet's own words."""
    state = known_state(node)
    if state is None or state.problem:
        return
    if state.more:
        raise Unjudged(_newer(node, state))
    if state.checksum == cpu_manager_state.WRONG:
        yield _hit(
            host,
            node,
            f"cpu_manager_state does not have the checksum that it names: {consequence(node)}",
            [_file(host, node, _content(node))],
            _over_it(node),
        )
    elif node.corrupt_state:
        yield _hit(
            host,
            node,
            "cpu_manager_state is corrupt by the kubelet's own words, as where the machine crashed"
            f" while it was written: {consequence(node)}",
            [
                EvidenceRef("log", host.host, text=node.corrupt_state),
                _file(host, node, _content(node)),
            ],
            _over_it(node),
        )


@state_check(
    "KM303",
    "CPU manager state is empty or unreadable",
    severity="critical",
    applies="nodes with a kubelet",
    risk=3,
)
def unreadable(host: Host, node: Node) -> Iterator[Detection]:
    """KM303: empty, cut, of another shape, or of another version than the kubelet's."""
    state = known_state(node)
    if state is None:
        return
    problem, reader = state.problem, "a kubelet"
    if not problem:
        problem, reader = node.foreign(), "its kubelet"
    if not problem:
        return
    size = node.file and node.file.size
    yield _hit(
        host,
        node,
        f"cpu_manager_state cannot be read by {reader}, {problem}: {consequence(node)}",
        [_file(host, node, f"{size} bytes; {problem}")],
        _over_it(node),
    )


@state_check(
    "KM304",
    "Reserved CPUs differ from the CPU manager's state",
    severity="critical",
    applies="nodes with the static policy",
    risk=3,
    policy=pins,
)
def reserved(host: Host, node: Node) -> Iterator[Detection]:
    """KM304: reserved CPUs were given to a container, or (strict) are still in the shared set."""
    _require_configuration(node)
    _require_accepted(node, reserved_resources.LIST)
    reservation, state = node.reservation(), node.state
    if state is None or reservation.number == 0:
        return
    if reservation.cpus is None:
        if _all_shared(node, state):
            return  # whichever they are
        raise Unjudged(reservation.why, "kubelet")
    misplaced, location = _misplaced(node, state, reservation.cpus)
    if misplaced and _are_online(node, reservation.cpus):
        yield _hit(
            host,
            node,
            f"the reserved CPUs {cpuset.text(misplaced)} {location} of"
            f" its state: {consequence(node)}",
            [
                *(setting.proof(host.host) for setting in reservation.settings),
                _file(host, node, "; ".join([_content(node), *_holders(state, misplaced)])),
            ],
        )


def _all_shared(node: Node, state: CpuState) -> bool:
    """Tell whether every CPU is in the shared set, where reserved ones may be."""
    return not node.strict and node.online is not None and node.online <= state.default


def _misplaced(node: Node, state: CpuState, cpus: cpuset.CPUs) -> tuple[cpuset.CPUs, str]:
    """Return (the reserved CPUs that are in the wrong set, how that is reported)."""
    if node.strict:
        return cpus & state.default, "are still in the shared set"
    return cpus - state.default, "are not in the shared set"


def _are_online(node: Node, cpus: cpuset.CPUs) -> bool:
    return node.online is None or cpus <= node.online


def _holders(state: CpuState, cpus: cpuset.CPUs) -> list[str]:
    """Return the first containers that have any of these CPUs, as text."""
    holders = [entry for entry in sorted(state.entries.items()) if entry[1] & cpus]
    return [
        f"{container} of pod {pod} has {cpuset.text(own_cpus)}"
        for (pod, container), own_cpus in holders[:5]
    ]


@state_check(
    "KM305",
    "The machine's CPUs differ from the CPU manager's state",
    severity="critical",
    applies="nodes with the static policy",
    risk=3,
    policy=pins,
)
def changed_machine(host: Host, node: Node) -> Iterator[Detection]:
    """KM305: CPUs were added or removed since the state was written."""
    _require_configuration(node)
    _require_accepted(node, reserved_resources.LIST)
    if node.state is None:
        return
    online = node.online
    if online is None:
        raise Unjudged("which CPUs are online could not be read")
    known_cpus = _known_cpus(node, node.state)
    if known_cpus == online:
        return
    yield _hit(
        host,
        node,
        f"the CPUs of the machine are not those of the CPU manager's state"
        f" ({_difference(known_cpus, online)}): {consequence(node)}",
        [
            EvidenceRef(
                "file", host.host, path="/sys/devices/system/cpu/online", text=cpuset.text(online)
            ),
            _file(host, node, _content(node)),
        ],
    )


def _known_cpus(node: Node, state: CpuState) -> cpuset.CPUs:
    """Return the CPUs of the machine when its state was written; raise Unjudged where unknown."""
    known_cpus = state.default | state.assigned
    if not node.strict:
        return known_cpus
    reservation = node.reservation()
    if reservation.cpus is None:
        raise Unjudged(reservation.why, "kubelet")
    return known_cpus | reservation.cpus


def _difference(known_cpus: cpuset.CPUs, online: cpuset.CPUs) -> str:
    changes = []
    if known_cpus - online:
        changes.append(f"CPU {cpuset.text(known_cpus - online)} is gone")
    if online - known_cpus:
        changes.append(f"CPU {cpuset.text(online - known_cpus)} is new")
    return " and ".join(changes)


@state_check(
    "KM306",
    "Sets of CPUs overlap in the CPU manager's state",
    severity="critical",
    applies="nodes with the static policy",
    risk=3,
    policy=pins,
)
def overlapping(host: Host, node: Node) -> Iterator[Detection]:
    """KM306: CPUs that a container should have alone are in another set too.

    A kubelet gives the CPUs of an init container to those of its pod that start later, and keeps
    its entry: within one pod only containers that run at the same time count.
    """
    state = node.state
    if state is None:
        return
    pairs = _overlaps(node, state)
    if not pairs:
        return
    summary = "sets of CPUs overlap in the state"
    if any(other is None for dummy, other in pairs):
        summary += f": {consequence(node)}"
    proofs = [_file(host, node, _overlap_text(state, *pair)) for pair in pairs[:5]]
    yield _hit(host, node, summary, proofs)


def _overlaps(node: Node, state: CpuState) -> list[tuple[Entry, Entry | None]]:
    """Return the pairs of sets that overlap; None stands for the shared set."""
    running = {(container.pod_uid, container.name) for container in node.containers()}
    return [
        (entry, other)
        for entry, other in state.overlaps
        if other is None or entry[0] != other[0] or {entry, other} <= running
    ]


def _overlap_text(state: CpuState, entry: Entry, other: Entry | None) -> str:
    other_name, other_cpus = "the shared set", state.default
    if other is not None:
        other_name, other_cpus = f"{other[1]} of pod {other[0]}", state.entries[other]
    common = cpuset.text(state.entries[entry] & other_cpus)
    return f"{entry[1]} of pod {entry[0]} and {other_name} both have {common}"


@state_check(
    "KM307",
    "CPUs are kept for pods that are gone",
    severity="warning",
    applies="nodes with the static policy",
    risk=3,
    policy=pins,
)
def orphans(host: Host, node: Node) -> Iterator[Detection]:
    """KM307: CPUs kept for pods, or containers, that are gone from this node."""
    state = node.state
    if state is None or not state.entries:
        return
    if state.generation == 2:
        gone = _gone_pods(node, state)
        trace, heals = "no folder under pods/", "a kubelet that runs"
        entries, older = _count({pod for pod, dummy in gone}, "pod"), ""
    else:
        gone = _gone_containers(node, state)
        trace = "no link to its log in /var/log/containers"
        heals, older = "a kubelet of 1.17 that runs", ", an older one does not"
        entries = _count({container for dummy, container in gone}, "container")
    if not gone:
        return
    lost = cpuset.text(frozenset().union(*gone.values()))
    yield _hit(
        host,
        node,
        f"CPUs {lost} are kept for {entries} gone",
        [
            _file(host, node, _orphan_text(entry, cpus, trace))
            for entry, cpus in sorted(gone.items())[:MAX_SHOWN_ENTRIES]
        ],
        f"{heals} and reaches the API gives them back within a minute{older}; where they stay, the"
        " role cpu_manager_reset with kubemend_allow: [force_reset] resets its state; by hand: "
        + RESET,
    )


def _gone_pods(node: Node, state: CpuState) -> dict[Entry, cpuset.CPUs]:
    """Return the entries of pods that the node no longer has; none where that is not known."""
    uids = _pods_there(node)
    if uids is None:
        return {}
    return {entry: cpus for entry, cpus in state.entries.items() if entry[0] not in uids}


def _gone_containers(node: Node, state: CpuState) -> dict[Entry, cpuset.CPUs]:
    """Return the entries of containers that the node no longer has; raise Unjudged if unknown."""
    identifiers = _containers_there(node)
    return {entry: cpus for entry, cpus in state.entries.items() if entry[1] not in identifiers}


def _count(names: set[str], noun: str) -> str:
    return counted(len(names), f"{noun} that is", f"{noun}s that are")


def _orphan_text(entry: Entry, cpus: cpuset.CPUs, trace: str) -> str:
    pod, container = entry
    name = f"container {container}"
    if pod:
        name = f"{container} of pod {pod}"
    return f"{name} has {cpuset.text(cpus)}: no process of it, and {trace}"


def _pods_there(node: Node) -> set[str] | None:
    """Return the UIDs of pods that have a process or the kubelet's directory, None if unknown."""
    if node.seen.pods is None:
        return None
    return {*node.seen.pods, *(str(container.pod_uid) for container in node.containers())}


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
    applies="nodes whose kubelet is configured with the static policy",
    policy=pins_by_configuration,
)
def unreserved(host: Host, node: Node) -> Iterator[Detection]:
    """KM309: the static policy needs CPUs that are kept from containers."""
    _require_configuration(node)
    reservation = node.reservation()
    if reservation.number is None:
        raise Unjudged(reservation.why, "kubelet")
    if reservation.number == 0:
        yield _hit(
            host,
            node,
            "the kubelet is configured with the static policy and reserves no CPU:"
            f" {consequence(node)}",
            [
                _policy_proof(host, node, "cpuManagerPolicy: static"),
                *(setting.proof(host.host) for setting in reservation.settings),
            ],
            "set systemReserved.cpu, kubeReserved.cpu or reservedSystemCPUs in the configuration of"
            " this kubelet, and start it",
        )


@state_check(
    "KM310",
    "Memory manager state does not fit",
    severity="critical",
    applies="nodes with a kubelet",
    risk=3,
)
def memory(host: Host, node: Node) -> Iterator[Detection]:
    """KM310: the state of the memory manager does not fit."""
    file = node.seen.memory_state
    if file is None:
        return
    if cpu_manager.unread(file):
        raise Unjudged(f"{file.path}: {cpu_manager.unread(file)}")
    state = cpu_manager.read_memory(file)
    if state.problem:
        yield _hit(
            host,
            node,
            f"a kubelet cannot read memory_manager_state ({state.problem}): {consequence(node)}",
            [_memory_file(host, file, f"{file.size} bytes; {state.problem}")],
            _over_it(node),
        )
        return
    _require_accepted(node, manager_policies.MEMORY)
    yield from _memory_differs(host, node, file, state)


def _memory_file(host: Host, file: FileRecord, text: str) -> EvidenceRef:
    return EvidenceRef("file", host.host, path=file.path, text=text)


def _memory_differs(
    host: Host, node: Node, file: FileRecord, state: MemoryState
) -> Iterator[Detection]:
    """Compare the memory manager's state, which can be read, with policy, machine and checksum."""
    policy, setting = cpu_manager.memory_policy(node)
    if policy is None:
        raise Unjudged(node.config.problem, "kubelet")
    location = _memory_file(host, file, f"policyName {state.policy}")
    if state.policy != policy:
        proofs = [location]
        if setting:
            proofs.insert(0, setting.proof(host.host))
        yield _hit(
            host,
            node,
            f"the kubelet is configured with the memory manager policy {policy}; its state file was"
            f" written for {state.policy}: {consequence(node)}",
            proofs,
        )
    elif node.refused_memory:
        yield _hit(
            host,
            node,
            f"the memory manager refuses its state, which is not that"
            f" of the machine and its reservation: {consequence(node)}",
            [location, EvidenceRef("log", host.host, text=node.refused_memory)],
            _over_it(node),
        )
    else:
        _require_memory_checksum(file, state)


def _require_memory_checksum(file: FileRecord, state: MemoryState) -> None:
    """Raise Unjudged where the checksum of the memory manager's state does not confirm it."""
    if state.checksum == cpu_manager_state.RIGHT:
        return
    if state.more:
        raise Unjudged(
            f"{file.path} is of a newer format ({', '.join(state.more)}), which is not judged"
        )
    raise Unjudged(f"{file.path} names no checksum, which not every release accepts")


def lent(host: Host, document: Mapping[str, Any]) -> Detection | None:
    """Return the hit of KM903: temporary arguments of a reset that no fault calls for any more."""
    node = cpu_manager.read(document)
    if node is None or not node.lent or _calls_for_a_reset(host, node):
        return None
    arguments = " ".join(node.lent)
    return Detection(
        f"the kubelet still has {arguments} from a reset that did not come to its end",
        (EvidenceRef("file", host.host, path=dropin.ENVIRONMENT, text=arguments),),
        "let the next repairing run take it away; so does a reboot, and the kubelet's next start is"
        " without it",
        host=host.host,
        node=host.node,
    )


def _calls_for_a_reset(host: Host, node: Node) -> bool:
    """Tell whether a fault that a reset cures is present, or cannot be evaluated."""
    try:
        if _any_hit(host, node, (differs, corrupt, unreadable, memory)):
            return True
        return pins(node) and _any_hit(host, node, (reserved, changed_machine, overlapping))
    except (RefusedError, Unjudged):
        return True


def _any_hit(host: Host, node: Node, checks: Iterable[PerNode]) -> bool:
    return any(list(check(host, node)) for check in checks)
