# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a kubelet ends, from the last lines of its journal and what systemd says of its unit. Pure.

Only a line that its process does not survive is asked for its cause (kubelet_starts): the same
words stand in harmless lines. "too many open files" is a watch of a CA file that is tried again,
"unrecognized feature gate" a warning of some distributions, "address already in use" the healthz
server, "Invalid kernel flag" a flag that the kubelet then sets, "using lenient decoding as strict
decoding failed" no failure.

`m` marks texts measured with kubelets v1.18.4 or v1.36.3, by running them or in their strings;
others name their source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ....module_utils.shared import systemd_results as unit_steps
from ...parsers import (
    manager_error as refused_words,
)
from ...parsers import (
    systemd_unit as kubelet_unit,
)
from ...parsers import (
    unit_journal as kubelet_starts,
)
from ...parsers.systemd_unit import Unit
from ...parsers.unit_journal import Last, Start

SWAP, UNKNOWN_FLAG, REMOVED_GATE, BAD_CONFIGURATION = (
    "swap",
    "unknown_flag",
    "removed_gate",
    "bad_configuration",
)
CPU_MANAGER_STATE, MEMORY_MANAGER_STATE, STATE_FILE = (
    "cpu_manager_state",
    "memory_manager_state",
    "state_file",
)
CLIENT_CERTIFICATE, CGROUP_V1, KERNEL_DEFAULTS, CGROUP_DRIVER = (
    "client_certificate",
    "cgroup_v1",
    "kernel_defaults",
    "cgroup_driver",
)
RUNTIME, INOTIFY, LIMITS, PORT_IN_USE, NODE_NAME = (
    "runtime",
    "inotify",
    "limits",
    "port_in_use",
    "node_name",
)
DISK_FULL, OOM_KILL, EXECUTABLE, UNKNOWN = "disk_full", "oom_kill", "executable", "unknown"
CGROUP, STEP, RESOURCES = "cgroup", "step", "resources"

FOLLOW = 20  # lines that other goroutines may still write between a last word and the exit
# Statuses of systemd's own, before the program begins: no kubelet ends with them.
_STATUS = {
    **dict.fromkeys(range(unit_steps.FIRST, unit_steps.LAST + 1), STEP),
    203: EXECUTABLE,
    205: LIMITS,
}
_FAILED = frozenset(("exit-code",)) | kubelet_unit.START_LIMIT

