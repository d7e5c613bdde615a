# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why containers of control plane components ended in the last hour, by one host's evidence. Pure.

A kubelet stops one container of a running static pod only where a probe fails: a manifest that
changes makes another pod. So a stop that the runtime was asked for, before the next container of
the same pod, is a probe's, also where the kubelet logs nothing of it (--v=0). A kubelet of another
release may stop it too, because it reads another definition; it logs that from --v=2 on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.component_end import ComponentEnd, ComponentLog
from ..evidence.answers.node.component_restart import (
    ComponentContainer,
    ComponentRestart,
    JournalLines,
)
from ..evidence.answers.node.kubelet import Kubelet
from ..evidence.answers.node.system import System
from ..parsers import component_log, restart_journal
from ..parsers.restart_journal import KubeletEvent, OomKill, RuntimeEvent
from . import control_plane
from .control_plane import ControlPlane, FileUse

WINDOW_SECONDS = 3600
# What a boot starts waits for what is not up yet, and ends a few times; so does what a manifest of
# these minutes starts.
BOOT_SECONDS = FRESH_SECONDS = 600
# A component that needs another one may notice its end so much later: a lock is lost after 10 to
# 15 s, and a liveness probe of kubeadm fails 8 times in 80 s.
FOLLOW_SECONDS = 300
MANIFEST_SECONDS = 180  # from the change of a manifest to the start of its pod
NEAR_SECONDS = 10  # between a line of the kernel and the end that it tells
PROBE_SECONDS = 600  # before a stop, in which its probe failed
# A kubelet of another release stops what it reads otherwise at once, a probe fails a few times.
KUBELET_SECONDS = 60

EXIT, LOCK, PROBE, OOM, KILLED = "exit", "lock", "probe", "oom", "killed"
REMOVED = "removed"
TERMINATED, MANIFEST, DEFINITION, REBOOT, RUNTIME, SANDBOX, UNKNOWN = (
    "terminated",
    "manifest",
    "definition",
    "reboot",
    "runtime",
    "sandbox",
    "unknown",
)
# Ends that a person or a program brought about on purpose.
INTENDED = frozenset((TERMINATED, MANIFEST, DEFINITION, REBOOT))
# Ends that come back as long as nothing is changed.
LASTING = frozenset((EXIT, LOCK, PROBE, OOM, KILLED, SANDBOX, REMOVED))
_UNTIL_STARTED = frozenset((EXIT, LOCK))
# What the end of another component, or a boot, brings about.
_FOLLOWING = frozenset((EXIT, LOCK, PROBE, UNKNOWN))
_BY_BOOT = _FOLLOWING | {SANDBOX, RUNTIME}
SIGINT, SIGKILL, SIGTERM = 130, 137, 143  # exit codes
# The first process of a container does not end by a signal that it does not handle: Go exits
# with this code then, without a message. After a panic, which has the same code, its log says so.
GO_SIGNAL = 2
HANDLE_SIGTERM = frozenset(("etcd", "kube-apiserver"))  # in each release: they exit with 0
COMM = 15  # characters of a process's name that the kernel keeps
_CONTAINER_ID = re.compile(r"[0-9a-f]{64}")
LOST = 255  # of a container that the runtime lost, with the reason Unknown
_NEEDS = {
    "kube-apiserver": ("etcd",),
    "kube-controller-manager": ("kube-apiserver", "etcd"),
    "kube-scheduler": ("kube-apiserver", "etcd"),
    "cloud-controller-manager": ("kube-apiserver", "etcd"),
}


@dataclass(frozen=True)
class End:
    """One end of a component's container.

    kind: why it ended
    code: its exit code, None where the runtime does not tell it
    probe, output: which probe failed (liveness, startup or empty), and its last answer
    of_group: whether a memory limit of its own was reached, None where that is not told
    limit: that limit in bytes
    by_name: whether only the name of the process tells that it was killed
    proof: (what tells it, the line)
    unread: what could not be read, for an end whose reason is not known
    excused: the end of another component, the boot or the new manifest that brought it about
    """

    component: str
    at: float
    kind: str
    code: int | None = None
    attempt: int = 0
    lived: float | None = None
    probe: str = ""
    output: str = ""
    of_group: bool | None = None
    limit: int | None = None
    by_name: bool = False
    proof: tuple[str, str] | None = None
    unread: tuple[str, ...] = ()
    excused: str = ""

    @property
    def is_intended(self) -> bool:
        """Return whether a person, a program or a boot brought it about on purpose."""
        return self.kind in INTENDED or bool(self.excused)


