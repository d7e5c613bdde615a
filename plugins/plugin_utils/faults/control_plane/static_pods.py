# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM114: check that each component of a static pod manifest has a process that stays up."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...evidence import contract
from ...evidence.answers.node.boot import Boot
from ...evidence.answers.node.component_end import ComponentEnd, ComponentLog
from ...evidence.answers.node.instances import Instances
from ...evidence.answers.node.manifests import Manifests
from ...evidence.document import ends, one_line, shell_name
from ...models import (
    component_restart,
    denied_file,
    etcd_client,
    quoted_flags,
    refused_container,
    static_pod_files,
)
from ...models.cluster import Host
from ...models.component_restart import End, Restarts
from ...models.control_plane import ControlPlane, FileUse, Process
from ...models.kubelet import rke2_static_pods, sandbox_refusal, supervisor
from ...models.kubelet.rke2_static_pods import StaticPods
from ...models.kubelet.supervisor import Place, Supervisor
from ...models.moments import moment
from ...models.result import EvidenceRef, Missing
from ...parsers import component_log, go_panic, known_message, message_class, pflag
from ...parsers.component_log import Telling
from ...parsers.known_message import Known
from ..base import CheckResult, Detection, causes, node_check
from ..known_causes import Source, with_cause, with_denial, with_rule
from ..node import container_runtime
from . import api_server, missing_manifests, restart_wording
from .manifests import SETTLE_SECONDS

# After its own start a kubelet brings everything up at once, and what waits for what is not up yet
# ends a few times.
STARTING_SECONDS = 180
# A process that is younger than SHORT, after two others of which the last exited by its own log
# within LIVED, runs by chance at the moment of the audit. One that was stopped (a restart, an edit,
# a lock that was lost) has lived longer, or its log has no reason of its exit.
SHORT_SECONDS, STARTS, LIVED_SECONDS = 120, 2, 10
# Three exits within an hour are no accident: two starts within 40 minutes, with a third before
# them, are that rate. Where the log does not contain a reason, an operator or a repair may have
# stopped it a few times in a row; ten times are not plausible.
AGAIN_SECONDS, AGAIN_STARTS, QUIET_STARTS = 2400, 3, 10
BOOT_SECONDS = 600  # after a boot, what waits for what is not up yet exits a few times
# Three ends within an hour are one each 20 minutes. The kubelet waits 10 s before the second of
# such starts and 20 s before the third, and forgets it after ten minutes without an end.
OFTEN, PAUSE_SECONDS, BACK_OFF_SECONDS = 3, 1200, 20
# A command line or a file that a component cannot use ends it earlier than this.
AT_ONCE_SECONDS = 3
CONFIGURATION = "configuration"
DATA_KEY = "data-dir"  # of RKE2
HELD = "address already in use"
_USER = "runAsUser"
# Known messages about networks that contradict each other, and the flags that have these.
_OF_RANGES = ("node-range-", "cluster-ranges-", "service-ranges-")
_RANGES = (
    "allocate-node-cidrs",
    "cidr-allocator-type",
    "cluster-cidr",
    "service-cluster-ip-range",
    "node-cidr-mask-size",
    "node-cidr-mask-size-ipv4",
    "node-cidr-mask-size-ipv6",
)
SHOWN = 5  # places of flags in an advice
LONGEST_MATCHED = 2000  # characters of a kubelet's line in which a known message is looked for
# Ends whose reason its log tells.
_BY_LOG = frozenset((component_restart.EXIT, component_restart.LOCK, component_restart.UNKNOWN))