# (cause, text, what). A text begins where the line does, or behind a colon, a comma or a bracket;
# "(?P<q…>\d+)" stands for a quoted part.
_TEXTS = tuple(
    (cause, re.compile(r"(?:^|[:,] |\[)(?:" + text + ")"), what)
    for cause, text, what in (
        # m both; "Running" up to 1.15 (kubernetes-facts 7, k/k#50373, AKSFlexNode#67)
        (SWAP, r"[Rr]unning with swap on is not supported", ""),
        # m 1.36.3; from 1.35 on by default (OpenShell#360, k0s#7264)
        (CGROUP_V1, r"kubelet is configured to not run on a host using cgroup v1", ""),
        # m both; with 1.22 behind "Failed to parse kubelet flag"
        (UNKNOWN_FLAG, r"unknown flag: (?P<w>--[\w.-]+)", "{w}"),
        (UNKNOWN_FLAG, r"unknown shorthand flag: '.' in (?P<w>-\S+)", "{w}"),
        (BAD_CONFIGURATION, r'invalid argument "(?P<q1>\d+)" for "(?P<q2>\d+)" flag', "{q2}={q1}"),
        (
            BAD_CONFIGURATION,
            r"(?:flag needs an argument|bad flag syntax|unknown command):? (?P<w>\S+)",
            "{w}",
        ),
        (BAD_CONFIGURATION, r"Unknown command", ""),
        # m both: klog in 1.18.4, "command failed" in 1.36.3, and there a panic where it stands in the
        # configuration's file
        (REMOVED_GATE, r"unrecognized feature gate: (?P<w>[\w.-]+)", "{w}"),
        # m 1.36.3
        (
            REMOVED_GATE,
            r"cannot set feature gate (?P<w>[\w.-]+) to (?:true|false), feature is locked",
            "{w}",
        ),
        # m both: what a power cut leaves of a configuration
        (
            STATE_FILE,
            (
                r'failed to load Kubelet config file \S+ error kubelet config file "(?P<q1>\d+)"'
                r" was empty"
            ),
            "{q1}",
        ),
        # m both; older ones "Invalid" (k/k#66241 of 2018; microk8s#3091 with 1.22)
        (
            KERNEL_DEFAULTS,
            r"[Ii]nvalid kernel flag: (?P<w>\S+), expected value: \d+, actual value: -?\d+",
            "{w}",
        ),
        # m both; kubernetes-facts 5
        (
            CPU_MANAGER_STATE,
            r'please drain this node and delete the CPU manager checkpoint file "(?P<q1>\d+)"',
            "{q1}",
        ),
        (CPU_MANAGER_STATE, r"start cpu manager error: |\[?cpumanager\] ", ""),
        (
            MEMORY_MANAGER_STATE,
            r'please drain this node and delete the memory manager checkpoint file "(?P<q1>\d+)"',
            "{q1}",
        ),
        (MEMORY_MANAGER_STATE, r"start memory manager error: |\[?memorymanager\] ", ""),
        # k/k#135711, a panic; m 1.36.3 "pod resource information checkpoint file"
        (
            STATE_FILE,
            (
                r"please drain this node and delete (?:the )?pod [a-z ]{1,40}checkpoint file"
                r' "(?P<q1>\d+)"'
            ),
            "{q1}",
        ),
        # m both: the certificate is expired, unreadable or gone, and there is no token to get another
        # (k/k#98150, minikube#11966)
        (CLIENT_CERTIFICATE, r"unable to load bootstrap kubeconfig: ", ""),
        (CLIENT_CERTIFICATE, r"unable to read client-(?:cert|key) (?P<w>\S+) for ", "{w}"),
        # m both (strings): a certificate store that cannot read its file, of the client or of the
        # server
        (
            CLIENT_CERTIFICATE,
            r'could not convert data from "(?P<q1>\d+)" into cert/key pair',
            "{q1}",
        ),
        (
            CLIENT_CERTIFICATE,
            r"failed to (?:load client cert|initialize client certificate manager)",
            "",
        ),
        # m 1.18.4; dockershim, up to 1.23 (k/k#89682, sealer#1447)
        (
            CGROUP_DRIVER,
            (
                r'misconfiguration: kubelet cgroup driver: "(?P<q1>\d+)" is different from docker'
                r' cgroup driver: "(?P<q2>\d+)"'
            ),
            "kubelet {q1}, docker {q2}",
        ),
        # m 1.36.3; from 1.26 on (k/website#38385)
        (
            RUNTIME,
            (
                r"validate service connection: (?:validate )?CRI v1 \w+ API (?:is not \w+ )?for"
                r' endpoint "(?P<q1>\d+)": rpc error: code = (?P<w>\w+)'
            ),
            "{q1}: {w}",
        ),
        (RUNTIME, r"validate service connection: ", ""),
        # kubeadm#2945 with 1.24.7
        (RUNTIME, r"unable to determine runtime API version: ", ""),
        # m 1.18.4 (k/k#66457, k/k#73189, kubernetes-the-hard-way#304)
        (RUNTIME, r"failed to get docker version: ", "docker"),
        (
            RUNTIME,
            (
                r"get remote runtime typed version failed: |failed to create kubelet: rpc error:"
                r" code = "
            ),
            "",
        ),
        # k/k#58081, tarmak#756, seen with v1.18.4 and v1.36.3 (kubernetes-facts 6): instances, and
        # watches, whose end reads like that of a disk
        (INOTIFY, r"inotify_init1?: too many open files", "max_user_instances"),
        (
            INOTIFY,
            r"(?:failed to create|error creating) fsnotify watcher: too many open files",
            "max_user_instances",
        ),
        (
            INOTIFY,
            r"(?:inotify_add_watch|couldn't watch|failed to watch) \S+: no space left on device",
            "max_user_watches",
        ),
        # k/k#112364, minikube#4500
        (PORT_IN_USE, r"listen (?:tcp|udp)[46]? (?P<w>\S+): bind: address already in use", "{w}"),
        # k/k#61937, k/k#96701: the errno is of the cgroup file system, and no disk is full
        (
            CGROUP,
            r"(?P<v>\w{1,40}) (?P<w>/sys/fs/cgroup\S*): (?P<x>no space left on device|cannot"
            r" allocate memory|read-only file system|permission denied"
            r"|operation not permitted|device or resource busy|no such file or directory|invalid"
            r" argument|input/output error)",
            "{v} {w}: {x}",
        ),
        # Only with the path that it is about, on a file system that is on a disk or in memory
        (
            DISK_FULL,
            r"(?:mkdir|mkdirat|open|openat|write|rename|symlink|link|create|truncate|sync|fsync|close|copy) "
            r"(?P<w>/(?!sys/|proc/|dev/(?!shm))[^:]+): (?:no space left on device|disk quota"
            r" exceeded)",
            "{w}",
        ),
        # m both
        (
            BAD_CONFIGURATION,
            r"failed to load [Kk]ubelet (?:config|dropin) file|failed to validate kubelet"
            r" (?:configuration|flags)"
            r"|invalid configuration: |unable to load client CA file |strict decoding error:"
            r" |Failed to load kubelet config file: "
            r"|Failed to validate kubelet (?:configuration|flags): ",
            None,
        ),
    )
)
# Written before klog was structured: "Failed to start cAdvisor inotify_init: …" has no colon.
_GLUED = re.compile(r"^(Failed to start (?:ContainerManager|cAdvisor)) (?!:)")
_FILE = re.compile(
    r"(?:[Kk]ubelet (?:config|dropin) file,? (?:path: )?|client CA file |config file"
    r' )(?:"(?P<q1>\d+)"|(?P<w>[^\s",]+?)(?=:?(?:[\s,]|$)))'
)
_FIELD = re.compile(
    r'KubeletConfiguration\.(?P<w>[\w.]+)|unknown field "(?P<q1>\d+)"|invalid configuration:'
    r" (?P<x>\w+) \(--|yaml: (?P<y>line \d+)"
)
_EXPIRED = re.compile(
    r"[Pp]art of the existing bootstrap client certificate(?: in (?P<w>\S+))? is expired:"
    r" (?P<x>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4})"
)
# k/k#47695 "cannot modify"; microshift#761 (1.21) "is not allowed to modify"; 1.7 did not quote the
# names
_NAME = re.compile(
    r'nodes "\d+" is forbidden: node "(?P<q1>\d+)" (?:is not allowed to|cannot) modify node'
    r' "(?P<q2>\d+)"'
)
# m 1.36.3, whose API server, since nodes are told apart by selectors (beta with 1.32), does not
# even let it look whether there is such a Node
_UNSEEN = re.compile(
    r'nodes "(?P<q2>\d+)" is forbidden: User "(?P<q1>\d+)" cannot get resource "\d+" in API group'
    r' "\d+" at the cluster scope: '
    r"node '[^']{1,253}' cannot read '[^']{1,253}', only its own Node object"
)
_USER = "system:node:"