@dataclass(frozen=True)
class Restarts:
    """The ends of one component within the last hour, the oldest first.

    back_off: how long the kubelet waited at most after the last unintended end, in seconds
    """

    ends: tuple[End, ...] = ()
    back_off: float = 0.0

    @property
    def unintended(self) -> tuple[End, ...]:
        """Return the ends that were not brought about on purpose, since the last new manifest."""
        changed = max((end.at for end in self.ends if end.kind == MANIFEST), default=0.0)
        return tuple(end for end in self.ends if not end.is_intended and end.at > changed)

    @property
    def lasting(self) -> tuple[End, ...]:
        """Return the ends of which it is known that they may come back."""
        return tuple(end for end in self.unintended if end.kind in LASTING)


@dataclass(frozen=True)
class _Container:
    """What is known of one container of a component."""

    id: str
    created: float
    attempt: int = 0
    pod_uid: str = ""
    sandbox: str = ""
    running: bool = False
    finished: float | None = None
    exit_code: int | None = None
    reason: str = ""
    memory_limit: int | None = None
    stop: RuntimeEvent | None = None
    oom: RuntimeEvent | None = None


@dataclass(frozen=True)
class _Subject:
    """One component of a host with all that was read about it."""

    component: str
    use: FileUse
    log: ComponentLog
    answer: ComponentRestart
    clock: float
    booted: float
    kubelet_started: float = 0.0
    runtime: list[RuntimeEvent] = field(default_factory=list)
    kubelet: list[KubeletEvent] = field(default_factory=list)
    kills: list[OomKill] = field(default_factory=list)


def of_host(document: Mapping[str, Any], plane: ControlPlane) -> dict[str, Restarts]:
    """Return the ends of each component that a manifest of this host runs, {} if not read."""
    if control_plane.status(document, "component_restart") != "ok":
        return {}
    answer = contract.answer(document, ComponentRestart)
    logs = {log.component: log for log in contract.answer(document, ComponentEnd).components}
    events = [restart_journal.runtime_event(line) for line in answer.runtime.lines]
    kills = restart_journal.oom_kills(list(answer.kernel.lines))
    subjects: dict[str, _Subject] = {}
    for use in plane.files:
        subject = _Subject(
            use.component,
            use,
            logs.get(use.component, ComponentLog()),
            answer,
            plane.clock,
            booted(document),
            _kubelet_started(document),
            [event for event in events if event is not None],
            _kubelet_events(answer, use),
            kills,
        )
        subjects.setdefault(use.component, subject)
    restarts = {name: _restarts(subject) for name, subject in subjects.items()}
    excused = {
        name: Restarts(tuple(_excuse(end, subjects[name], restarts) for end in before.ends))
        for name, before in restarts.items()
    }
    return {name: _with_back_off(subjects[name], before) for name, before in excused.items()}


def booted(document: Mapping[str, Any]) -> float:
    """Return when the machine booted, by its own clock, or 0 if that is not known."""
    system = contract.answer(document, System)
    if system.clock is None or system.uptime_s is None:
        return 0.0
    return system.clock - system.uptime_s


def _kubelet_started(document: Mapping[str, Any]) -> float:
    """Return when the kubelet that runs was started, or 0 if that is not known."""
    process = contract.answer(document, Kubelet).process
    if process is None:
        return 0.0
    return process.started_at or 0.0


def _kubelet_events(answer: ComponentRestart, use: FileUse) -> list[KubeletEvent]:
    events = [
        restart_journal.kubelet_event(line, use.component, use.pod) for line in answer.kubelet.lines
    ]
    return [event for event in events if event is not None]


def _restarts(subject: _Subject) -> Restarts:
    recent = subject.clock - WINDOW_SECONDS
    return Restarts(tuple(end for end in _ends(subject) if end.at >= recent))


