# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check leader election, per cluster and over all expected members."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ...evidence.answers.cluster.nodes import Nodes
from ...models.cluster import Cluster, Host
from ...models.control_plane import ELECTED, ConfigFile, ControlPlane, FileUse, Process
from ...models.result import EvidenceRef, Missing
from ...parsers import pflag
from ..base import (
    AnyClusterCheck,
    CheckResult,
    Detection,
    cluster_check,
    not_applicable,
    without_kubernetes,
)

FLAG_ON = "- --leader-elect=true"
SEVERAL_INSTANCES = (
    "kube-scheduler and kube-controller-manager where the cluster has more than one instance of"
    " them"
)
NO_MEMBERS = Missing("control plane", "inventory", "absent")


@dataclass
class _Assessment:
    """Hits by code for one component, with what is missing for a clear verdict."""

    hits: dict[str, list[Detection]] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)

    def add(self, code: str, hit: Detection) -> None:
        """Add one more place where the fault with this code is present."""
        self.hits.setdefault(code, []).append(hit)


def election(
    cluster: Cluster, code: str, components: tuple[str, ...] = ELECTED
) -> Iterator[CheckResult]:
    """Return the results of one fault of leader election (KM101 to KM105)."""
    for component in components:
        if cluster.key is None:
            yield without_kubernetes(component=component)
            continue
        if code != "KM105" and _only_one(cluster, component):
            note = "a single instance in the whole cluster needs no election"
            yield not_applicable(note, component=component)
            continue
        assessment = _assess(cluster, component)
        yield CheckResult(
            tuple(assessment.hits.get(code, ())), tuple(assessment.missing), component=component
        )


def silent_members(cluster: Cluster, *collectors: str) -> list[Missing]:
    """Return what the members of the control plane owe.

    These are hosts that did not answer, collectors that failed, and members outside the inventory.
    """
    if not cluster.members and not cluster.strangers:
        return _silent(cluster.hosts) or [NO_MEMBERS]
    missing = [item for host in cluster.members for item in _once(host, collectors)]
    missing += [Missing(stranger.name, "inventory", "absent") for stranger in cluster.strangers]
    if not cluster.answered(Nodes):
        missing += _silent(_possible_members(cluster))
    return missing


def _possible_members(cluster: Cluster) -> list[Host]:
    """Return the hosts that may be members too where the API does not name the members."""
    members = {host.host for host in cluster.members}
    other_hosts = [host for host in cluster.hosts if host.host not in members]
    return [host for host in other_hosts if "node" not in host.groups]


def _silent(hosts: Iterable[Host]) -> list[Missing]:
    return [Missing(host.host, "host", host.status) for host in hosts if host.status != "ok"]


def _once(host: Host, collectors: tuple[str, ...]) -> list[Missing]:
    return list(dict.fromkeys(item for name in collectors for item in host.missing(name)))


def all_members_known(cluster: Cluster) -> bool:
    """Tell whether the API names the control plane, or no host is silent that may be of it."""
    if cluster.answered(Nodes):
        return True
    return not _silent([*cluster.members, *_possible_members(cluster)])


def _only_one(cluster: Cluster, component: str) -> bool:
    if not all_members_known(cluster):
        return False
    running = sum(
        len(host.control_plane.processes_of(component))
        for host in cluster.hosts
        if host.control_plane
    )
    return len(cluster.members) + len(cluster.strangers) <= 1 and running <= 1


def _assess(cluster: Cluster, component: str) -> _Assessment:
    assessment = _Assessment(missing=silent_members(cluster, "manifests", "instances"))
    for host in cluster.hosts:
        if host.status == "ok" and host.control_plane is not None:
            _assess_host(assessment, cluster, host, host.control_plane, component)
    return assessment


def _assess_host(
    assessment: _Assessment, cluster: Cluster, host: Host, plane: ControlPlane, component: str
) -> None:
    uses = [use for use in plane.files if use.component == component]
    if any(component in path for path in plane.unread):
        assessment.missing.append(Missing(host.host, "manifests", "denied"))
    running = _candidates(cluster, plane, component)
    for process in running:
        _assess_process(assessment, host, process, uses)
    for use in _loaded(uses):
        _file_flag(assessment, host, use, running)
    for process in running:
        if process.ours and process.elect is True:
            _config_only(assessment, host, process)


def _candidates(cluster: Cluster, plane: ControlPlane, component: str) -> list[Process]:
    """Return a host's instances of a component that need an election."""
    candidates = [process for process in plane.processes if _is_candidate(process, component)]
    return [process for process in candidates if not _alone(cluster, process)]


def _is_candidate(process: Process, component: str) -> bool:
    return process.component == component and process.ours is not False


