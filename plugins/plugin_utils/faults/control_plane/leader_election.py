# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Predicates about leader election, judged per cluster over all expected members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ...models.cluster import Cluster, Host
from ...models.control_plane import ELECTED, ConfigFile, ControlPlane, FileUse, Process
from ...models.result import Missing, Proof
from ...parsers import pflag as flags
from ..base import Hit, Outcome, cluster_check, not_applicable

FLAG_ON = "- --leader-elect=true"
NOBODY = Missing("control plane", "inventory", "absent")


@dataclass
class _Assessment:
    """Hits by code for one component, with what is missing for a clear verdict."""

    hits: dict[str, list[Hit]] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)

    def add(self, code: str, hit: Hit) -> None:
        self.hits.setdefault(code, []).append(hit)


def election(
    cluster: Cluster, code: str, components: tuple[str, ...] = ELECTED
) -> Iterator[Outcome]:
    """Return the results of one fault of leader election (KM101 to KM105)."""
    for component in components:
        if cluster.key is None:
            yield not_applicable("no Kubernetes found on these hosts", component=component)
            continue
        if code != "KM105" and _only_one(cluster, component):
            note = "a single instance in the whole cluster needs no election"
            yield not_applicable(note, component=component)
            continue
        assessment = _assess(cluster, component)
        yield Outcome(
            tuple(assessment.hits.get(code, ())), tuple(assessment.missing), component=component
        )


def silent_members(cluster: Cluster, *collectors: str) -> list[Missing]:
    """What the control plane's members owe.

    Hosts that did not answer, collectors that failed, unaudited members.
    """
    if not cluster.members and not cluster.strangers:
        unknown = [
            Missing(host.host, "host", host.status) for host in cluster.hosts if host.status != "ok"
        ]
        return unknown or [NOBODY]
    missing = [item for host in cluster.members for item in _once(host, collectors)]
    missing += [Missing(stranger.name, "inventory", "absent") for stranger in cluster.strangers]
    if not cluster.answer("nodes"):
        # Nobody says which of the silent hosts without a group are masters: any of them may be one.
        members = {host.host for host in cluster.members}
        missing += [
            Missing(host.host, "host", host.status)
            for host in cluster.hosts
            if host.status != "ok" and host.host not in members and "node" not in host.groups
        ]
    return missing


def _once(host: Host, collectors: tuple[str, ...]) -> list[Missing]:
    return list(dict.fromkeys(item for name in collectors for item in host.missing(name)))


def _only_one(cluster: Cluster, component: str) -> bool:
    running = sum(
        len(host.control_plane.of(component)) for host in cluster.hosts if host.control_plane
    )
    return len(cluster.members) + len(cluster.strangers) <= 1 and running <= 1


def _assess(cluster: Cluster, component: str) -> _Assessment:
    found = _Assessment(missing=silent_members(cluster, "manifests", "instances"))
    for host in cluster.hosts:
        if host.status == "ok" and host.control_plane is not None:
            _assess_host(found, cluster, host, host.control_plane, component)
    return found


def _assess_host(
    found: _Assessment, cluster: Cluster, host: Host, plane: ControlPlane, component: str
) -> None:
    uses = [use for use in plane.files if use.component == component]
    if any(component in path for path in plane.unread):
        found.missing.append(Missing(host.host, "manifests", "denied"))
    running = [
        item
        for item in plane.processes
        if item.component == component and item.ours is not False and not _alone(cluster, item)
    ]
    for process in running:
        if process.ours is None and process.elect is not True:
            found.missing.append(Missing(host.host, "instances", "denied"))
        elif process.elect is False and process.ours:
            _disabled_process(found, host, process, uses)
        elif process.elect is None:
            found.missing.append(
                Missing(
                    host.host, "component_http", host.statuses.get("component_http", "not_asked")
                )
            )
    for use in _loaded(uses):
        _file_flag(found, host, use, running)
    for process in running:
        if process.ours and process.elect is True:
            _config_only(found, host, process)


