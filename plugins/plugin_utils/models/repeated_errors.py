# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of the errors that a component repeats keep it from its work. Pure.

A healthy component logs errors too: of pods and workloads of users, of a client that went away, of
a lock that another one took. What counts is an error about the component's own work that goes on,
and of which the answer is known. Another one is quoted where it is said all the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.repeated_errors import (
    ComponentErrors,
    RepeatedError,
    RepeatedErrors,
)
from ..evidence.document import one_line
from ..parsers import component_log, error_answer
from ..parsers.error_answer import Answer
from .cluster import moment

CONTROL_PLANE = (
    "kube-scheduler",
    "kube-controller-manager",
    "kube-apiserver",
    "cloud-controller-manager",
    "etcd",
)
RUNTIMES = ("containerd", "crio", "dockerd", "cri-dockerd")
# Between two tries components wait at most: kubelet 7 s for its lease and 10 s for the Node's
# status, leader election 2 s, a reflector 30 s (60 s with jitter), a member of etcd 5 s. So what
# goes on was said within two minutes. The restart of an API server, or of a whole control plane
# one by one, is over within four.
LAST_SECONDS, MINUTES, COUNT = 120, 4, 5
LONGEST, QUOTED = 2048, 120  # characters of a line that are read, and of its ends in a summary
# An error that is said often has ended where it was not said for three of its intervals.
QUIET_SECONDS, INTERVALS = 45, 3
# An error without a known meaning is quoted where it is said nearly each minute.
QUOTED_MINUTES, QUOTED_COUNT = 8, 20
OBJECTS = 3  # pods or images of which the same error is the machine's, and not the workload's
MACHINE = frozenset(("machine", "disk", "resources", "cgroup", "kernel", "runtime"))
NETWORK = frozenset(("name", "proxy", "refused", "unreachable", "timeout", "certificate"))
# What passes by itself, or is an answer about one object.
PASSING = frozenset(("conflict", "invalid", "denied", "slow", "busy"))

_CLIENT = (
    r"[Ff]ailed to (?:list|watch) \*|\bFailed to watch\b|[Ee]rror retrieving (?:resource|lease)"
    r" lock|[Ff]ailed to (?:update|renew|acquire|retrieve) (?:the )?(?:lock|lease)"
    r"|error initially creating leader election record|Server rejected event|Unable to write event"
)
# What each component's own work is. Without these texts a line may be about an object of users.
_OWN: Mapping[str, re.Pattern[str]] = {
    component: re.compile(f"{_CLIENT}|{texts}")
    for component, texts in {
        "kubelet": (
            r"Unable to register node|[Uu]pdat(?:e|ing) node status|[Ff]ailed to (?:ensure|get)"
            r" (?:node )?lease|failed to ensure node lease|[Ee]rror getting (?:the current )?node"
            r"|node \"[^\"]*\" not found|[Ff]ailed creating a mirror pod|[Ss]kipping pod"
            r" synchronization|[Cc]ontainer runtime (?:network|is down|status|sanity)|PLEG"
            r"|[Gg]arbage collection failed|(?:ListPodSandbox|ListContainers|ListImages|Status"
            r"|Version|ImageFsInfo) (?:with filter )?from (?:runtime|image) service failed"
            r"|Failed to make webhook|[Ff]ailed while requesting a signed certificate"
            r"|[Cc]annot create certificate signing request|Failed to delete cgroup"
        ),
        # What a controller cannot create for a workload is of KM221 to KM223.
        "kube-controller-manager": r"unable to sync caches|Error building controller context",
        "cloud-controller-manager": r"unable to sync caches",
        "kube-scheduler": r"unable to sync caches",
        "kube-apiserver": (
            r"createTransport failed|failing closed|Failed to make webhook|etcdserver: |unable to"
            r" sync kubernetes service|transport: (?:Error while dialing|authentication handshake)"
        ),
        "etcd": (
            r"prober detected|health check for peer|TCP streaming connection|peer became inactive"
            r"|failed to reach the peer|raft message|cluster ID mismatch|request sent was ignored"
            r"|failed to (?:publish|save|write|open|purge|sync)|etcdserver: (?:no leader|mvcc"
            r"|no space)|rafthttp"
        ),
    }.items()
}
# About an object of users, or what healthy components say: never a finding, whatever the answer.
_OTHERS = re.compile(
    # kubelet: configuration of one pod, whose Secret or ConfigMap it may only read while it has it
    r"object-\\*\"|no relationship found between node"
    # cAdvisor and the eviction manager, of cgroups that just went
    r"|system container stats|cAdvisor|cadvisor|partial failures|Unable to read config path"
    r"|failed to get summary stats|could not find container|NotFound desc = an error occurred when"
    r"|[Pp]robe (?:failed|errored)|ExecSync|CrashLoopBackOff|ErrImagePull|ImagePullBackOff"
    # API server: a client or a watch of one
    r"|required revision has been compacted|Unable to authenticate the request|TLS handshake error"
    r"|timeout or abort|Timeout or abort|http: Handler timeout|apiserver was unable to write"
    r"|context canceled|operation was canceled|watch chan error|invalid bearer token"
    # aggregated APIs that do not answer, of which clients that read all APIs tell
    r"|metrics\.k8s\.io|failing or missing response|loading OpenAPI spec|PartialObjectMetadata"
    r"|unable to retrieve the complete list|failed to discover (?:some )?(?:groups|resources)"
    # controllers: a conflict, a namespace that goes, a load balancer without metrics
    r"|the object has been modified|is being terminated|horizontal|FailedGet"
    # etcd: slow requests, and clients and health checks that go away
    r"|took too long|slow fdatasync|heartbeat on time|overloaded|rejected connection"
    r"|rejected stream|request stats|ignoring common name|failed to check for"
    # containerd at its start, and ends of containers
    r"|failed to load cni during init|failed to reload cni|stream (?:copy|terminated)|ttrpc: closed"
    r"|collecting metrics for|failed to handle container TaskExit|not found: not found"
    r"|[Ff]ailed to (?:get|collect) (?:container|sandbox|pod) (?:stats|status)|StopPodSandbox"
    r"|RemoveContainer|ContainerStatus"
)
# About one object, where nothing else is known of it.
_OF_OBJECT = re.compile(r"\b[Ss]ync(?:ing)?\b|exceeded quota|[Vv]olume|PersistentVolume|[Ii]mage")
_OF_RUNTIME = re.compile(r"rpc error: code = ")


