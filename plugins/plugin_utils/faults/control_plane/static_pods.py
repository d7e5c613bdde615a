# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM114: check that each component of a static pod manifest has a process that stays up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...evidence import contract
from ...evidence.answers.node.component_end import ComponentEnd, ComponentLog
from ...evidence.answers.node.system import System
from ...evidence.document import one_line
from ...models.cluster import Host, moment
from ...models.control_plane import ControlPlane, FileUse, Process
from ...models.result import EvidenceRef, Missing
from ...parsers import component_log, message_class, pflag
from ...parsers.component_log import Telling
from ..base import CheckResult, Detection, causes, node_check
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
# The phrases by which a program of Kubernetes, etcd or Go logs that it exits.
_LAST = re.compile(
    r"F\d{4} |E\d{4} .*(?:command failed|failed to run|Failed to run)|[Ee]rror: |panic: |fatal"
    r" error: |unknown (?:shorthand )?flag|"
    r'.*"level":"(?:fatal|panic)"'
)
CONFIGURATION = "configuration"
# A component that cannot renew its lock ends itself, so that another one leads.
_LOST = re.compile(r"leader ?election lost|[Ff]ailed to renew lease|leaderelection\.go.*lost")


@node_check(
    "KM114",
    "Control-plane component does not stay up",
    severity="critical",
    applies="manifests of control-plane components in the folder of a kubelet that runs",
    risk=2,
    needs=("system", "kubelet", "manifests", "instances", "component_end"),
    explained_by=causes("KM115")
    | causes("KM114", component="etcd")
    | causes("KM114", component="kube-apiserver")
    | causes("KM116", component="etcd"),
)
def down(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM114: report a component that does not run or stay up while the kubelet is well."""
    plane = host.control_plane
    missing = tuple(dict.fromkeys(host.missing("manifests") + host.missing("instances")))
    if plane is None or plane.kubelet_problem or missing:
        yield _without_components(host, missing)
        return
    exits, booted = _exits(document), _booted(document)
    results = [
        _evaluated(host, plane, use, exits.get(use.component, ComponentLog()), booted)
        for use in _one_each(plane)
    ]
    hits = tuple(hit for hit, _doubt in results if hit)
    doubts = [doubt for _hit, doubt in results if doubt]
    note = ""
    if not hits:
        note = "; ".join(doubts)
    missing = tuple(_owed(host, plane, bool(doubts)))
    yield CheckResult(hits, missing, bool(plane.files), host=host.host, note=note)


def _without_components(host: Host, missing: tuple[Missing, ...]) -> CheckResult:
    """Return the result of a host whose components nothing shows, or whose kubelet is not well."""
    problem = ""
    if host.control_plane is not None:
        problem = host.control_plane.kubelet_problem
    no_manifests = host.statuses.get("manifests") == "absent" or bool(problem)
    applies = host.status != "ok" or not no_manifests
    return CheckResult((), missing, applies, host=host.host, note=problem)


def _exits(document: Mapping[str, Any]) -> dict[str, ComponentLog]:
    """Return what the logs say of each component's exits, by the component."""
    logs = contract.answer(document, ComponentEnd).components
    return {log.component: log for log in logs}


def _owed(host: Host, plane: ControlPlane, doubtful: bool) -> Iterator[Missing]:
    """Yield what is missing to call the fault clear."""
    # Only its log shows whether a component that was started recently was started before, too.
    if any(process.static and _is_young(plane, process) for process in plane.processes):
        yield from host.missing("component_end")
    if doubtful:
        yield Missing(host.host, "instances", "timeout")
    if plane.unread:
        yield Missing(host.host, "manifests", "denied")


def _is_young(plane: ControlPlane, process: Process) -> bool:
    return plane.clock - process.started_at < SHORT_SECONDS


def _one_each(plane: ControlPlane) -> list[FileUse]:
    """Return one manifest of each component: a second one is a fault of its own (KM109)."""
    uses: dict[str, FileUse] = {}
    for use in sorted(plane.files, key=lambda use: not use.usual):
        uses.setdefault(use.component, use)
    return list(uses.values())


def _booted(document: Mapping[str, Any]) -> float:
    """Return when the machine booted, by its own clock, or 0 if that is not known."""
    system = contract.answer(document, System)
    if system.clock is None or system.uptime_s is None:
        return 0.0
    return system.clock - system.uptime_s


def _evaluated(
    host: Host, plane: ControlPlane, use: FileUse, exits: ComponentLog, booted: float
) -> tuple[Detection | None, str]:
    """Return the hit of a manifest's component, or why that cannot be decided."""
    started = [
        process.started_at
        for process in plane.processes
        if process.component == use.component and process.static
    ]
    if started:
        return _running_hit(host, plane, use, exits, max(started), booted), ""
    if pflag.component_of(use.words) != use.component:
        reason = (
            f"what runs as {use.component} by {use.path} is not known: its command does not name it"
        )
        return None, reason
    # A kubelet whose start is not known is old.
    begun = 0.0
    if host.kubelet_started:
        begun = host.kubelet_started.timestamp()
    if plane.clock - use.mtime < SETTLE_SECONDS or plane.clock - begun < STARTING_SECONDS:
        return None, f"the kubelet may still be at it: {use.component}"
    if exits.lines:
        return _hit(host, use, exits, "does not stay up", None), ""
    return _hit(host, use, exits, "does not start", None), ""


def _running_hit(
    host: Host,
    plane: ControlPlane,
    use: FileUse,
    exits: ComponentLog,
    started: float,
    booted: float,
) -> Detection | None:
    """Return the hit of a component that runs at the moment, but exits repeatedly, or None."""
    lived = _lived(exits)
    if _exits_at_once(plane, exits, started, lived):
        return _hit(host, use, exits, "ends again and again", lived)
    if _restarts(plane, exits, started, booted):
        hit = _hit(host, use, exits, "restarts again and again", lived)
        return replace(hit, severity="warning")
    return None


def _exits_at_once(
    plane: ControlPlane, exits: ComponentLog, started: float, lived: float | None
) -> bool:
    if exits.restart is None or exits.restart < STARTS:
        return False
    if lived is None or lived >= LIVED_SECONDS or plane.clock - started >= SHORT_SECONDS:
        return False
    return _LAST.match(last_word(_lines(exits))) is not None


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
    if any(_LAST.match(line) or _LOST.search(line) for line in _lines(exits)):
        starts = AGAIN_STARTS
    return exits.restart + 1 >= starts


def _lines(exits: ComponentLog) -> list[str]:
    return [one_line(line, 600) for line in exits.lines]


def _lived(exits: ComponentLog) -> float | None:
    if exits.first is None or exits.last is None:
        return None
    return exits.last - exits.first


def _hit(
    host: Host, use: FileUse, exits: ComponentLog, effect: str, lived: float | None
) -> Detection:
    lines, kubelet = _lines(exits), one_line(exits.kubelet or "", 600)
    last = last_word(lines)
    telling = component_log.telling(lines, last, use.component)
    proofs = [EvidenceRef("file", host.host, path=use.path, text=_named(use, telling.line))]
    proofs += _log_proofs(host, exits, (telling.line, last))
    if not last and kubelet:
        proofs.append(EvidenceRef("log", host.host, object="kubelet", text=kubelet))
    because: tuple[str, ...] = ()
    if use.flag is not None and use.flag.value is None:
        because = ("KM105",)
    state = "is well"
    if host.control_plane and host.control_plane.kubelet_unproven:
        state = "runs"
    return Detection(
        f"its manifest is there and the kubelet {state}, but it"
        f" {effect}{_starts(exits)}{_last_start(lived)}{_message(telling.line or kubelet)}"
        f"{_meaning(telling)}{_last_line(telling, last)}",
        tuple(proofs),
        _remedy(use, telling, last, bool(kubelet)),
        host.host,
        host.node,
        use.component,
        because=because,
    )


def _starts(exits: ComponentLog) -> str:
    """Return how often a component was started, for a summary."""
    if not exits.restart:
        return ""
    begun = moment(exits.begun)
    if begun is None:
        return f" ({exits.restart} starts before)"
    return f" ({exits.restart} starts before since {begun:%Y-%m-%dT%H:%M:%SZ})"


def _last_start(lived: float | None) -> str:
    if lived is None:
        return ""
    return f", its last start lived {lived:.0f} s"


def _message(line: str) -> str:
    message = one_line(_without_prefix(line), 240)
    if not message:
        return ""
    return f": {message}"


def _log_proofs(host: Host, exits: ComponentLog, lines: tuple[str, ...]) -> Iterator[EvidenceRef]:
    """Yield the lines of a component's log, each once."""
    path = one_line(exits.path or "", 300)
    for line in dict.fromkeys(filter(None, lines)):
        yield EvidenceRef("log", host.host, path=path, text=line)


def _meaning(telling: Telling) -> str:
    """Return what the line means, for a summary."""
    reading = telling.reading
    if reading is None:
        return " (the last line of its log)" if telling.line else ""
    error = ""
    if reading.error and reading.error not in _message(telling.line):
        error = f": {one_line(reading.error, 160)}"
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


def last_word(lines: list[str]) -> str:
    """Return the last line that says that the program exits, else the last of all, or ""."""
    exits = [line for line in lines if _LAST.match(line)]
    lost = [line for line in lines if _LOST.search(line)]
    for candidates in (exits, lost, lines):
        if candidates:
            return candidates[-1]
    return ""


def _without_prefix(line: str) -> str:
    """Return the message of a klog line."""
    return re.sub(r"^[IWEF]\d{4} \S+ +\d+ [\w.-]+:\d+\] ", "", line)


def _remedy(use: FileUse, telling: Telling, last: str, kubelet: bool) -> str:
    if _LOST.search(last) and telling.line == last:
        return (
            "it could not renew its lock in time: the API server or its etcd is too slow, or takes"
            ' no writes. See etcd\'s log for "took too long" and "slow fdatasync", what its disk'
            " is shared with, and the CPU that the API server gets; the whole log: crictl ps -a"
            f" --name {use.component}"
        )
    if last:
        return (
            f"{_cure(use, telling)}; the"
            " kubelet starts it again within five minutes. The whole log: crictl ps -a --name"
            f" {use.component}, then crictl logs of the newest"
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


def _cure(use: FileUse, telling: Telling) -> str:
    """Return what is done about the line that tells the cause."""
    if telling.reading is None or telling.reading.meaning == CONFIGURATION:
        return f"fix what its last log lines name, in {use.path} or in a file that it is given"
    return message_class.CLASSES[telling.reading.meaning].advice