def _with_back_off(subject: _Subject, restarts: Restarts) -> Restarts:
    """Return the restarts with what the kubelet waited after the last unintended end.

    An earlier back-off is over: the kubelet forgets it after ten minutes without an end.
    """
    if not restarts.unintended:
        return restarts
    last = restarts.unintended[-1].at
    following = min((end.at for end in restarts.ends if end.at > last), default=subject.clock)
    waits = [
        event.back_off
        for event in subject.kubelet
        if last - NEAR_SECONDS <= event.at <= following + NEAR_SECONDS
    ]
    return replace(restarts, back_off=max(waits, default=0.0))


def _ends(subject: _Subject) -> list[End]:
    """Return the ends that the containers show, else the one that the log shows."""
    containers = _containers(subject)
    if not containers:
        return _by_log(subject)
    pairs = list(zip(containers, [*containers[1:], None], strict=True))
    ends = [
        _end(subject, container, following)
        for container, following in pairs
        if not container.running
    ]
    ends += [
        End(subject.component, following.created, MANIFEST)
        for container, following in pairs
        if following is not None and _of_another_pod(container, following)
    ]
    ends += [
        _unseen(subject, following)
        for container, following in pairs
        if following is not None and _is_gap(container, following)
    ]
    return sorted([*_before(subject, containers[0]), *ends], key=lambda end: end.at)


def _is_gap(container: _Container, following: _Container) -> bool:
    """Tell whether starts of one pod are missing between two that are known."""
    is_one_pod = not _of_another_pod(container, following)
    return is_one_pod and following.attempt - container.attempt > 1


def _unseen(subject: _Subject, following: _Container) -> End:
    """Return the end of the container before this one, of which nothing is known."""
    end = End(subject.component, following.created, UNKNOWN, None, following.attempt - 1)
    return replace(end, unread=("containers",))


def _containers(subject: _Subject) -> list[_Container]:
    """Return the component's containers that runtime and journal know, the oldest first."""
    listed = [row for row in subject.answer.containers or () if row.component == subject.component]
    containers = {row.id: _listed(row) for row in listed}
    pods = {row.sandbox: row.pod_uid for row in listed}
    for event in subject.runtime:
        if event.kind == restart_journal.MADE and _is_ours(event, subject, listed):
            pod_uid = pods.get(event.sandbox, "")
            container = _Container(event.id, event.at, event.attempt, pod_uid, event.sandbox)
            containers.setdefault(event.id, container)
    for event in subject.runtime:
        if event.id in containers:
            containers[event.id] = _with(containers[event.id], event)
    return _numbered(sorted(containers.values(), key=lambda container: container.created))


def _numbered(containers: list[_Container]) -> list[_Container]:
    """Return the containers with the numbers of their starts, which CRI-O does not log.

    A pod counts its starts from 0 on, so that what comes before another number is of the same pod.
    """
    numbered: list[_Container] = []
    for container in reversed(containers):
        numbered.append(_numbered_before(container, next(iter(numbered[-1:]), None)))
    return numbered[::-1]


def _numbered_before(container: _Container, following: _Container | None) -> _Container:
    if container.attempt >= 0 or following is None or following.attempt <= 0:
        return container
    pod_uid = container.pod_uid or following.pod_uid
    return replace(container, attempt=following.attempt - 1, pod_uid=pod_uid)


def _with(container: _Container, event: RuntimeEvent) -> _Container:
    """Return the container with what the runtime logs of its end.

    What the runtime itself still has of it comes first.
    """
    if event.kind == restart_journal.STOP:
        return replace(container, stop=event)
    if event.kind == restart_journal.OOM:
        return replace(container, oom=event)
    if event.kind == restart_journal.ENDED and container.finished is None:
        return replace(container, finished=event.at, exit_code=event.code)
    return container


def _is_ours(event: RuntimeEvent, subject: _Subject, listed: list[ComponentContainer]) -> bool:
    """Tell whether a container that was made is one of the static pod.

    Pods of users have containers called etcd too.
    """
    if event.component != subject.component:
        return False
    if event.pod:
        return event.pod.startswith(f"{subject.use.pod}-")
    return event.sandbox in {row.sandbox for row in listed}


def _listed(row: ComponentContainer) -> _Container:
    return _Container(
        row.id,
        row.created or row.started or 0.0,
        row.attempt,
        row.pod_uid,
        row.sandbox,
        row.state in ("running", "created"),
        row.finished,
        row.exit_code,
        row.reason or "",
        row.memory_limit,
    )


