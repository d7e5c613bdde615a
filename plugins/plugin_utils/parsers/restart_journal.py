# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runtime, kubelet and kernel log of the end of a container, as journalctl prints it. Pure.

The texts are those of containerd 1.6 to 2.2, CRI-O 1.36, kubelets 1.14 to 1.36 and Linux 3.10 to
6.12, by their sources.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import klog

MADE, STOP, ENDED, OOM = "made", "stop", "ended", "oom"
LIVENESS, STARTUP, DEFINITION = "liveness", "startup", "definition"
NO_ATTEMPT = -1  # of a runtime that does not log the number of a start
_TIME = re.compile(r"(\d{9,11}(?:\.\d{1,9})?) ")
_ID = r"([0-9a-f]{64})"
# Quotation marks are escaped within msg="…", and twice where a format has %q of such a text.
_MARK = r'\\*"'
_CONTAINERD_MADE = re.compile(
    rf"CreateContainer within sandbox {_MARK}{_ID}{_MARK} for .*?"
    rf"(?:Name:([\w-]+),|name:{_MARK}([\w-]+){_MARK}).*? returns container id {_MARK}{_ID}"
)
_ATTEMPT = re.compile(r"[Aa]ttempt:(\d{1,6})")
_CRIO_MADE = re.compile(rf"Created container {_ID}: ([\w.-]+/[\w.-]+)/([\w-]+)")
_CONTAINERD_STOP = re.compile(rf"StopContainer for {_MARK}{_ID}{_MARK} with timeout (\d{{1,6}})")
_CRIO_STOP = re.compile(rf"Stopping container: {_ID} \(timeout: (\d{{1,6}})s\)")
# An exit event of another id is that of a command within the container. 0 is left out.
_EXIT_EVENTS = (
    re.compile(rf"exit event container_id:{_MARK}{_ID}{_MARK}\s+id:{_MARK}\1{_MARK}"),
    re.compile(rf"TaskExit\{{ContainerID:{_ID},ID:\1,"),
)
_EXIT_STATUS = re.compile(r"(?:exit_status:|ExitStatus:)(\d{1,3})")
_TASK_OOM = re.compile(rf"TaskOOM.*?{_ID}")
# A kubelet of another release may read another definition from the same manifest.
_STOPPED = re.compile(
    r"Container ([\w-]{1,63}) (?:failed (liveness|startup) probe|(definition) changed)"
)
# 1.14 to 1.19: 'Liveness probe for "POD_NAMESPACE(UID):CONTAINER" failed (failure): OUTPUT'
_OLD_PROBE = re.compile(
    r'(Liveness|Startup) probe for "([^"]{1,600})" (?:failed \([^)]{1,20}\)|errored): (.*)'
)
_BACK_OFF = re.compile(r"back-off ([0-9hms.]{2,12}) restarting failed container=([\w-]+) pod=(\S+)")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_VICTIM = re.compile(r"Killed process (\d+)(?:, UID \d+,)? \(([^)]{1,15})\)")
_CONSTRAINT = re.compile(
    r"oom-kill:constraint=(\w+),.*?task_memcg=(\S+?),task=(.{1,15}?),pid=(\d+)"
)
_OF_GROUP = re.compile(r"Tasks in (\S+) are going to be killed due to memory\.oom\.group")
# Up to Linux 4.20; a control group's line begins with "Memory cgroup out of memory".
_OLD_GLOBAL = re.compile(r"Out of memory: Kill process \d+ \((.{1,15})\) ")
_OLD_LIMIT = re.compile(r"Task in (\S+) killed as a result of limit of (\S+)")


@dataclass(frozen=True)
class RuntimeEvent:
    """What the runtime logs of one container.

    component, pod, attempt, sandbox: of one that is made, as far as the runtime tells them;
    attempt is NO_ATTEMPT where it does not
    timeout: of a stop, in seconds
    code: of an end, the exit code
    """

    at: float
    kind: str
    id: str
    component: str = ""
    pod: str = ""
    attempt: int = NO_ATTEMPT
    sandbox: str = ""
    timeout: int = 0
    text: str = ""
    code: int = 0


@dataclass(frozen=True)
class KubeletEvent:
    """What the kubelet logs of one container.

    kind: liveness or startup for a probe that fails, definition for one that changed
    output: the answer of the probe
    back_off: how long the kubelet waits before the next start, in seconds
    """

    at: float
    kind: str = ""
    output: str = ""
    back_off: float = 0.0
    text: str = ""


@dataclass(frozen=True)
class OomKill:
    """A process that the kernel's OOM killer ended.

    within: its cgroup, where the line tells it
    of_group: whether the limit of a cgroup was reached, None where the line does not tell
    """

    at: float
    name: str
    within: str = ""
    of_group: bool | None = None
    text: str = ""


def _timed(line: str) -> tuple[float, str] | None:
    """Return the time of a line and its text without that time."""
    time = _TIME.match(line)
    if time is None:
        return None
    return float(time.group(1)), line[time.end() :]


def runtime_event(line: str) -> RuntimeEvent | None:
    """Return what a line of containerd or CRI-O tells, or None."""
    timed = _timed(line)
    if timed is None:
        return None
    at, text = timed
    return _made(at, text) or _ended(at, text)


def _made(at: float, text: str) -> RuntimeEvent | None:
    match = _CONTAINERD_MADE.search(text)
    if match is not None:
        number = _number(_ATTEMPT, text)
        component = match.group(2) or match.group(3)
        return RuntimeEvent(
            at, MADE, match.group(4), component, "", number, match.group(1), 0, text
        )
    match = _CRIO_MADE.search(text)
    if match is None:
        return None
    return RuntimeEvent(at, MADE, match.group(1), match.group(3), match.group(2), text=text)