@dataclass(frozen=True)
class Death:
    """cause: one of the words above; what: the flag, gate, file, port … that it names, if any.

    Line: the line that says so.

    certain: the process ended within the same start, with the status that such a line ends with,
    and systemd's unit says the same.
    """

    cause: str
    what: str = ""
    line: str = ""
    certain: bool = False


def death(lines: Sequence[Any], facts: Any) -> Death | None:
    """Why this kubelet ends, by the newest start that ended.

    None where none has ended, or where it runs without having been started again.

    lines: as `journalctl -u UNIT -o short-iso` prints them; facts: the evidence of its unit. While
    a newer process runs nothing is certain. A kubelet that runs and may not register its node is
    `node_name`, which it does not die of.
    """
    unit = kubelet_unit.unit(facts)
    found = kubelet_starts.starts(lines if isinstance(lines, (list, tuple)) else ())
    if unit.active == "inactive" and unit.result == "success":  # stopped, or never started
        return None
    if not found:
        return _by_unit(None, unit)
    if unit.runs and found[-1].exit is None:
        refused = _name(found[-1])
        again = bool(unit.restarts) or unit.restarts is None
        return refused or (
            _death(found[-2], unit)
            if again and len(found) > 1 and found[-2].exit is not None
            else None
        )
    start = (
        next((one for one in reversed(found) if one.exit is not None), found[-1])
        if unit.runs
        else found[-1]
    )
    return _death(start, unit)