def _assess_process(
    assessment: _Assessment, host: Host, process: Process, uses: list[FileUse]
) -> None:
    if process.ours is None and process.elect is not True:
        assessment.missing.append(Missing(host.host, "instances", "denied"))
    elif process.elect is False and process.ours:
        _disabled_process(assessment, host, process, uses)
    elif process.elect is None:
        status = host.statuses.get("component_http", "not_asked")
        assessment.missing.append(Missing(host.host, "component_http", status))


def _alone(cluster: Cluster, process: Process) -> bool:
    """Tell whether no other instance shares a process's schedulerName or controllers.

    Such a scheduler or controller manager needs no election.
    """
    if process.static or _has_usual_duty(process):
        return False
    processes = [other for host in cluster.hosts for other in _processes(host)]
    return not any(
        other is not process
        and _is_candidate(other, process.component)
        and same_duty(process, other)
        for other in processes
    )


def _has_usual_duty(process: Process) -> bool:
    if process.component == "kube-scheduler":
        return "default-scheduler" in scheduler_names(process)
    return "*" in _controllers(process)


def _processes(host: Host) -> tuple[Process, ...]:
    if host.control_plane is None:
        return ()
    return tuple(host.control_plane.processes)


def _loaded(uses: list[FileUse]) -> list[FileUse]:
    """Return the manifests that count: backups next to a usual one are a fault of their own."""
    return [use for use in uses if use.usual] or uses


def _disabled_process(
    assessment: _Assessment, host: Host, process: Process, uses: list[FileUse]
) -> None:
    by_flag = _is_off(pflag.bool_flag(process.argv, "leader-elect"))
    config = process.config
    if config is not None and _config_decides(process, config, by_flag):
        # A process that reads a file with a value that is no boolean exits: correct it before a
        # restart.
        suffix = ""
        if config.problem:
            suffix = f", where {config.problem}"
        summary = f"leader election is off in its configuration file{suffix}"
        assessment.add("KM104", _config_hit(host, process, config, summary))
        return
    manifest = next((use for use in uses if _is_off(use.flag)), None)
    if by_flag and manifest is not None:
        assessment.add("KM101", _by_manifest(host, process, manifest))
    elif by_flag and not uses:
        assessment.add("KM101", _by_starter(host, process))
    else:
        assessment.add("KM102", _not_restarted(host, process, uses))


def _is_off(flag: pflag.BoolFlag | None) -> bool:
    return flag is not None and flag.value is False


def _config_decides(process: Process, config: ConfigFile, by_flag: bool) -> bool:
    """Tell whether the configuration file decides: from 1.23 on an explicit flag overrides it."""
    if by_flag and (process.version or (0, 0)) >= (1, 23):
        return False
    return config.elect is False or bool(config.said and config.problem)


def _by_manifest(host: Host, process: Process, use: FileUse) -> Detection:
    return _hit(
        host,
        process.component,
        "leader election is off",
        _proof_file(host, use),
        _proof_process(host, process),
        _proof_answer(host, process),
        remedy=f"set {use.path}:{use.line} to {FLAG_ON}",
    )


def _by_starter(host: Host, process: Process) -> Detection:
    starter, remark = "the script or the tool that starts it", ""
    if process.unit:
        starter = f"unit {process.unit}"
    elif process.pod_uid:
        starter = f"pod {process.pod_uid}"
    if process.unit or process.pod_uid:
        remark = f" (started by {starter})"
    return _hit(
        host,
        process.component,
        f"leader election is off{remark}",
        _proof_process(host, process),
        _proof_answer(host, process),
        remedy=f"set --leader-elect=true where {starter} defines the command line",
    )


def _not_restarted(host: Host, process: Process, uses: list[FileUse]) -> Detection:
    path = "its files"
    if uses:
        path = uses[0].path
    elif process.config:
        path = process.config.path
    return _hit(
        host,
        process.component,
        f"runs without leader election although {path} has it on",
        _proof_process(host, process),
        _proof_answer(host, process),
        remedy=(
            "restart the component so that it loads the file: "
            f"the kubelet has to bring {process.component} back from {path}"
        ),
    )


def _file_flag(assessment: _Assessment, host: Host, use: FileUse, running: list[Process]) -> None:
    """Add a flag of a manifest that does not parse, or that counts from the next start on."""
    flag, file = use.flag, _proof_file(host, use)
    remedy = f"set {use.path}:{use.line} to {FLAG_ON}"
    if flag is not None and flag.value is None:
        summary = f"{flag.raw} does not parse: {flag.problem}"
        assessment.add("KM105", _hit(host, use.component, summary, file, remedy=remedy))
    elif _is_off(flag) and _counts_later(use, running):
        state = "does not run"
        if running:
            state = "still elects"
        summary = f"leader election is off in the manifest; the process {state}"
        processes = [_proof_process(host, process) for process in running]
        hit = _hit(host, use.component, summary, file, *processes, remedy=remedy)
        assessment.add("KM103", hit)


