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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.repeated_errors import (
    ComponentErrors,
    RepeatedError,
    RepeatedErrors,
)
from ..evidence.document import ends, one_line
from ..parsers import (
    component_log,
    error_answer,
    error_origin,
    known_message,
    origin_wording,
    pod_start_message,
)
from ..parsers.error_answer import Answer
from ..parsers.known_message import Known
from .moments import moment
from .releases import UNKNOWN, Releases

CONTROL_PLANE = (
    "kube-scheduler",
    "kube-controller-manager",
    "kube-apiserver",
    "cloud-controller-manager",
    "etcd",
)
RUNTIMES = ("containerd", "crio", "dockerd", "cri-dockerd")
# Programs of many components: of what they log, only what has a known cause counts.
SUPERVISORS = ("k3s", "rke2", "k0s", "kubelite")
# Kinds of answers that keep a component from its work, whatever it was about: a slow webhook any
# component, a program of the host that fails these.
OBSTACLES = dict.fromkeys(SUPERVISORS, (error_answer.SLOW_WEBHOOK, error_answer.PROGRAM))
_WITH_SANDBOXES = ("kubelet", *SUPERVISORS, *RUNTIMES)
# Between two tries components wait at most: kubelet 7 s for its lease and 10 s for the Node's
# status, leader election 2 s, a reflector 30 s (60 s with jitter), a member of etcd 5 s. So what
# goes on was said within two minutes. The restart of an API server, or of a whole control plane
# one by one, is over within four.
LAST_SECONDS, MINUTES, COUNT = 120, 4, 5
LONGEST, QUOTED = 2048, 243  # characters of a line that are read, and of its ends in a summary
# An error that is said often has ended where it was not said for three of its intervals.
QUIET_SECONDS, INTERVALS = 45, 3
# A kubelet waits 0.5 s before it tries an operation again, then twice as long each time, at most
# 2m2s, and says how long it waits. So what waits that long has failed for two minutes already.
_LONGEST_WAIT = re.compile(r"\(durationBeforeRetry 2m")
WAIT_SECONDS, TRIES, WAITED_SECONDS = 122, 3, 240
# An error without a known meaning is quoted where it is said nearly each minute.
QUOTED_MINUTES, QUOTED_COUNT = 8, 20
# What the collector reads of a log, from when on after a start, and how much of it is enough.
WINDOW, SETTLE, ENOUGH_SECONDS = 600, 120, 480
OBJECTS = 3  # workloads or images of which the same error is the machine's, and not theirs
MACHINE = frozenset(("machine", "disk", "resources", "cgroup", "kernel", "runtime"))
NETWORK = frozenset(("name", "proxy", "refused", "unreachable", "timeout", "certificate"))
# What only an API server answers, so that requests reach it.
_ANSWERS = frozenset(("unauthorized", "forbidden", "denied", "webhook"))
# What an API server calls a Node that is not there; a kubelet's own cache says node, not nodes.
_ABSENT_NODE = re.compile(r'\bnodes \\*"[^"]*" not found')
# What a busy server answers now and then, too. A connection that is not made is another thing.
_BUSY = frozenset(("timeout", "no_leader"))
_UNREACHED = re.compile(r"\bdial (?:tcp|udp|unix)\b|connection timed out|etcdserver: no leader")
# What passes by itself, or is an answer about one object.
PASSING = frozenset(("conflict", "invalid", "denied", "slow", "busy"))