def _alone(cluster: Cluster, process: Process) -> bool:
    """A scheduler of its own schedulerName, or a manager of its own controllers, that nobody
    shares: it needs no election.
    """
    usual = (
        "default-scheduler" in scheduler_names(process)
        if process.component == "kube-scheduler"
        else "*" in _controllers(process)
    )
    others = (
        other
        for host in cluster.hosts
        if host.control_plane
        for other in host.control_plane.processes
        if other is not process and other.component == process.component and other.ours is not False
    )
    return (
        not usual and not process.static and not any(same_duty(process, other) for other in others)
    )


def _loaded(uses: list[FileUse]) -> list[FileUse]:
    """The manifests that count: backups beside one of the usual name are a fault of their own
    (KM109).
    """
    return [use for use in uses if use.usual] or uses


def _disabled_process(
    found: _Assessment, host: Host, process: Process, uses: list[FileUse]
) -> None:
    flag = flags.bool_flag(process.argv, "leader-elect")
    by_flag = flag is not None and flag.value is False
    config = process.config
    if (
        config is not None
        and (config.elect is False or (config.said and config.problem))
        and not (by_flag and (process.version or (0, 0)) >= (1, 23))
    ):
        # A file whose word is no boolean ends the next process that reads it: no restart before it
        # is mended.
        odd = f", where {config.problem}" if config.problem else ""
        found.add(
            "KM104",
            _config_hit(
                host, process, config, f"leader election is off in its configuration file{odd}"
            ),
        )
        return
    agreeing = next((use for use in uses if use.flag is not None and use.flag.value is False), None)
    if by_flag and agreeing is not None:
        found.add(
            "KM101",
            _hit(
                host,
                process.component,
                "leader election is off",
                _proof_file(host, agreeing),
                _proof_process(host, process),
                _proof_answer(host, process),
                remedy=f"set {agreeing.path}:{agreeing.line} to {FLAG_ON}",
            ),
        )
    elif by_flag and not uses:
        what = (
            f"unit {process.unit}"
            if process.unit
            else f"pod {process.pod_uid}"
            if process.pod_uid
            else "its starter"
        )
        found.add(
            "KM101",
            _hit(
                host,
                process.component,
                f"leader election is off (started by {what})",
                _proof_process(host, process),
                _proof_answer(host, process),
                remedy=f"set --leader-elect=true where {what} defines the command line",
            ),
        )
    else:
        place = uses[0].path if uses else config.path if config else "its files"
        found.add(
            "KM102",
            _hit(
                host,
                process.component,
                f"runs without leader election although {place} has it on",
                _proof_process(host, process),
                _proof_answer(host, process),
                remedy=(
                    "restart the component so that it loads the file: "
                    f"the kubelet has to bring {process.component} back from {place}"
                ),
            ),
        )


def _file_flag(found: _Assessment, host: Host, use: FileUse, running: list[Process]) -> None:
    flag = use.flag
    if flag is None:
        return
    remedy = f"set {use.path}:{use.line} to {FLAG_ON}"
    if flag.value is None:
        found.add(
            "KM105",
            _hit(
                host,
                use.component,
                f"{flag.raw} does not parse: {flag.problem}",
                _proof_file(host, use),
                remedy=remedy,
            ),
        )
        return
    if flag.value or any(item.elect is False and item.ours for item in running):
        return
    if any(item.elect and set(item.argv) >= set(_flags_of(use.words)) for item in running):
        # it runs with this very flag and elects all the same: a --config file decides (up to 1.22)
        return
    state = "still elects" if running else "does not run"
    proofs = [_proof_process(host, item) for item in running]
    found.add(
        "KM103",
        _hit(
            host,
            use.component,
            f"leader election is off in the manifest; the process {state}",
            _proof_file(host, use),
            *proofs,
            remedy=remedy,
        ),
    )