def _counts_later(use: FileUse, running: list[Process]) -> bool:
    """Tell whether a flag that is off has no effect before the next start."""
    if any(process.elect is False and process.ours for process in running):
        return False
    words = set(_flags_of(use.words))
    # A process that elects in spite of this very flag has a --config file that decides (up to
    # 1.22).
    return not any(process.elect and set(process.argv) >= words for process in running)


def _config_only(assessment: _Assessment, host: Host, process: Process) -> None:
    """Add a configuration file that switches election off at the next restart."""
    config, flag = process.config, pflag.bool_flag(process.argv, "leader-elect")
    overridden = flag is not None and flag.value and (process.version or (1, 23)) >= (1, 23)
    if config is not None and config.elect is False and not overridden:
        summary = "leader election goes off at the next restart"
        assessment.add("KM104", _config_hit(host, process, config, summary))


def _config_hit(host: Host, process: Process, config: ConfigFile, summary: str) -> Detection:
    return _hit(
        host,
        process.component,
        summary,
        EvidenceRef(
            "file",
            host.host,
            path=config.path,
            line=config.line,
            text=f"leaderElect: {config.said}",
        ),
        _proof_process(host, process),
        _proof_answer(host, process),
        remedy=(
            f"set {config.path}:{config.line} to leaderElect: true and restart {process.component}"
        ),
    )


def _hit(
    host: Host, component: str, summary: str, *evidence: EvidenceRef | None, remedy: str
) -> Detection:
    return Detection(
        summary,
        tuple(item for item in evidence if item is not None),
        remedy,
        host.host,
        host.node,
        component,
    )


def _proof_file(host: Host, use: FileUse) -> EvidenceRef:
    text = None
    if use.flag:
        text = f"- {use.flag.raw}"
    return EvidenceRef("file", host.host, path=use.path, line=use.line, text=text)


def _proof_process(host: Host, process: Process) -> EvidenceRef:
    return EvidenceRef("process", host.host, pid=process.pid, argv=process.argv)


def _proof_answer(host: Host, process: Process) -> EvidenceRef | None:
    if process.source not in ("configz", "healthz"):
        return None
    return EvidenceRef("http", host.host, pid=process.pid, text=process.answer)


def _flags_of(words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith("--")]


@cluster_check(
    "KM106",
    "Leader-election locks differ between instances",
    severity="critical",
    applies=SEVERAL_INSTANCES,
    risk=2,
    needs=("instances", "component_http"),
)
def locks_overlap(cluster: Cluster) -> Iterator[CheckResult]:
    """KM106: report instances with the same duty whose locks do not exclude each other."""
    for component in ELECTED:
        if cluster.key is None:
            yield CheckResult(applies=False, component=component)
            continue
        electing = [
            (host, process) for host in cluster.hosts for process in _electing(host, component)
        ]
        hits = tuple(_apart(component, electing))
        missing = silent_members(cluster, "instances")
        missing += [
            Missing(host.host, "component_http", "error")
            for host, process in electing
            if _locks(process) is None
        ]
        yield CheckResult(hits, tuple(missing), component=component)


def _electing(host: Host, component: str) -> list[Process]:
    if host.control_plane is None:
        return []
    return [process for process in host.control_plane.processes_of(component) if process.elect]


@dataclass(frozen=True)
class _Locked:
    """An instance with the locks that it takes.

    order: its place in the list of instances
    """

    order: int
    host: Host
    process: Process
    locks: frozenset[str]

    def shares_duty(self, other: _Locked) -> bool:
        """Tell whether both instances do the same work."""
        return same_duty(self.process, other.process)

    def excludes(self, other: _Locked) -> bool:
        """Tell whether both instances take a common lock."""
        return bool(self.locks & other.locks)


def _apart(component: str, electing: list[tuple[Host, Process]]) -> Iterator[Detection]:
    """Yield one hit for each instance whose locks are none of the larger party's."""
    instances = []
    for order, (host, process) in enumerate(electing):
        locks = _locks(process)
        if locks is not None:
            instances.append(_Locked(order, host, process, locks))
    party = {
        instance.order: sum(
            instance.shares_duty(other) and instance.excludes(other) for other in instances
        )
        for instance in instances
    }

    def rank(instance: _Locked) -> tuple[int, int]:
        return party[instance.order], -instance.order

    for instance in instances:
        rivals = [
            other
            for other in instances
            if _are_apart(instance, other) and rank(other) > rank(instance)
        ]
        if rivals:
            yield _apart_hit(component, instance, max(rivals, key=rank))


def _are_apart(instance: _Locked, other: _Locked) -> bool:
    return instance.shares_duty(other) and not instance.excludes(other)