_CLIENT = (
    r"[Ff]ailed to (?:list|watch) \*|\bFailed to watch\b|[Ee]rror retrieving (?:resource|lease)"
    r" lock|[Ff]ailed to (?:update|renew|acquire|retrieve) (?:the )?(?:lock|lease)"
    r"|error initially creating leader election record|Unable to write event"
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
            r"|Container garbage collection failed|(?:ListPodSandbox|ListContainers|ListImages"
            r"|Status|Version|ImageFsInfo) (?:with filter )?from (?:runtime|image) service failed"
            r"|Failed to make webhook|[Ff]ailed while requesting a signed certificate"
            r"|[Cc]annot create certificate signing request|Failed to delete cgroup"
            r"|(?:write|writing|save) checkpoint|RegisterPlugin error"
        ),
        # What a controller cannot create for a workload is of KM221 to KM223.
        "kube-controller-manager": (
            r"unable to sync caches|Error building controller context|stale GroupVersion discovery"
        ),
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
    # an event of an object that went, a program or a setting that a container lacks, images in use
    r"|Server rejected event|[Ii]mage garbage collection|start failed in pod|start failed:"
    r"|container process: exec|container process caused:? \\*\"?exec"
    # more name servers or domains than a pod may have: the kubelet says it for each of its pods
    r"|Nameserver limits|Search Line limits"
    # kubelet each minute, where the kernel has no iptables of IPv6: nothing needs these chains
    r"|iptables (?:canary|hint chains)"
    # API server: a client or a watch of one
    r"|required revision has been compacted|Unable to authenticate the request|TLS handshake error"
    r"|timeout or abort|Timeout or abort|http: Handler timeout|apiserver was unable to write"
    r"|context canceled|operation was canceled|watch chan error|invalid bearer token"
    # aggregated APIs that do not answer, of which clients that read all APIs tell
    r"|metrics\.k8s\.io|failing or missing response|loading OpenAPI spec|PartialObjectMetadata"
    r"|unable to retrieve the complete list(?!.{1,400}stale GroupVersion)"
    r"|failed to discover (?:some )?(?:groups|resources)"
    # controllers: a conflict, a namespace that goes, a load balancer without metrics
    r"|the object has been modified|is being terminated|horizontal|FailedGet"
    # etcd: slow requests, and clients and health checks that go away
    r"|took too long|slow fdatasync|heartbeat on time|overloaded|rejected connection"
    r"|rejected stream|request stats|ignoring common name|failed to check for"
    # containerd at its start, and ends of containers
    r"|failed to load cni during init|failed to reload cni|stream (?:copy|terminated)|ttrpc: closed"
    r"|collecting metrics for|failed to handle container TaskExit|not found: not found"
    r"|[Ff]ailed to (?:get|collect) (?:container|sandbox|pod) (?:stats|status)|StopPodSandbox"
    # a cgroup that went while cAdvisor began to watch it; a client that connected and left
    r"|Error while processing event \(\"/sys/fs/cgroup[^\n]{1,600}: no such file or directory"
    r"|Server\.Serve failed to create ServerTransport"
    r"|RemoveContainer|ContainerStatus"
)
# Of a kubelet, about the Node and the lease by which the API hears it.
_OF_NODE = re.compile(
    r"Unable to register node|[Uu]pdat(?:e|ing) node status|[Ff]ailed to (?:ensure|get) (?:node )?"
    r"lease|failed to ensure node lease|[Ee]rror getting (?:the current )?node\b"
)
# About one object, where nothing else is known of it.
_OF_OBJECT = re.compile(
    r"\b[Ss]ync(?:ing)?\b|exceeded quota|[Vv]olume|PersistentVolume|[Ii]mage|\b[Pp]ods?\b"
    r"|[Cc]ontainer\b(?! runtime| manager)|[Ss]andbox"
)
# Of a runtime: about one container, sandbox or image, also where only its id is named.
_OF_CONTAINER = re.compile(
    r"(?:Start|Create|Stop|Update)Container|RunPodSandbox|(?:Container|PodSandbox)Metadata"
    r"|PullImage|\b(?:Exec|Attach|PortForward) for\b|/containers/|\b[0-9a-f]{64}\b"
    r"|[Cc]ontainer creation|\b(?:start|create|creating|starting)(?: \w+)? (?:container|sandbox)\b"
)
# Each pod needs these programs of the runtime; others only pods of a RuntimeClass.
_OF_EACH_POD = re.compile(
    r"program (?:\S{1,200}/)?(?:runc|crun|conmon|containerd-shim(?:-runc-v\d)?) of "
)
# What a kubelet or a runtime does for one pod, and repeats where it fails.
_FOR_POD = re.compile(
    r"ExecSync|[Pp]robe errored|PullImage|RunPodSandbox|CreatePodSandbox|(?:Start|Create)Container"
    r"|[Ee]rror syncing pod|\b(?:Mount|Map|Attach)Volume\.|PostStart|PreStop|pod sandbox|exec in"
    r" container"
)
# Known messages that the end of a container leads to as well, for a moment.
_OF_ENDS = frozenset(("exec-without-cgroup-of-container",))
_MIRROR_POD = re.compile(r"[Ff]ailed creating a mirror pod")
_OF_RUNTIME = re.compile(r"rpc error: code = ")
# Known messages about webhooks, aggregated APIs and kube-controller-manager. No other fault is
# about webhooks that convert objects.
_OF_OTHER_SERVERS = re.compile(
    r"webhook-|apiservice-|aggregated-api-|root-certificate-not-published"
)
# Known messages that say what kube-controller-manager does not do, as it cannot list one kind of
# object, and in words what that is. The line that names the kind has the cause.
WAITS: Mapping[str, str] = {
    "garbage-collector-waits": "the garbage collector waits",
    "quota-monitor-waits": "what ResourceQuotas count is not brought up to date",
}
_OF_ONE_KIND = re.compile(
    r"[Ff]ailed to (?:list|watch) (?:[\w./-]{1,253}, Resource=[\w.-]{1,100}"
    r"|\*v1\.PartialObjectMetadata)"
)