def _end(subject: _Subject, container: _Container, following: _Container | None) -> End:
    """Return the end of a container, with its reason."""
    at = _ended_at(subject, container, following)
    end = End(
        subject.component,
        at,
        UNKNOWN,
        container.exit_code,
        container.attempt,
        max(0.0, at - container.created),
        limit=container.memory_limit,
    )
    for judge in (
        _rebooted,
        _killed_by_oom,
        _with_sandbox,
        _stopped,
        _removed,
        _with_runtime,
        _signalled,
        _by_itself,
    ):
        judged = judge(subject, container, following, end)
        if judged is not None:
            return judged
    unread = _unread(subject, end, ("runtime", "kernel"))
    if end.code is None:
        unread += ("containers",)
    return replace(end, unread=unread)


def _ended_at(subject: _Subject, container: _Container, following: _Container | None) -> float:
    """Return when a container ended, as far as that is known."""
    if container.finished is not None:
        return container.finished
    if container.stop is not None:
        return container.stop.at
    if following is not None:
        return following.created
    return subject.clock


def _rebooted(
    subject: _Subject, container: _Container, following: _Container | None, end: End
) -> End | None:
    """Return the end of the last container before a boot: the machine went down with it."""
    if not subject.booted or container.created >= subject.booted:
        return None
    if following is not None and following.created < subject.booted:
        return None
    return replace(end, kind=REBOOT)


def _killed_by_oom(
    subject: _Subject, container: _Container, following: _Container | None, end: End
) -> End | None:
    by_runtime = _oom_by_runtime(container)
    by_group = [kill for kill in subject.kills if _is_of_group(kill, container, end)]
    by_name = [kill for kill in subject.kills if not kill.within and _is_near(kill, end)]
    is_guess = not by_group and by_runtime is None
    if is_guess and end.code not in (None, SIGKILL):
        return None
    kill = next(reversed(by_group or by_name), None)
    if kill is not None:
        proof = ("kernel", kill.text)
        return replace(end, kind=OOM, of_group=kill.of_group, by_name=is_guess, proof=proof)
    if by_runtime is None:
        return None
    return replace(end, kind=OOM, proof=by_runtime)


def _oom_by_runtime(container: _Container) -> tuple[str, str] | None:
    """Return what of the runtime tells that the OOM killer ended a container, or None."""
    if container.oom is not None:
        return ("runtime", container.oom.text)
    if container.reason == "OOMKilled":
        return ("runtime", "OOMKilled")
    return None


def _is_of_group(kill: OomKill, container: _Container, end: End) -> bool:
    """Tell whether the control group of a victim is that of the container, or of its pod."""
    if container.id in kill.within:
        return True
    if not container.pod_uid or _CONTAINER_ID.search(kill.within):
        return False
    return container.pod_uid in kill.within and _is_near(kill, end)


def _is_near(kill: OomKill, end: End) -> bool:
    """Tell whether a victim has the component's name, and was killed at that time."""
    is_name = kill.name == end.component[:COMM]
    return is_name and abs(kill.at - end.at) < NEAR_SECONDS


def _with_sandbox(
    subject: _Subject, container: _Container, following: _Container | None, end: End
) -> End | None:
    """Return the end of a container whose pod got another sandbox."""
    if following is None or not (container.pod_uid and container.sandbox):
        return None
    if container.pod_uid != following.pod_uid or container.sandbox == following.sandbox:
        return None
    # A manifest with the bytes of an earlier one makes a pod with the UID of that one.
    use = subject.use
    is_written = container.created < use.mtime <= following.created
    # A manifest that was moved away and back keeps the time of its last write.
    if is_written or 0 <= following.created - use.ctime < MANIFEST_SECONDS:
        return replace(end, kind=MANIFEST)
    return replace(end, kind=SANDBOX)