@node_check(
    "KM114",
    "Control-plane component does not stay up",
    severity="critical",
    applies="manifests of control-plane components in the folder of a kubelet that runs, and"
    " kubeadm's control planes without any",
    risk=2,
    needs=(
        "system",
        "kubelet",
        "manifests",
        "instances",
        "boot",
        "component_end",
        "component_restart",
        "kubelet_end",
        "installer",
        "api_way",
    ),
    explained_by=causes("KM115", "KM120", "KM124", "KM125", "KM126", "KM127", "KM605")
    | causes("KM114", component="etcd")
    | causes("KM114", component="kube-apiserver")
    | causes("KM116", component="etcd"),
)
def down(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM114: report a component that does not run or stay up while the kubelet is well."""
    plane, without = host.control_plane, missing_manifests.of_host(host, document)
    if without is not None:
        yield CheckResult((without,), host=host.host)
        return
    missing = tuple(dict.fromkeys(host.missing("manifests") + host.missing("instances")))
    if plane is None or plane.kubelet_problem or missing:
        yield _without_components(host, missing)
        return
    results = _results(host, document, plane)
    hits = tuple(hit for hit, _doubt in results if hit)
    doubts = [doubt for _hit, doubt in results if doubt is not None]
    note = ""
    if not hits:
        note = "; ".join(doubt.reason for doubt in doubts)
    missing = tuple(_owed(host, plane, doubts))
    yield CheckResult(hits, missing, bool(plane.files), host=host.host, note=note)


def unsteady(host: Host, document: Mapping[str, Any]) -> frozenset[str]:
    """Return the components of a host of which the fault is present."""
    plane = host.control_plane
    if plane is None or plane.kubelet_problem:
        return frozenset()
    hits = [hit for hit, _doubt in _results(host, document, plane) if hit is not None]
    return frozenset(hit.component or "" for hit in hits)


def _results(
    host: Host, document: Mapping[str, Any], plane: ControlPlane
) -> list[tuple[Detection | None, _Doubt | None]]:
    """Return for each component of a manifest its hit, or why that cannot be decided."""
    restarts = component_restart.of_host(document, plane)
    exits, refusal = logs(document), sandbox_refusal.last(document)
    logs_by_name = {name: refused_container.without_earlier(log) for name, log in exits.items()}
    booted, owner = component_restart.booted(document), supervisor.read(document)
    lacking = {
        problem.use.component
        for problem in static_pod_files.problems(document, plane)
        if not problem.runs
    }
    subjects = [
        _Component(
            host,
            plane,
            use,
            _with_refusal(logs_by_name.get(use.component, ComponentLog()), refusal),
            _restarts_of(use, restarts, exits),
            booted,
            owner,
            _causes(host, document, plane, use, lacking),
            rke2_static_pods.read(document, owner),
        )
        for use in one_each(plane)
    ]
    results = [(subject, *_evaluated(subject)) for subject in subjects]
    return [(_with_denial(document, subject, hit), doubt) for subject, hit, doubt in results]


def _restarts_of(
    use: FileUse, restarts: Mapping[str, Restarts], exits: Mapping[str, ComponentLog]
) -> Restarts:
    """Return the ends of a component; where no container can be made, they do not matter."""
    if refused_container.is_refused(exits.get(use.component, ComponentLog())):
        return Restarts()
    return restarts.get(use.component, Restarts())


def _with_refusal(exits: ComponentLog, refusal: str) -> ComponentLog:
    """Return what is logged of a component; of one without any log, why no pod is made."""
    return exits if exits.lines or exits.kubelet else replace(exits, kubelet=refusal or None)


def _with_denial(
    document: Mapping[str, Any], subject: _Component, hit: Detection | None
) -> Detection | None:
    """Add who denies a file to a component that runs as root, where the hit quotes that line."""
    if hit is None or subject.use.path in _with_users(document):
        return hit
    lines, component = _lines(subject.exits), subject.use.component
    line = component_log.telling(lines, component_log.last_word(lines), component).line
    if not line or _message(line) not in hit.summary:
        return hit
    # What its processes show is of a start that got further.
    boot = contract.answer(document, Boot)
    return with_denial(hit, denied_file.of_component(line, component, boot, Instances()))


def _with_users(document: Mapping[str, Any]) -> frozenset[str]:
    """Return the manifests in which a user is named, so that they may not run as root."""
    files = contract.answer(document, Manifests).files
    return frozenset(file.path for file in files if _USER in (file.text or ""))


def _causes(
    host: Host, document: Mapping[str, Any], plane: ControlPlane, use: FileUse, lacking: set[str]
) -> tuple[str, ...]:
    """Return the faults of the same component on this host that explain this one."""
    codes = list(api_server.causes_of_end(host, document, plane, use.component))
    if use.component in lacking:
        codes.append("KM174")
    if use.flag is not None and use.flag.value is None:
        codes.append("KM105")
    runs = any(process.component == use.component for process in plane.processes)
    if not runs and container_runtime.broken(host, document):
        codes.append("KM508")
    return tuple(codes)


def _without_components(host: Host, missing: tuple[Missing, ...]) -> CheckResult:
    """Return the result of a host whose components nothing shows, or whose kubelet is not well."""
    problem = ""
    if host.control_plane is not None:
        problem = host.control_plane.kubelet_problem
    no_manifests = host.statuses.get("manifests") == "absent" or bool(problem)
    applies = host.status != "ok" or not no_manifests
    return CheckResult((), missing, applies, host=host.host, note=problem)


def logs(document: Mapping[str, Any]) -> dict[str, ComponentLog]:
    """Return what the logs say of each component's exits, by the component."""
    logs = contract.answer(document, ComponentEnd).components
    return {log.component: log for log in logs}


def _owed(host: Host, plane: ControlPlane, doubts: Iterable[_Doubt]) -> Iterator[Missing]:
    """Yield what is missing to call the fault clear."""
    # Only its log shows whether a component that was started recently was started before, too.
    if any(process.static and _is_young(plane, process) for process in plane.processes):
        yield from host.missing("component_end")
    for doubt in doubts:
        yield Missing(host.host, "instances", doubt.status)
    if plane.unread:
        yield Missing(host.host, "manifests", "denied")


def _is_young(plane: ControlPlane, process: Process) -> bool:
    return plane.clock - process.started_at < SHORT_SECONDS


def one_each(plane: ControlPlane) -> list[FileUse]:
    """Return one manifest of each component: a second one is a fault of its own (KM109)."""
    uses: dict[str, FileUse] = {}
    for use in sorted(plane.files, key=lambda use: not use.usual):
        uses.setdefault(use.component, use)
    return list(uses.values())


@dataclass(frozen=True)
class _Doubt:
    """Why it cannot be decided whether a component stays up, and the status of its evidence."""

    reason: str
    status: str


@dataclass(frozen=True)
class _Component:
    """One component of a manifest with all that is known of its ends.

    owner: RKE2, where it writes the manifest
    """

    host: Host
    plane: ControlPlane
    use: FileUse
    exits: ComponentLog
    restarts: Restarts
    booted: float
    owner: Supervisor | None = None
    because: tuple[str, ...] = ()
    told: StaticPods = rke2_static_pods.NONE

    @property
    def end(self) -> End | None:
        """Return its last end, None where there is none or a person brought it about."""
        return next((end for end in self.restarts.ends[-1:] if not end.is_intended), None)

    @property
    def crash(self) -> End | None:
        """Return the last end that no person brought about, whatever came after it."""
        return next(iter(self.restarts.unintended[-1:]), None)


def _evaluated(subject: _Component) -> tuple[Detection | None, _Doubt | None]:
    """Return the hit of a manifest's component, or why that cannot be decided."""
    plane, use = subject.plane, subject.use
    started = [
        process.started_at
        for process in plane.processes
        if process.component == use.component and process.static
    ]
    if started:
        return _running_hit(subject, max(started)), None
    if pflag.component_of(use.words) != use.component:
        reason = (
            f"what runs as {use.component} by {use.path} is not known: its command does not name it"
        )
        return None, _Doubt(reason, "error")
    # A kubelet whose start is not known is old.
    begun = 0.0
    if subject.host.kubelet_started:
        begun = subject.host.kubelet_started.timestamp()
    is_recent = plane.clock - use.changed < SETTLE_SECONDS or plane.clock - begun < STARTING_SECONDS
    if is_recent and not _ends_in_itself(subject):
        return None, _Doubt(f"the kubelet may still start {use.component}", "starting")
    if subject.exits.lines:
        return _hit(subject, "does not stay up", None, subject.end), None
    return _hit(subject, "does not start", None, subject.end), None


def _ends_in_itself(subject: _Component) -> bool:
    """Tell whether the last starts of a manifest ended by what no other component brings about.

    Such a component does not come up later either. One that cannot reach another one tries that
    for some seconds.
    """
    ends = subject.restarts.unintended[-STARTS:]
    return len(ends) == STARTS and all(map(_is_of_itself, ends))


def _is_of_itself(end: End) -> bool:
    if end.kind == component_restart.OOM:
        return True
    lived = end.lived if end.kind == component_restart.EXIT else None
    return lived is not None and lived < AT_ONCE_SECONDS


def _running_hit(subject: _Component, started: float) -> Detection | None:
    """Return the hit of a component that runs at the moment, but exits repeatedly, or None."""
    exits = subject.exits
    lived = _lived(exits)
    older = _older(subject, started)
    if older is not None:
        return _beside(subject, older, lived)
    if _exits_at_once(subject.plane, exits, started, lived):
        return _hit(subject, "ends again and again", lived, subject.end)
    if _ends_often(subject, started) or _starts_often(subject, started):
        hit = _hit(subject, "restarts again and again", lived, subject.crash)
        return replace(hit, severity="warning")
    return None


def _older(subject: _Component, started: float) -> Process | None:
    """Return the process that runs while each new container of its component ends, or None.

    The newest container began after every process that runs, and its log has the reason of its
    exit: what runs is of an earlier container, which the kubelet does not count any more. The log
    of a process that runs begins later than it where it was rotated, but has no such reason.
    """
    exits, clock = subject.exits, subject.plane.clock
    if exits.restart is None or exits.restart < STARTS or exits.first is None:
        return None
    is_recent = exits.last is not None and clock - exits.last < AGAIN_SECONDS
    if not is_recent or exits.first <= started + LIVED_SECONDS:
        return None
    if not component_log.says_exit(component_log.last_word(_lines(exits))):
        return None
    processes = (row for row in subject.plane.processes if row.component == subject.use.component)
    return max((row for row in processes if row.static), key=lambda row: row.started_at)


def _beside(subject: _Component, older: Process, lived: float | None) -> Detection:
    """Return the hit of a component whose new containers end beside a process of an older one."""
    hit = _hit(subject, "ends again and again next to an older one of it", lived, None)
    began = moment(older.started_at)
    runs = f"process {older.pid} of an earlier container of it runs"
    if began is not None:
        runs += f" since {began:%Y-%m-%dT%H:%M:%SZ}"
    if HELD in hit.summary:
        runs += " and has that port"
    killed = f"crictl ps -a --name {subject.use.component} and crictl stop ID of the older one"
    if subject.owner is not None:
        killed += (
            f", or all of {subject.owner.title} once ({subject.owner.program}-killall.sh, then"
            f" systemctl start {shell_name(subject.owner.unit, 'UNIT')})"
        )
    return replace(
        hit,
        summary=f"{hit.summary}; {runs}",
        remedy=f"end that process: {killed}; {hit.remedy}",
    )


def _ends_often(subject: _Component, started: float) -> bool:
    """Tell whether a component ended at least three times within the hour, and just now.

    One that has run for longer than the pause between two of three ends in an hour has left that
    rate behind it. A restart by an operator begins no new count: it changes nothing.
    """
    crash = subject.crash
    if crash is None:
        return False
    since = started
    if subject.end is None:
        since = crash.at
    if subject.plane.clock - since >= PAUSE_SECONDS:
        return False
    ends = len(subject.restarts.lasting)
    if crash.kind in component_restart.LASTING:
        return ends >= OFTEN or subject.restarts.back_off >= BACK_OFF_SECONDS
    return ends >= OFTEN


def _starts_often(subject: _Component, started: float) -> bool:
    """Tell whether its log numbers show often started one that was not restarted on purpose."""
    ends = subject.restarts.ends
    if ends and ends[-1].is_intended:
        return False
    return _restarts(subject.plane, subject.exits, started, subject.booted)


def _exits_at_once(
    plane: ControlPlane, exits: ComponentLog, started: float, lived: float | None
) -> bool:
    if exits.restart is None or exits.restart < STARTS:
        return False
    if lived is None or lived >= LIVED_SECONDS or plane.clock - started >= SHORT_SECONDS:
        return False
    return component_log.says_exit(component_log.last_word(_lines(exits)))


def _restarts(plane: ControlPlane, exits: ComponentLog, started: float, booted: float) -> bool:
    """Tell whether a component exits every few minutes, although it runs during the audit.

    A high lifetime count alone shows nothing about the present. Its number counts starts of one
    manifest, so that a change of the manifest is no restart.
    """
    if exits.first is None or exits.restart is None:
        return False
    recent = [
        start
        for start in (exits.first, started)
        if plane.clock - start < AGAIN_SECONDS and not 0 <= start - booted < BOOT_SECONDS
    ]
    if len(recent) < 2:
        return False
    starts = QUIET_STARTS
    if any(_tells_exit(line) for line in _lines(exits)):
        starts = AGAIN_STARTS
    return exits.restart + 1 >= starts


def _tells_exit(line: str) -> bool:
    return component_log.says_exit(line) or component_log.says_lock_lost(line)


def _lines(exits: ComponentLog) -> list[str]:
    return [ends(line, 600) for line in component_log.entries(exits.lines)]


def _lived(exits: ComponentLog) -> float | None:
    if exits.first is None or exits.last is None:
        return None
    return exits.last - exits.first


def _hit(subject: _Component, effect: str, lived: float | None, last_end: End | None) -> Detection:
    host, use, exits = subject.host, subject.use, subject.exits
    lines, kubelet = _lines(exits), ends(exits.kubelet or "", 600)
    last = component_log.last_word(lines)
    telling = component_log.telling(lines, last, use.component)
    end = _end_beside_log(last_end)
    joined, advice = _joined(use, telling.line)
    flags = etcd_client.lacking(use.component, use.words, lines)
    message = _reason(exits, telling, lines, last) + _last_line(telling, last)
    message += joined + etcd_client.clause(flags) + quoted_flags.clause(use.words)
    remedy = etcd_client.advice(flags) + quoted_flags.advice(use.words) + advice
    remedy += _remedy(subject, telling, last, bool(kubelet))
    if end is not None:
        clause = restart_wording.clause(end, use)
        message = f"; {clause}{restart_wording.beside(end, telling)}"
        remedy = restart_wording.advice(end, use, host.node) or remedy
    state = "is well"
    if host.control_plane and host.control_plane.kubelet_unproven:
        state = "runs"
    hit = Detection(
        f"its manifest is there and the kubelet {state}, but it"
        f" {effect}{_starts(exits)}{_last_start(lived)}{message}",
        tuple(_proofs(subject, telling, last, kubelet, end)),
        remedy,
        host.host,
        host.node,
        use.component,
        because=subject.because,
    )
    if end is not None:
        return hit
    return _explained(hit, subject, telling, last)


def _reason(exits: ComponentLog, telling: Telling, lines: Sequence[str], last: str) -> str:
    """Return what tells why it does not run, its log or else its kubelet, as a clause."""
    refusal = refused_container.message(exits.kubelet or "")
    if refusal and not telling.line:
        return f": the kubelet fails to make its container: {refusal}"
    line = telling.line or ends(exits.kubelet or "", 600)
    return f"{_message(line)}{_meaning(telling, lines, last)}"


def _explained(hit: Detection, subject: _Component, telling: Telling, last: str) -> Detection:
    """Return a hit with the known cause of what a component or its kubelet logs."""
    host, use, lines = subject.host, subject.use, _lines(subject.exits)
    kubelet = ends(subject.exits.kubelet or "", LONGEST_MATCHED)
    release, versions = host.releases.version(use.component), host.releases.of_node
    find = functools.partial(known_message.first, versions=versions)
    row = find((use.component,), (telling.line, last), release)
    if row is None:
        version = host.releases.version("kubelet")
        row = find((use.component, "kubelet"), (kubelet,), version)
    row = row or find((use.component,), telling.before(lines), release)
    if row is None and not (telling.line or kubelet):
        return _told_of(hit, subject)
    if row is None:
        return with_rule(hit, (telling.line or kubelet,), Source(use.words))
    hit = with_cause(hit, row)
    return replace(hit, summary=f"{hit.summary}{_ranges(use, row)}")


def _told_of(hit: Detection, subject: _Component) -> Detection:
    """Return a hit with what RKE2 says of a component that neither logs nor has a refusal."""
    clause = subject.told.clause(subject.use.component)
    advice = subject.told.advice(subject.use.component)
    remedy = "; ".join(filter(None, (advice, hit.remedy)))
    return replace(hit, summary=f"{hit.summary}{clause}", remedy=remedy)


def _ranges(use: FileUse, row: Known) -> str:
    """Return what the manifest has of flags that contradict each other, as a sentence, or ""."""
    if not row.id.startswith(_OF_RANGES):
        return ""
    rows = [(name, pflag.string_flag(use.words, name)) for name in _RANGES]
    shown = " ".join(f"--{name}={value}" for name, value in rows if value is not None)
    if not shown:
        return ""
    return f". Its manifest has {one_line(shown, 300)}"


def _end_beside_log(end: End | None) -> End | None:
    """Return an end, None where its log alone tells the reason."""
    if end is None or end.kind in _BY_LOG:
        return None
    return end


def _proofs(
    subject: _Component, telling: Telling, last: str, kubelet: str, end: End | None
) -> Iterator[EvidenceRef]:
    """Yield the arguments, what ended the component, and the lines of its log."""
    host, use = subject.host, subject.use
    yield EvidenceRef("file", host.host, path=use.path, text=_named(use, telling.line))
    if end is not None:
        yield from restart_wording.proofs(host, end)
    yield from _log_proofs(host, subject.exits, (telling.line, last))
    if subject.owner is not None:
        yield from supervisor.proofs(_places(subject.owner, use, telling), host.host)
    if not last and kubelet:
        yield EvidenceRef("log", host.host, object="kubelet", text=kubelet)


def _starts(exits: ComponentLog) -> str:
    """Return how often a component was started, for a summary."""
    if not exits.restart:
        return ""
    begun = moment(exits.begun)
    if begun is None:
        return f" ({exits.restart} starts before)"
    return f" ({exits.restart} starts before, the first at {begun:%Y-%m-%dT%H:%M:%SZ})"


def _last_start(lived: float | None) -> str:
    if lived is None:
        return ""
    return f", its last start lived {lived:.0f} s"


def _message(line: str) -> str:
    message = restart_wording.message(line)
    if not message:
        return ""
    return f": {message}"


def _log_proofs(host: Host, exits: ComponentLog, lines: tuple[str, ...]) -> Iterator[EvidenceRef]:
    """Yield the lines of a component's log, each once."""
    path = one_line(exits.path or "", 300)
    for line in dict.fromkeys(filter(None, lines)):
        yield EvidenceRef("log", host.host, path=path, text=line)


def _meaning(telling: Telling, lines: Sequence[str], last: str) -> str:
    """Return what the line means, or in which functions it panicked, for a summary."""
    reading = telling.reading
    if reading is None:
        is_last = bool(telling.line) and telling.line == last
        panicked = go_panic.clause(telling.line, lines)
        return panicked or (" (the last line of its log)" if is_last else "")
    error = ""
    if reading.error and reading.error not in _message(telling.line):
        error = f": {ends(reading.error, 160)}"
    return f" ({message_class.CLASSES[reading.meaning].clause}{error})"


def _last_line(telling: Telling, last: str) -> str:
    """Return the last line where another one tells the cause, for a summary."""
    if last == telling.line:
        return ""
    return f"; its last line{_message(last)}"


def _named(use: FileUse, line: str) -> str:
    """Return the arguments that a log line names, else the whole command."""
    names = set(re.findall(r"--?[A-Za-z][\w-]*", line))
    named = [f"- {word}" for word in use.words if word.partition("=")[0] in names]
    return one_line(" ".join(named) or f"asks for {' '.join(use.words)}", 300)


def _joined(use: FileUse, line: str) -> tuple[str, str]:
    """Return a clause and an advice about an argument with two flags that a line quotes."""
    for word in pflag.joined(use.words):
        if re.split(r"\s", word, maxsplit=1)[1].strip() in line:
            return (
                "; one argument of its manifest holds more than one flag or word:"
                f" {one_line(word, 200)}",
                f"give each flag an item of its own in {use.path}, with its value behind an equals"
                " sign (- --flag=value): one item is one argument, blanks included; ",
            )
    return "", ""


def _remedy(subject: _Component, telling: Telling, last: str, kubelet: bool) -> str:
    use = subject.use
    if component_log.says_lock_lost(last) and telling.line == last:
        return (
            "it could not renew its lock in time: the API server or its etcd is too slow, or takes"
            ' no writes. See etcd\'s log for "took too long" and "slow fdatasync", what its disk'
            " is shared with, and the CPU that the API server gets; the whole log: crictl ps -a"
            f" --name {use.component}"
        )
    if last:
        return (
            f"{_cure(subject, telling)}. The whole log: crictl ps -a --name {use.component}, then"
            " crictl logs of the newest"
        )
    if kubelet:
        return (
            f"fix what the kubelet says of starting it, in {use.path} or at the runtime (its"
            " image, a mount, its command)"
        )
    return (
        f"see why the kubelet starts none: journalctl -u kubelet | grep {use.component}, crictl ps"
        f" -a --name {use.component}, crictl images"
    )


def _cure(subject: _Component, telling: Telling) -> str:
    """Return what is done about the line that tells the cause."""
    again = "; the kubelet starts it again within five minutes"
    if component_log.says_removed(telling.line):
        return _of_removed_member(subject.owner)
    is_told = telling.reading is None or telling.reading.meaning == CONFIGURATION
    if telling.reading is not None and not is_told:
        return f"{message_class.CLASSES[telling.reading.meaning].advice}{again}"
    if subject.owner is not None:
        return _of_owner(subject.owner, subject.use, telling)
    path = subject.use.path
    return f"fix what its last log lines name, in {path} or in a file that it is given{again}"


def _of_removed_member(owner: Supervisor | None) -> str:
    """Return what to do about the data of a member of etcd that was removed."""
    if owner is None:
        return "with the data of the removed member it ends at each start"
    places = owner.key(DATA_KEY)
    folder = places[-1].value if places else f"/var/lib/rancher/{owner.program}"
    unit = shell_name(owner.unit, "UNIT")
    return (
        f"with {owner.title}: systemctl stop {unit}, move {one_line(folder, 200)}/server/db/etcd"
        f" away, systemctl start {unit}, and it joins as a new member"
    )


def _of_owner(owner: Supervisor, use: FileUse, telling: Telling) -> str:
    """Return what to change of RKE2, which writes the manifest."""
    key = supervisor.key_of_component(use.component)
    texts = [place.text for place in _places(owner, use, telling)]
    wrong = " and ".join(texts) or f"{key} in {one_line(owner.file, 200)}"
    unit = shell_name(owner.unit, "UNIT")
    return (
        f"fix what its last log lines name: {wrong}, or a file that it is given; then systemctl"
        f" restart {unit}: {owner.title} writes {use.path} again when it starts"
    )


def _places(owner: Supervisor, use: FileUse, telling: Telling) -> list[Place]:
    """Return where RKE2 is given the flags that a line names."""
    key = supervisor.key_of_component(use.component)
    flags = dict.fromkeys(re.findall(r"--([A-Za-z][\w-]*)", telling.line))
    return [place for flag in flags for place in owner.flag(key, flag)][:SHOWN]