@dataclass(frozen=True)
class Repeated:
    """An error that a component repeats.

    answer: what it means, None where that is not known
    is_obstacle: whether it keeps the component from its work
    known: its cause, where that is known for the whole message
    waiting: what the component does not do because of it, in words
    """

    row: ComponentErrors
    entry: RepeatedError
    answer: Answer | None
    is_obstacle: bool
    known: Known | None = None
    waiting: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """Return the text of the line, without what its logger adds; its end has the cause."""
        return error_origin.shortened(component_log.text(self.entry.line), QUOTED)

    @property
    def last(self) -> datetime | None:
        """Return when it was said last, by the node's clock."""
        return moment(self.entry.last)


def rows(document: Mapping[str, Any]) -> tuple[float, tuple[ComponentErrors, ...]]:
    """Return when the logs were read, and what each component of a host repeats."""
    answer = contract.answer(document, RepeatedErrors)
    return answer.read_at or 0.0, answer.components


def worst(row: ComponentErrors, read_at: float, releases: Releases = UNKNOWN) -> Repeated | None:
    """Return the error of a component that a finding is about, or None."""
    candidates = current(row, read_at, releases)
    obstacles = [item for item in candidates if item.is_obstacle]
    if obstacles:
        return _source(max(obstacles, key=weight), candidates)
    if row.component in SUPERVISORS:
        return None
    return next(_unclear(candidates, read_at), None)


def _source(worst_one: Repeated, candidates: list[Repeated]) -> Repeated:
    """Return the error because of which others wait, with what waits, else the worst one."""
    names = (item.known.id for item in candidates if item.known is not None)
    waiting = tuple(dict.fromkeys(WAITS[name] for name in names if name in WAITS))
    sources = [item for item in candidates if _OF_ONE_KIND.search(item.entry.line)]
    is_known = worst_one.known is not None and worst_one.known.id not in WAITS
    if not (waiting and sources) or (is_known and worst_one not in sources):
        return worst_one
    return replace(max(sources, key=weight), is_obstacle=True, waiting=waiting)


@dataclass(frozen=True)
class NodeError:
    """What a kubelet repeats of its own Node.

    clause, advice: of the answer that it got; empty where that is not known
    kind: of the answer
    """

    message: str
    clause: str = ""
    advice: str = ""
    kind: str = ""