@dataclass(frozen=True)
class Repeated:
    """An error that a component repeats.

    answer: what it means, None where that is not known
    is_obstacle: whether it keeps the component from its work
    """

    row: ComponentErrors
    entry: RepeatedError
    answer: Answer | None
    is_obstacle: bool

    @property
    def message(self) -> str:
        """Return the text of the line, without what its logger adds; its end has the cause."""
        text = one_line(component_log.text(self.entry.line), LONGEST)
        if len(text) <= 2 * QUOTED:
            return text
        return f"{text[:QUOTED]} … {text[-QUOTED:]}"

    @property
    def last(self) -> datetime | None:
        """Return when it was said last, by the node's clock."""
        return moment(self.entry.last)


def rows(document: Mapping[str, Any]) -> tuple[float, tuple[ComponentErrors, ...]]:
    """Return when the logs were read, and what each component of a host repeats."""
    answer = contract.answer(document, RepeatedErrors)
    return answer.read_at or 0.0, answer.components


def worst(row: ComponentErrors, read_at: float) -> Repeated | None:
    """Return the error of a component that a finding is about, or None."""
    candidates = current(row, read_at)
    obstacles = [item for item in candidates if item.is_obstacle]
    if obstacles:
        return max(obstacles, key=_weight)
    return next(_unclear(candidates, read_at), None)


def current(row: ComponentErrors, read_at: float) -> list[Repeated]:
    """Return the errors of a component that go on."""
    return [_read(row, entry) for entry in row.entries if _goes_on(entry, read_at, MINUTES, COUNT)]


def _weight(item: Repeated) -> tuple[bool, int]:
    """Return what an error weighs: that an object is not there follows from another one."""
    is_cause = item.answer is not None and item.answer.kind != "not_found"
    return is_cause, item.entry.count


def is_unread(row: ComponentErrors, read_at: float) -> bool:
    """Tell whether too little of a component's log was read to tell what it repeats."""
    if row.error:
        return True
    return row.cut and row.since is not None and read_at - row.since < 60 * (MINUTES + 1)


def _goes_on(entry: RepeatedError, read_at: float, minutes: int, count: int) -> bool:
    if entry.minutes < minutes or entry.count < count or entry.last is None:
        return False
    first = entry.last
    if entry.first is not None:
        first = entry.first
    interval = (entry.last - first) / entry.count
    return read_at - entry.last <= min(LAST_SECONDS, max(QUIET_SECONDS, INTERVALS * interval))


def _read(row: ComponentErrors, entry: RepeatedError) -> Repeated:
    entry = replace(entry, line=entry.line[:LONGEST])
    table = "containerd"
    if row.component not in RUNTIMES:
        table = row.component
    answer = error_answer.read(entry.line, table)
    is_obstacle = False
    if answer is not None and not _OTHERS.search(entry.line):
        is_obstacle = _is_obstacle(row.component, entry, answer)
    return Repeated(row, entry, answer, is_obstacle)


def _is_obstacle(component: str, entry: RepeatedError, answer: Answer) -> bool:
    if component in RUNTIMES:
        return _is_of_runtime(entry, answer)
    work = _OWN.get(component)
    if work is not None and work.search(component_log.text(entry.line)):
        return answer.kind not in PASSING
    if component != "kubelet" or _OF_RUNTIME.search(entry.line):
        return False
    return answer.kind in MACHINE and _is_of_many(entry)


def _is_of_runtime(entry: RepeatedError, answer: Answer) -> bool:
    """Tell whether an error is the runtime's, and not that of one image or one pod."""
    if answer.kind in MACHINE:
        return entry.pods == 0 or _is_of_many(entry)
    return answer.kind in NETWORK and entry.pods >= OBJECTS


def _is_of_many(entry: RepeatedError) -> bool:
    return entry.pods >= OBJECTS


def _unclear(candidates: list[Repeated], read_at: float) -> Iterator[Repeated]:
    """Yield what is said all the time and has no known meaning, the most frequent first."""
    for item in sorted(candidates, key=lambda item: -item.entry.count):
        entry = item.entry
        if not _goes_on(entry, read_at, QUOTED_MINUTES, QUOTED_COUNT):
            continue
        is_of_object = entry.pods > 0 or _OF_OBJECT.search(entry.line)
        if item.answer is None and not is_of_object and not _OTHERS.search(entry.line):
            yield item