def _stopped(
    subject: _Subject, container: _Container, following: _Container | None, end: End
) -> End | None:
    """Return the end of a container that the runtime was asked to stop."""
    stop = container.stop
    if stop is None or not -1 <= end.at - stop.at <= stop.timeout + 120:
        return None
    proof = ("runtime", stop.text)
    if stop.timeout == 0:  # a kubelet gives each container a while
        return replace(end, kind=TERMINATED, proof=proof)
    if _is_replaced(subject, container, following):
        return replace(end, kind=MANIFEST, at=stop.at, proof=proof)
    return _stopped_by_kubelet(subject, stop, _reasons(subject, container, stop), end)


def _stopped_by_kubelet(
    subject: _Subject, stop: RuntimeEvent, reasons: list[KubeletEvent], end: End
) -> End:
    """Return the end of a container that the kubelet stopped, and whose pod stayed."""
    proof = ("runtime", stop.text)
    if not reasons and 0 <= stop.at - subject.kubelet_started < KUBELET_SECONDS:
        return replace(end, unread=("kubelet",), proof=proof)
    if not reasons:
        return replace(end, kind=PROBE, proof=proof)
    last = reasons[-1]
    proof = ("kubelet", last.text)
    if last.kind == restart_journal.DEFINITION:
        return replace(end, kind=DEFINITION, proof=proof)
    outputs = [event.output for event in reasons if event.kind == last.kind and event.output]
    output = next(reversed(outputs), "")
    return replace(end, kind=PROBE, probe=last.kind, output=output, proof=proof)


def _reasons(subject: _Subject, container: _Container, stop: RuntimeEvent) -> list[KubeletEvent]:
    """Return what the kubelet logs of this container, and not of the one before, before a stop."""
    first = max(container.created, stop.at - PROBE_SECONDS)
    return [event for event in subject.kubelet if event.kind and first <= event.at <= stop.at + 1]


def _removed(
    subject: _Subject, container: _Container, following: _Container | None, end: End
) -> End | None:
    """Return the end of an etcd whose member was removed: it exits as if that were intended."""
    lines = _log_lines(subject, container.attempt)
    if subject.component != "etcd" or end.code not in (None, 0, 1):
        return None
    if end.code == 0 and subject.log.restart is None:
        return replace(end, unread=("log",))
    if not any(map(component_log.says_removed, lines)):
        return None
    return replace(end, kind=REMOVED)


def _of_another_pod(container: _Container, following: _Container) -> bool:
    """Tell whether a container is of another pod than the one before it: by UID, or its first."""
    if container.pod_uid and following.pod_uid:
        return container.pod_uid != following.pod_uid
    return following.attempt == 0


def _is_replaced(subject: _Subject, container: _Container, following: _Container | None) -> bool:
    """Tell whether the whole pod ended with the container: its manifest changed, or was gone."""
    if following is not None and container.pod_uid and following.pod_uid:
        return _of_another_pod(container, following)
    stop = container.stop
    times = (subject.use.mtime, subject.use.ctime)
    return stop is not None and any(abs(stop.at - time) < MANIFEST_SECONDS for time in times)


def _with_runtime(
    subject: _Subject, container: _Container, following: _Container | None, end: End
) -> End | None:
    """Return the end of a container whose runtime lost it when it was started again."""
    started = subject.answer.runtime_started
    if started is None or not -NEAR_SECONDS < started - end.at < 60:
        return None
    if end.code in (None, LOST):
        return replace(end, kind=RUNTIME)
    return None


def _signalled(
    subject: _Subject, container: _Container, following: _Container | None, end: End
) -> End | None:
    """Return the end of a container that a signal ended which the kubelet did not send.

    The components exit with 0 at SIGTERM, and at nothing else; the controller manager does not
    handle it.
    """
    quiet = end.code == GO_SIGNAL and _says_nothing(_log_lines(subject, container.attempt))
    quiet = quiet and subject.component not in HANDLE_SIGTERM
    if not quiet and end.code not in (0, SIGINT, SIGKILL, SIGTERM):
        return None
    kind, tellers = TERMINATED, ["runtime"]
    if end.code == SIGKILL:
        kind, tellers = KILLED, ["runtime", "kernel"]
    unread = _unread(subject, end, tellers)
    if unread:
        return replace(end, unread=unread)
    return replace(end, kind=kind)


def _says_nothing(lines: tuple[str, ...]) -> bool:
    """Tell whether a log is there, and has no line about an exit."""
    return bool(lines) and not any(
        component_log.says_exit(line) or component_log.says_lock_lost(line) for line in lines
    )