def of_node(document: Mapping[str, Any], releases: Releases = UNKNOWN) -> NodeError | None:
    """Return the error about its own Node that a kubelet repeats most, or None."""
    read_at, components = rows(document)
    row = next((row for row in components if row.component == "kubelet"), ComponentErrors())
    entries = [entry for entry in row.entries if _is_of_node(entry, read_at)]
    error = max((_read(row, entry, releases) for entry in entries), key=weight, default=None)
    if error is None:
        return None
    if error.known is not None:
        kind = error.answer.kind if error.answer is not None else ""
        return NodeError(error.message, error.known.clause, error.known.advice, kind)
    if error.answer is None:
        return NodeError(error.message)
    clause = one_line(error.answer.clause, 300)
    return NodeError(error.message, clause, error.answer.advice, error.answer.kind)


@dataclass(frozen=True)
class SandboxImage:
    """What a kubelet or a runtime repeats of an image of the sandbox that it does not get.

    source: the unit whose journal has it
    """

    source: str
    line: str
    count: int


def of_sandbox_image(document: Mapping[str, Any]) -> SandboxImage | None:
    """Return what is repeated most of the image of the sandbox that is missing, or None."""
    read_at, components = rows(document)
    components = tuple(row for row in components if row.component in _WITH_SANDBOXES)
    hits = [hit for row in components for hit in _sandbox_images(row, read_at)]
    return max(hits, key=lambda hit: hit.count, default=None)


def _sandbox_images(row: ComponentErrors, read_at: float) -> Iterator[SandboxImage]:
    source = one_line(row.source, 300)
    for entry in row.entries:
        line = entry.line[:LONGEST]
        is_of_image = pod_start_message.is_of_sandbox_image(component_log.text(line))
        if is_of_image and _goes_on(entry, read_at, MINUTES, COUNT):
            yield SandboxImage(source, line, entry.count)


# The client of a call, which a kubelet ends after its own time, is not there any more.
DOCKER = "dockerd"
_UNHEARD = re.compile(
    r"Handler for [A-Z]{3,7} /\S{1,300} returned error: write unix \S{1,200}->@: write: broken pipe"
)


@dataclass(frozen=True)
class RuntimeObstacle:
    """What keeps a node's container runtime from its work, as it repeats it."""

    component: str
    clause: str
    advice: str


def of_runtime(document: Mapping[str, Any], releases: Releases = UNKNOWN) -> RuntimeObstacle | None:
    """Return the error that keeps a container runtime from its work, or None."""
    read_at, components = rows(document)
    for row in components:
        error = worst(row, read_at, releases) if row.component in RUNTIMES else None
        if error is not None and error.is_obstacle and error.answer is not None:
            answer = error.answer
            return RuntimeObstacle(row.component, one_line(answer.clause, 300), answer.advice)
    return None


def unheard_docker(document: Mapping[str, Any]) -> str:
    """Return what dockerd repeats of answers whose client has gone before them, or ""."""
    read_at, components = rows(document)
    for row in filter(_is_docker, components):
        for entry in row.entries:
            if _goes_on(entry, read_at, MINUTES, COUNT) and _UNHEARD.search(entry.line):
                return ends(component_log.text(entry.line), QUOTED)
    return ""


def _is_docker(row: ComponentErrors) -> bool:
    return row.component == DOCKER


def is_answered(error: Repeated) -> bool:
    """Tell whether an error is what an API server answered to a kubelet."""
    if error.answer is None:
        return False
    return error.answer.kind in _ANSWERS or bool(_ABSENT_NODE.search(error.entry.line))


def _is_of_node(entry: RepeatedError, read_at: float) -> bool:
    return _goes_on(entry, read_at, MINUTES, COUNT) and bool(_OF_NODE.search(entry.line))


def current(
    row: ComponentErrors,
    read_at: float,
    releases: Releases = UNKNOWN,
    places: Iterable[str] = (),
) -> list[Repeated]:
    """Return the errors of a component that go on.

    places: who says it, where that is more than the component (known_message)
    """
    entries = [entry for entry in row.entries if _goes_on(entry, read_at, MINUTES, COUNT)]
    return [_read(row, entry, releases, places) for entry in entries]