def _number(pattern: re.Pattern[str], text: str) -> int:
    """Return the number that a text has, 0 where it is left out, as protobuf does."""
    match = pattern.search(text)
    if match is None:
        return 0
    return int(match.group(1))


def _ended(at: float, text: str) -> RuntimeEvent | None:
    for pattern in (_CONTAINERD_STOP, _CRIO_STOP):
        stop = pattern.search(text)
        if stop is not None:
            return RuntimeEvent(at, STOP, stop.group(1), timeout=int(stop.group(2)), text=text)
    for pattern in _EXIT_EVENTS:
        exited = pattern.search(text)
        if exited is not None:
            code = _number(_EXIT_STATUS, text)
            return RuntimeEvent(at, ENDED, exited.group(1), text=text, code=code)
    oom = _TASK_OOM.search(text)
    if oom is not None:
        return RuntimeEvent(at, OOM, oom.group(1), text=text)
    return None


def kubelet_event(line: str, component: str, pod: str) -> KubeletEvent | None:
    """Return what a line of the kubelet tells of a component's container, or None.

    pod: namespace/name of the static pod, where the name has no node; other pods have containers of
    the same name
    """
    timed = _timed(line)
    if timed is None:
        return None
    at, text = timed
    entry = klog.parse(text)
    return _structured(at, text, entry, component, pod) or _plain(at, text, component, pod)


def _structured(
    at: float, text: str, entry: klog.Line, component: str, pod: str
) -> KubeletEvent | None:
    """Return what a line with fields tells (1.20 and newer)."""
    if not entry.get("pod").startswith(f"{pod}-"):
        return None
    if entry.get("containerName") == component:
        kind = entry.get("probeType").lower()
        if kind in (LIVENESS, STARTUP):
            return KubeletEvent(at, kind, entry.get("output", "err"), text=text)
        kind = _stopped_for(entry.get("containerMessage"), component)
        if kind:
            return KubeletEvent(at, kind, text=text)
    # A container whose startup probe has not been asked yet is "unhealthy" to it too.
    if entry.get("probe") == LIVENESS and entry.get("status") == "unhealthy":
        return KubeletEvent(at, LIVENESS, text=text)
    return None


def _stopped_for(text: str, component: str) -> str:
    """Return for what the kubelet stops the container of this name, or an empty text."""
    match = _STOPPED.search(text)
    if match is None or match.group(1) != component:
        return ""
    return match.group(2) or match.group(3)


def _plain(at: float, text: str, component: str, pod: str) -> KubeletEvent | None:
    """Return what a line without fields tells (up to 1.19), and a back-off of any release."""
    namespace, _slash, name = pod.partition("/")
    back_off = _BACK_OFF.search(text.replace("Back-off", "back-off"))
    if back_off is not None:
        if back_off.group(2) != component or not back_off.group(3).startswith(f"{name}-"):
            return None
        return KubeletEvent(at, back_off=_seconds(back_off.group(1)), text=text)
    probe = _OLD_PROBE.search(text)
    if probe is not None:
        if not re.fullmatch(
            rf"{re.escape(name)}-.*_{re.escape(namespace)}\(.*\):{re.escape(component)}",
            probe.group(2),
        ):
            return None
        return KubeletEvent(at, probe.group(1).lower(), probe.group(3), text=text)
    kind = _stopped_for(text, component)
    if not kind or f" {name}-" not in text:
        return None
    return KubeletEvent(at, kind, text=text)


def _seconds(duration: str) -> float:
    """Return a duration of Go, such as 2m40s, in seconds."""
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION.findall(duration))


def oom_kills(lines: list[str]) -> list[OomKill]:
    """Return the processes that the kernel's OOM killer ended.

    The line of the limit comes before the one that names the victim, up to Linux 4.18 without its
    name. A group that is killed as a whole has one line, and one more for each victim.
    """
    kills: list[OomKill] = []
    limit: OomKill | None = None
    group: OomKill | None = None
    for line in lines:
        timed = _timed(line)
        if timed is None:
            continue
        reached = _limit(*timed)
        if reached is not None:
            limit, group = reached, None
            continue
        together = _OF_GROUP.search(timed[1])
        if together is not None:
            group = OomKill(timed[0], "", together.group(1))
            continue
        victim = _VICTIM.search(timed[1])
        if victim is not None:
            kills.append(_kill(timed[0], timed[1], victim.group(2), limit or group))
            limit = None
    return kills


def _limit(at: float, text: str) -> OomKill | None:
    """Return what a line tells of the limit that was reached."""
    constraint = _CONSTRAINT.search(text)
    if constraint is not None:
        of_group = constraint.group(1) == "CONSTRAINT_MEMCG"
        return OomKill(at, constraint.group(3), constraint.group(2), of_group, text)
    old = _OLD_LIMIT.search(text)
    if old is not None:
        return OomKill(at, "", old.group(1), True, text)
    machine = _OLD_GLOBAL.search(text)
    if machine is not None:
        return OomKill(at, machine.group(1), "", False, text)
    return None


def _kill(at: float, text: str, name: str, limit: OomKill | None) -> OomKill:
    within, of_group = "", None
    # The kernel keeps 15 characters of a name.
    if limit is not None and limit.name in ("", name) and at - limit.at < 60:
        within, of_group = limit.within, limit.of_group
    if of_group is None and "Memory cgroup out of memory" in text:
        of_group = True
    elif of_group is None and "Out of memory" in text:
        of_group = False
    return OomKill(at, name, within, of_group, text)