def _config_only(found: _Assessment, host: Host, process: Process) -> None:
    """The file says off, the process was started before it did: off after the next restart."""
    config, flag = process.config, flags.bool_flag(process.argv, "leader-elect")
    overridden = flag is not None and flag.value and (process.version or (1, 23)) >= (1, 23)
    if config is not None and config.elect is False and not overridden:
        found.add(
            "KM104",
            _config_hit(host, process, config, "leader election goes off at the next restart"),
        )


def _config_hit(host: Host, process: Process, config: ConfigFile, summary: str) -> Hit:
    return _hit(
        host,
        process.component,
        summary,
        Proof(
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


def _hit(host: Host, component: str, summary: str, *evidence: Proof | None, remedy: str) -> Hit:
    return Hit(
        summary,
        tuple(item for item in evidence if item is not None),
        remedy,
        host.host,
        host.node,
        component,
    )


def _proof_file(host: Host, use: FileUse) -> Proof:
    return Proof(
        "file",
        host.host,
        path=use.path,
        line=use.line,
        text=f"- {use.flag.raw}" if use.flag else None,
    )


def _proof_process(host: Host, process: Process) -> Proof:
    return Proof("process", host.host, pid=process.pid, argv=process.argv)


def _proof_answer(host: Host, process: Process) -> Proof | None:
    if process.source not in ("configz", "healthz"):
        return None
    return Proof("http", host.host, pid=process.pid, text=process.answer)


def _flags_of(words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith("--")]


@cluster_check(
    "KM106",
    "Instances elect on locks that do not overlap",
    severity="critical",
    applies=(
        "kube-scheduler and kube-controller-manager where the cluster has more than one instance"
        " of them"
    ),
    risk=2,
    needs=("instances", "component_http"),
)
def locks_overlap(cluster: Cluster) -> Iterator[Outcome]:
    """KM106: two instances that serve the same duty and elect, but on locks that cannot collide."""
    for component in ELECTED:
        if cluster.key is None:
            yield Outcome(applies=False, component=component)
            continue
        electing = [
            (host, process)
            for host in cluster.hosts
            if host.control_plane
            for process in host.control_plane.of(component)
            if process.elect
        ]
        hits = tuple(_apart(component, electing))
        missing = silent_members(cluster, "instances")
        missing += [
            Missing(host.host, "component_http", "error")
            for host, item in electing
            if _locks(item) is None
        ]
        yield Outcome(hits, tuple(missing), component=component)


def _apart(component: str, electing: list[tuple[Host, Process]]) -> Iterator[Hit]:
    """Those whose lock meets that of no colleague of the larger party.

    One finding for each, not for each pair.
    """
    locked = [
        (host, process, locks)
        for host, process in electing
        if (locks := _locks(process)) is not None
    ]
    party = [
        sum(1 for _host, other, theirs in locked if same_duty(process, other) and locks & theirs)
        for _host, process, locks in locked
    ]
    for index, (host, one, mine) in enumerate(locked):
        rivals = [
            number
            for number, (_host, other, theirs) in enumerate(locked)
            if same_duty(one, other)
            and not mine & theirs
            and (party[number], -number) > (party[index], -index)
        ]
        if rivals:
            rival_host, rival, theirs = locked[
                max(rivals, key=lambda number: (party[number], -number))
            ]
            yield _hit(
                host,
                component,
                f"elects on {_spell(mine)}, {rival_host.host} on {_spell(theirs)}: both can lead at"
                " once",
                _proof_process(host, one),
                _proof_process(rival_host, rival),
                remedy=(
                    "give every instance the same --leader-elect-resource-lock, -name and"
                    " -namespace"
                ),
            )


def same_duty(one: Process, other: Process) -> bool:
    """Schedulers that serve a common schedulerName.

    Controller managers that run a common controller.
    """
    if one.component == "kube-scheduler":
        return bool(scheduler_names(one) & scheduler_names(other))
    mine, theirs = _controllers(one), _controllers(other)
    return bool(mine & theirs) or ("*" in mine and "*" in theirs)


def scheduler_names(process: Process) -> frozenset[str]:
    """The schedulerNames that an instance serves."""
    flag = flags.string_flag(process.argv, "scheduler-name")
    named = process.config.scheduler_names if process.config else ()
    return frozenset(named or (flag or "default-scheduler",))


def _controllers(process: Process) -> frozenset[str]:
    listed = (flags.string_flag(process.argv, "controllers") or "*").split(",")
    return frozenset(item for item in listed if not item.startswith("-"))


def _locks(process: Process) -> frozenset[str] | None:
    """The lock objects an instance takes: what it says itself, else its flags.

    None when neither tells.
    """
    told = {**(process.config.locks if process.config else {}), **process.locks}
    kind = (
        told.get("resourcelock")
        or flags.string_flag(process.argv, "leader-elect-resource-lock")
        or _default_kind(process.version)
    )
    if kind is None:
        return None
    namespace = (
        told.get("resourcenamespace")
        or flags.string_flag(process.argv, "leader-elect-resource-namespace")
        or "kube-system"
    )
    name = (
        told.get("resourcename")
        or flags.string_flag(process.argv, "leader-elect-resource-name")
        or process.component
    )
    kinds = {
        "endpointsleases": ("endpoints", "leases"),
        "configmapsleases": ("configmaps", "leases"),
    }
    return frozenset(f"{item} {namespace}/{name}" for item in kinds.get(kind, (kind,)))


def lock_names(process: Process) -> frozenset[str]:
    """The names of the lock objects in kube-system that an instance takes, or of any where it
    does not tell.
    """
    return frozenset(
        lock.split("/", 1)[1] for lock in _locks(process) or () if " kube-system/" in lock
    )


def _default_kind(version: tuple[int, int] | None) -> str | None:
    if version is None:
        return None
    return (
        "endpoints" if version <= (1, 16) else "endpointsleases" if version <= (1, 19) else "leases"
    )


def _spell(locks: frozenset[str]) -> str:
    return " and ".join(sorted(locks))


@cluster_check(
    "KM101",
    "Leader election disabled",
    severity="critical",
    applies=(
        "kube-scheduler and kube-controller-manager where the cluster has more than one instance"
        " of them"
    ),
    risk=2,
    needs=("kubelet", "manifests", "instances", "component_http"),
)
def disabled(cluster: Cluster) -> Iterator[Outcome]:
    """Report an instance that runs without leader election, as its manifest says."""
    return election(cluster, "KM101")


@cluster_check(
    "KM102",
    "Leader election disabled in the running process only",
    severity="critical",
    applies=(
        "kube-scheduler and kube-controller-manager where the cluster has more than one instance"
        " of them"
    ),
    risk=2,
    needs=("kubelet", "manifests", "instances", "component_http"),
)
def disabled_in_process(cluster: Cluster) -> Iterator[Outcome]:
    """Report a process without leader election whose manifest enables it."""
    return election(cluster, "KM102")


@cluster_check(
    "KM103",
    "Leader election disabled in the manifest only",
    severity="critical",
    applies=(
        "kube-scheduler and kube-controller-manager where the cluster has more than one instance"
        " of them"
    ),
    risk=2,
    needs=("kubelet", "manifests", "instances", "component_http"),
)
def disabled_in_manifest(cluster: Cluster) -> Iterator[Outcome]:
    """Report a manifest that disables leader election for the next start."""
    return election(cluster, "KM103")


@cluster_check(
    "KM104",
    "Leader election disabled in the scheduler's configuration file",
    severity="critical",
    applies="kube-scheduler with --config where the cluster has more than one instance",
    risk=2,
    needs=("kubelet", "manifests", "instances", "component_http"),
)
def disabled_in_configuration(cluster: Cluster) -> Iterator[Outcome]:
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
def unparsable_flag(cluster: Cluster) -> Iterator[Outcome]:
    """Report a leader election flag that does not parse."""
    return election(cluster, "KM105")