def weight(item: Repeated) -> tuple[bool, bool, int]:
    """Return what an error weighs: that an object is not there follows from another one."""
    is_cause = item.answer is not None and item.answer.kind != "not_found"
    return item.known is not None, is_cause, item.entry.count


def gap(row: ComponentErrors, read_at: float) -> str:
    """Return why a component's log was not read as far as its errors need it, or ""."""
    if row.error:
        return one_line(row.error, QUOTED)
    if not row.cut or _reaches_back(row, read_at):
        return ""
    begun = moment(row.since)
    if begun is None:
        return "not all of it was read"
    return f"not all of it was read, from {begun:%H:%M:%SZ} on"


def _reaches_back(row: ComponentErrors, read_at: float) -> bool:
    """Tell whether the limits left out older lines only, and an obstacle shows in the rest.

    A busy API server logs more in ten minutes than is read of it.
    """
    begun = max(read_at - WINDOW, (row.started or 0) + SETTLE)
    is_by_limit = row.since is not None and row.since > begun + 1
    return is_by_limit and read_at - (row.since or 0) >= ENOUGH_SECONDS


def _goes_on(entry: RepeatedError, read_at: float, minutes: int, count: int) -> bool:
    if _waits_longest(entry):
        return read_at - (entry.last or 0) <= WAIT_SECONDS + QUIET_SECONDS
    if entry.minutes < minutes or entry.count < count or entry.last is None:
        return False
    first = entry.last
    if entry.first is not None:
        first = entry.first
    interval = (entry.last - first) / entry.count
    return read_at - entry.last <= min(LAST_SECONDS, max(QUIET_SECONDS, INTERVALS * interval))


def _waits_longest(entry: RepeatedError) -> bool:
    """Tell whether an operation fails each time, and is tried again as rarely as a kubelet does."""
    if entry.count < TRIES or entry.first is None or entry.last is None:
        return False
    return entry.last - entry.first >= WAITED_SECONDS and bool(_LONGEST_WAIT.search(entry.line))


def _read(
    row: ComponentErrors,
    entry: RepeatedError,
    releases: Releases,
    places: Iterable[str] = (),
) -> Repeated:
    entry = replace(entry, line=entry.line[:LONGEST])
    answer = error_answer.read(entry.line, _table(row.component))
    cause = _known(row.component, entry, releases, places)
    is_of_workload = cause is not None and cause.is_of_workload
    is_obstacle = cause is not None and _is_own(entry, cause)
    if not is_of_workload and not is_obstacle:
        is_obstacle = _is_by_answer(row.component, entry, answer)
    if cause is None and not is_obstacle:
        of_machine = _of_machine(row.component, entry)
        answer, is_obstacle = of_machine or answer, of_machine is not None
    return Repeated(row, entry, answer, is_obstacle, cause)


def _known(
    component: str, entry: RepeatedError, releases: Releases, places: Iterable[str]
) -> Known | None:
    """Return the known cause of an error; one that an end leads to as well only after long."""
    release = releases.version(component)
    cause = known_message.find((component, *places), entry.line, release, releases.of_node)
    if cause is not None and cause.id in _OF_ENDS and not _is_said_for_long(entry):
        return None
    return cause


def _of_machine(component: str, entry: RepeatedError) -> Answer | None:
    """Return what a line about a pod says of its node, where no pod brings that about, or None.

    An error that a container's end may cause too has to be said for longer.
    """
    if component not in _WITH_SANDBOXES or not _FOR_POD.search(entry.line):
        return None
    origin = error_origin.read(component_log.text(entry.line))
    if not origin.is_of_machine:
        return None
    if origin.passes and not _is_said_for_long(entry):
        return None
    return Answer("machine", origin_wording.party(origin), origin_wording.advice(origin))


def _is_said_for_long(entry: RepeatedError) -> bool:
    return _waits_longest(entry) or _is_said_often(entry)