def _by_itself(
    subject: _Subject, container: _Container, following: _Container | None, end: End
) -> End | None:
    """Return the end of a program that exited, as its exit code or its log tells."""
    lines = _log_lines(subject, container.attempt)
    if end.code == GO_SIGNAL and not lines:
        return replace(end, unread=("log",))
    if end.code == GO_SIGNAL and _says_nothing(lines):
        return None
    if end.code is None and not any(map(component_log.says_exit, lines)):
        return None
    if end.code == LOST and container.reason == "Unknown":
        return None
    if any(map(component_log.says_lock_lost, lines)):
        return replace(end, kind=LOCK)
    return replace(end, kind=EXIT)


def _log_lines(subject: _Subject, attempt: int) -> tuple[str, ...]:
    """Return the last lines of the log of a start, none where another start's were read."""
    if subject.log.restart != attempt:
        return ()
    return subject.log.lines


def _unread(subject: _Subject, end: End, tellers: Iterable[str]) -> tuple[str, ...]:
    """Return which of the journals that would tell of the end were not read."""
    journals = {"runtime": subject.answer.runtime, "kernel": subject.answer.kernel}
    missing = [name for name in tellers if not _covers(journals[name], end.at)]
    starts = [event for event in subject.runtime if event.kind == restart_journal.MADE]
    if not starts and "runtime" not in missing:
        missing.append("runtime")  # it logs no start, so that it logs no stop either
    return tuple(missing)


def _covers(journal: JournalLines, at: float) -> bool:
    return journal.error is None and (journal.oldest is None or journal.oldest < at - 120)


def _before(subject: _Subject, first: _Container) -> list[End]:
    """Return the end of what ran before the first container that is known."""
    if subject.booted and 0 <= first.created - subject.booted < BOOT_SECONDS:
        return [End(subject.component, first.created, REBOOT)]
    if first.attempt == 0:
        # The pod is new: its manifest was changed, or moved out and in again.
        return [End(subject.component, first.created, MANIFEST)]
    return [_unseen(subject, first)]


def _by_log(subject: _Subject) -> list[End]:
    """Return the end that the log of the former start shows, where no container is known."""
    log = subject.log
    if log.last is None or log.restart is None:
        return []
    lived = None
    if log.first is not None:
        lived = log.last - log.first
    end = End(subject.component, log.last, UNKNOWN, None, log.restart, lived)
    if log.last < subject.booted:
        return [replace(end, kind=REBOOT)]
    if subject.component == "etcd" and any(map(component_log.says_removed, log.lines)):
        return [replace(end, kind=REMOVED)]
    if any(map(component_log.says_lock_lost, log.lines)):
        return [replace(end, kind=LOCK)]
    if any(map(component_log.says_exit, log.lines)):
        return [replace(end, kind=EXIT)]
    return [replace(end, unread=(subject.answer.unread or "containers",))]


def _excuse(end: End, subject: _Subject, restarts: Mapping[str, Restarts]) -> End:
    """Return the end with what brought it about, where that was done on purpose."""
    if end.is_intended:
        return end
    for other in _NEEDS.get(end.component, ()):
        if end.kind in _FOLLOWING and _follows(end, restarts.get(other, Restarts())):
            return replace(end, excused=other)
    if end.kind in _BY_BOOT and 0 <= end.at - subject.booted < BOOT_SECONDS:
        return replace(end, excused="boot")
    if end.kind in _UNTIL_STARTED and _is_fresh(end, subject, restarts[end.component]):
        return replace(end, excused="manifest")
    return end


def _is_fresh(end: End, subject: _Subject, restarts: Restarts) -> bool:
    """Tell whether a component ended shortly after its manifest came or changed."""
    starts = [start for start in (subject.log.begun, subject.use.changed) if start]
    starts += [other.at for other in restarts.ends if other.kind == MANIFEST]
    return any(0 <= end.at - start < FRESH_SECONDS for start in starts)


def _follows(end: End, other: Restarts) -> bool:
    """Tell whether another component was ended on purpose shortly before."""
    return any(
        cause.kind in INTENDED and -60 < end.at - cause.at < FOLLOW_SECONDS for cause in other.ends
    )