def _apart_hit(component: str, instance: _Locked, rival: _Locked) -> Detection:
    return _hit(
        instance.host,
        component,
        f"elects on {_spell(instance.locks)}, {rival.host.host} on {_spell(rival.locks)}: both can"
        " lead at once",
        _proof_process(instance.host, instance.process),
        _proof_process(rival.host, rival.process),
        remedy="give every instance the same --leader-elect-resource-lock, -name and -namespace",
    )


def same_duty(process: Process, other: Process) -> bool:
    """Tell whether schedulers share a schedulerName, or controller managers a controller."""
    if process.component == "kube-scheduler":
        return bool(scheduler_names(process) & scheduler_names(other))
    controllers, other_controllers = _controllers(process), _controllers(other)
    return bool(controllers & other_controllers) or (
        "*" in controllers and "*" in other_controllers
    )


def scheduler_names(process: Process) -> frozenset[str]:
    """Return the schedulerNames that an instance serves."""
    flag = pflag.string_flag(process.argv, "scheduler-name")
    names: Iterable[str] = ()
    if process.config:
        names = process.config.scheduler_names
    return frozenset(names or (flag or "default-scheduler",))


def _controllers(process: Process) -> frozenset[str]:
    listed = (pflag.string_flag(process.argv, "controllers") or "*").split(",")
    return frozenset(item for item in listed if not item.startswith("-"))


def _locks(process: Process) -> frozenset[str] | None:
    """Return the lock objects that an instance takes, or None if they are not known.

    What the instance itself reports counts more than its flags.
    """
    reported = dict(process.locks)
    if process.config:
        reported = {**process.config.locks, **process.locks}

    def setting(field_name: str, flag: str) -> str | None:
        return reported.get(field_name) or pflag.string_flag(process.argv, flag)

    kind = setting("resourcelock", "leader-elect-resource-lock") or _default_kind(process.version)
    if kind is None:
        return None
    namespace = setting("resourcenamespace", "leader-elect-resource-namespace") or "kube-system"
    name = setting("resourcename", "leader-elect-resource-name") or process.component
    kinds = {
        "endpointsleases": ("endpoints", "leases"),
        "configmapsleases": ("configmaps", "leases"),
    }
    return frozenset(f"{item} {namespace}/{name}" for item in kinds.get(kind, (kind,)))


def lock_names(process: Process) -> frozenset[str]:
    """Return the names of the lock objects in kube-system that an instance takes."""
    return frozenset(
        lock.split("/", 1)[1] for lock in _locks(process) or () if " kube-system/" in lock
    )


def _default_kind(version: tuple[int, int] | None) -> str | None:
    if version is None:
        return None
    if version <= (1, 16):
        return "endpoints"
    if version <= (1, 19):
        return "endpointsleases"
    return "leases"


def _spell(locks: frozenset[str]) -> str:
    return " and ".join(sorted(locks))


def disabled_check(
    code: str, title: str, *, applies: str = SEVERAL_INSTANCES
) -> Callable[[AnyClusterCheck], AnyClusterCheck]:
    """Register a cluster check of leader election that is off."""
    return cluster_check(
        code,
        title,
        severity="critical",
        applies=applies,
        risk=2,
        needs=("kubelet", "manifests", "instances", "component_http"),
    )


@disabled_check("KM101", "Leader election disabled")
def disabled(cluster: Cluster) -> Iterator[CheckResult]:
    """Report an instance that runs without leader election, as its manifest says."""
    return election(cluster, "KM101")


@disabled_check("KM102", "Leader election disabled in the running process only")
def disabled_in_process(cluster: Cluster) -> Iterator[CheckResult]:
    """Report a process without leader election whose manifest enables it."""
    return election(cluster, "KM102")


@disabled_check("KM103", "Leader election disabled in the manifest only")
def disabled_in_manifest(cluster: Cluster) -> Iterator[CheckResult]:
    """Report a manifest that disables leader election for the next start."""
    return election(cluster, "KM103")


@disabled_check(
    "KM104",
    "Leader election disabled in the scheduler's configuration file",
    applies="kube-scheduler with --config where the cluster has more than one instance",
)
def disabled_in_configuration(cluster: Cluster) -> Iterator[CheckResult]:
    """Report a scheduler configuration file that disables leader election."""
    return election(cluster, "KM104", ("kube-scheduler",))


@cluster_check(
    "KM105",
    "Leader election flag does not parse",
    severity="critical",
    applies="manifests of kube-scheduler and kube-controller-manager",
    risk=2,
    needs=("kubelet", "manifests"),
)
def unparsable_flag(cluster: Cluster) -> Iterator[CheckResult]:
    """Report a leader election flag that does not parse."""
    return election(cluster, "KM105")