def _is_said_often(entry: RepeatedError) -> bool:
    return entry.minutes >= QUOTED_MINUTES and entry.count >= QUOTED_COUNT


def _is_by_answer(component: str, entry: RepeatedError, answer: Answer | None) -> bool:
    """Tell whether the answer that a line has keeps the component from its work."""
    if answer is None or _OTHERS.search(entry.line) or _is_passing(entry, answer):
        return False
    return _is_obstacle(component, entry, answer)


def _is_passing(entry: RepeatedError, answer: Answer) -> bool:
    """Tell whether a server that is only slow at times answers so, and not for long yet."""
    if answer.kind not in _BUSY or _is_said_for_long(entry):
        return False
    return _UNREACHED.search(entry.line) is None


def _table(component: str) -> str:
    """Return the table of messages that a component has."""
    if component in RUNTIMES:
        return "containerd"
    return "k3s" if component in SUPERVISORS else component


def _is_obstacle(component: str, entry: RepeatedError, answer: Answer) -> bool:
    if component in RUNTIMES:
        return _is_of_runtime(entry, answer)
    if answer.kind in OBSTACLES.get(component, (error_answer.SLOW_WEBHOOK,)):
        return True
    work = _OWN.get(component)
    if work is not None and work.search(component_log.text(entry.line)):
        return answer.kind not in PASSING and not _is_of_one_pod(entry, answer)
    if component != "kubelet" or _OF_RUNTIME.search(entry.line):
        return False
    return answer.kind in MACHINE and _is_of_many(entry)


def _is_of_runtime(entry: RepeatedError, answer: Answer) -> bool:
    """Tell whether an error is the runtime's, and not that of one image or one pod."""
    if answer.kind == "runtime":
        return entry.pods == 0 or _is_of_many(entry) or bool(_OF_EACH_POD.search(answer.clause))
    if answer.kind in MACHINE:
        is_of_object = entry.pods > 0 or _OF_CONTAINER.search(entry.line) is not None
        return not is_of_object or _is_of_many(entry)
    return answer.kind in NETWORK and _is_of_many(entry)


def _is_of_one_pod(entry: RepeatedError, answer: Answer) -> bool:
    """Tell whether a line of a component's own work is about one pod, and not about the node.

    A mirror pod that is refused is the node's, unless its namespace does not exist.
    """
    if entry.pods == 0 or _is_of_many(entry):
        return False
    return answer.kind == "not_found" or _MIRROR_POD.search(entry.line) is None


def _is_own(entry: RepeatedError, cause: Known) -> bool:
    """Tell whether a known cause keeps a component from its work, and no other fault is about it.

    The API tells of workloads (KM610), of few pods (KM600), of webhooks (KM176) and of aggregated
    APIs (KM177).
    """
    is_of_few_pods = cause.is_of_pods and entry.pods > 0 and not _is_of_many(entry)
    if cause.is_of_workload or is_of_few_pods:
        return False
    return _OF_OTHER_SERVERS.match(cause.id) is None


def _is_of_many(entry: RepeatedError) -> bool:
    return entry.pods >= OBJECTS


def _unclear(candidates: list[Repeated], read_at: float) -> Iterator[Repeated]:
    """Yield what is said all the time and has no known meaning, the most frequent first."""
    for item in sorted(candidates, key=lambda item: -item.entry.count):
        entry = item.entry
        if not _goes_on(entry, read_at, QUOTED_MINUTES, QUOTED_COUNT):
            continue
        if item.answer is None and not _is_of_object(item) and not _OTHERS.search(entry.line):
            yield item


def _is_of_object(item: Repeated) -> bool:
    """Tell whether a line without a known answer is about an object of users."""
    if item.known is not None and item.known.is_of_workload:
        return True
    if item.entry.pods > 0 or _OF_CONTAINER.search(item.entry.line):
        return True
    work = _OWN.get(item.row.component)
    text = component_log.text(item.entry.line)
    return not (work and work.search(text)) and _OF_OBJECT.search(text) is not None