def repeated(lines: Sequence[Any], facts: Any) -> Death | None:
    """What the last two starts that ended both died of, by what systemd's own lines say of their
    ends; None unless both are certain.

    Between two deaths of a kubelet that is started again and again its unit tells of the new
    process, so that death() is not certain.
    """
    unit = kubelet_unit.unit(facts)
    ended = [
        one
        for one in kubelet_starts.starts(lines if isinstance(lines, (list, tuple)) else ())
        if one.exit is not None
    ][-2:]
    told = [
        _death(one, replace(unit, status=one.exit[1], result=one.result))
        for one in ended
        if one.exit is not None
    ]
    if len(told) < 2 or not all(one is not None and one.certain for one in told):
        return None
    older, newer = told
    return (
        newer
        if older and newer and (older.cause, older.what) == (newer.cause, newer.what)
        else None
    )


def said(lines: object) -> Death | None:
    """Return what the newest start says of its end, whatever systemd says of the unit now.

    One that was stopped later died before.
    """
    found = kubelet_starts.starts(lines if isinstance(lines, (list, tuple)) else ())
    final = kubelet_starts.last(found[-1]) if found else None
    if final is None:
        return None
    cause, what = _cause(final)
    return Death(cause, _clean(what), _clean(final.line, 400))


def _death(start: Start, unit: Unit) -> Death | None:
    if start.exit == ("exited", 0):
        return None
    known = _by_unit(start, unit)
    if known is not None:
        return known
    final = kubelet_starts.last(start)
    if final is None:
        return _name(start) or _nameless(start, unit)
    cause, what = _cause(final)
    if cause == CLIENT_CERTIFICATE and not what:
        what = _expired(start)
    return Death(
        cause,
        _clean(what),
        _clean(final.line, 400),
        cause != UNKNOWN and _agrees(start, final, unit),
    )


def _by_unit(start: Start | None, unit: Unit) -> Death | None:
    """What systemd itself knows the cause of."""
    exited = start.exit if start is not None else None
    line = (
        _clean(
            next(
                (one.raw for one in start.lines if "Failed at step " in one.text), start.exit_line
            ),
            400,
        )
        if start is not None
        else ""
    )
    if unit.result == "oom-kill" or (start is not None and start.result == "oom-kill"):
        return Death(OOM_KILL, "", line, unit.result == "oom-kill")
    if unit.result == "resources":  # systemd came to no process, whatever an earlier one said
        return Death(RESOURCES, "", "", True)
    if exited is not None and exited[0] == "exited" and exited[1] in _STATUS:
        return Death(
            _STATUS[exited[1]],
            _step(exited[1]),
            line,
            unit.status == exited[1] and unit.result in _FAILED,
        )
    if exited is None and unit.status in _STATUS and unit.result in _FAILED:
        return Death(_STATUS[unit.status], _step(unit.status), line, True)
    return None


def _step(status: int) -> str:
    """The step that systemd could not make, as it writes it.

    "" for those that have a cause of their own.
    """
    if _STATUS[status] != STEP:
        return ""
    name = unit_steps.STEPS.get(status, ("",))[0]
    return f"{status}/{name}" if name else str(status)


def _nameless(start: Start, unit: Unit) -> Death | None:
    """An end without a last word: killed, or a kubelet that says nothing."""
    if start.exit is not None:
        line = kubelet_starts.last_error(start) or (
            start.lines[-1].raw if start.lines else start.exit_line
        )
        return Death(
            UNKNOWN,
            f"{'status' if start.exit[0] == 'exited' else 'signal'} {start.exit[1]}",
            _clean(line, 400),
        )
    if unit.result in ("", "success"):
        return None
    line = kubelet_starts.last_error(start) or (start.lines[-1].raw if start.lines else "")
    return Death(UNKNOWN, unit.result, _clean(line, 400))


def _cause(final: Last) -> tuple[str, str]:
    text = _GLUED.sub(r"\1: ", final.text)
    refused = refused_words.meant(text, final.quoted)
    if refused is not None:
        return BAD_CONFIGURATION, refused
    for cause, pattern, what in _TEXTS:
        match = pattern.search(text)
        if match is None:
            continue
        if what is None:
            return cause, ": ".join(
                filter(
                    None,
                    (
                        _named(_FILE.search(text), final.quoted),
                        _named(_FIELD.search(text), final.quoted),
                    ),
                )
            )
        if cause == KERNEL_DEFAULTS:
            return cause, ", ".join(sorted({one.group("w") for one in pattern.finditer(text)}))
        told = {
            name: _part(value, final.quoted) if name.startswith("q") else value or ""
            for name, value in match.groupdict().items()
        }
        what = what.format(**told)
        # the server's certificate is the kubelet's own: it makes another where the file is gone
        return (
            STATE_FILE if cause == CLIENT_CERTIFICATE and "kubelet-server" in what else cause
        ), what
    return UNKNOWN, ""


def _agrees(start: Start, final: Last, unit: Unit) -> bool:
    """Whether the way in which the process ended is the one that such a line has."""
    return (
        final.own
        and final.followed <= FOLLOW
        and start.exit == ("exited", final.status)
        and unit.status == final.status
        and unit.result in _FAILED
    )


def _expired(start: Start) -> str:
    """The date up to which the client certificate was good, as the lines before the last one
    tell it.
    """
    for line, _raw in kubelet_starts.about(start, "existing bootstrap client certificate"):
        match = _EXPIRED.search(kubelet_starts.masked(line.get("err") or line.text)[0])
        if match:
            return ": ".join(filter(None, (match.group("w"), f"expired {match.group('x')}")))
    return ""


def _name(start: Start) -> Death | None:
    """The API server refuses the node's name: the certificate is another node's."""
    found = misnamed(start)
    return (
        Death(NODE_NAME, f"certificate of {found[0]}, node {found[1]}", found[2]) if found else None
    )


def misnamed(start: Start) -> tuple[str, str, str] | None:
    """(the node of the certificate, the name that was refused, the line that says so), where
    that is the last word about registering.
    """
    for line, raw in kubelet_starts.about(start, "register"):
        if line.message.startswith("Successfully registered node"):
            return None
        if line.message.startswith("Unable to register node"):
            text, quoted = kubelet_starts.masked(line.get("err") or line.text)
            match = _NAME.search(text) or _UNSEEN.search(text)
            if match:
                return (
                    _clean(_part(match.group("q1"), quoted).removeprefix(_USER)),
                    _clean(_part(match.group("q2"), quoted)),
                    _clean(raw, 400),
                )
    return None


def _named(match: re.Match[str] | None, quoted: Sequence[str]) -> str:
    told = match.groupdict() if match else {}
    return next(
        (
            _part(value, quoted) if name.startswith("q") else value
            for name, value in told.items()
            if value
        ),
        "",
    )


def _part(number: str | None, quoted: Sequence[str]) -> str:
    return quoted[int(number)] if number and len(number) < 6 and int(number) < len(quoted) else ""


def _clean(text: str, longest: int = 200) -> str:
    """What stands in a report: one line of printable characters."""
    kept: Iterable[str] = (char if char.isprintable() else " " for char in text[:longest])
    return "".join(kept).strip()
