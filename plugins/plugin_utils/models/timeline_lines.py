# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What captured lines of the components' logs say about a pod and its siblings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..evidence.document import one_line
from ..parsers import klog
from ..parsers.klog import Line

MAX_KNOWN, MAX_OTHER, SHOWN = 1000, 200, 300
LATEST = 253402300799.0  # the year 9999
MANAGER = "kube-controller-manager"
_PLACES = ("pods", "pod", "Pod", "jobs", "job", "Job")


@dataclass(frozen=True)
class Entry:
    """One thing that happened.

    time: epoch seconds, None where it is not known
    precision: s or us
    where: host and component, or the API
    pod: the name of the pod that it is about, empty for their owner's
    what: one line
    source: api, event or log
    detail: the rest, or nothing
    known: False for a line that names the pod and tells nothing of it: a line of unknown meaning,
    or what every informer gets
    """

    time: float | None
    precision: str
    where: str
    pod: str
    what: str
    source: str
    detail: str = ""
    known: bool = True


class Names:
    """The pods and the owner whose lines are kept.

    pods: their names
    uids: {UID: the pod that has it}
    owner: its name, empty without one
    """

    def __init__(
        self, namespace: str, pods: Iterable[str], uids: Mapping[str, str], owner: str = ""
    ) -> None:
        place = r"(?:(?<![\w/.-])(?P<place>[a-z0-9][-a-z0-9]*)/)?"
        within = (
            r"(?<![A-Za-z0-9.-])(?:{})(?![A-Za-z0-9-])(?!\.[A-Za-z0-9])"
            r"(?:_(?P<of>[a-z0-9][-a-z0-9]*)\()?"
        )
        names = (
            "|".join(re.escape(name) for name in sorted(pods, key=len, reverse=True) if name)
            or "(?!)"
        )
        self._namespace, self._of_uid = namespace, {uid: name for uid, name in uids.items() if uid}
        self._pods = re.compile(place + within.replace("{}", f"(?P<name>{names})"))
        self._owner = re.compile(
            place + within.replace("{}", re.escape(owner) if owner else "(?!)")
        )
        self._uids = re.compile("|".join(re.escape(uid) for uid in self._of_uid) or "(?!)")

    def named(self, text: str) -> list[str]:
        """Return the pods that this text names, in the order of their names."""
        pods = {self._of_uid[match.group()] for match in self._uids.finditer(text)}
        pods.update(match["name"] for match in self._pods.finditer(text) if self._here(match))
        return sorted(pods)

    def owned(self, text: str) -> bool:
        """Return whether this text speaks of the owner."""
        return any(self._here(match) for match in self._owner.finditer(text))

    def _here(self, match: re.Match[str]) -> bool:
        return match["of"] in (None, self._namespace) and match["place"] in (
            None,
            self._namespace,
            *_PLACES,
        )


@dataclass
class Told:
    """What the lines show.

    creators: by pod, the hosts whose controller manager made it
    left_out: how many lines are beyond the bounds
    """

    entries: list[Entry] = field(default_factory=list)
    creators: dict[str, list[str]] = field(default_factory=dict)
    left_out: int = 0

    def add_creator(self, pods: Iterable[str], host: str) -> None:
        """Note the host whose controller manager created these pods."""
        for pod in filter(None, pods):
            hosts = self.creators.setdefault(pod, [])
            if host not in hosts:
                hosts.append(host)


_Words = Callable[[re.Match[str], Line], str]


def _sync(match: re.Match[str], line: Line) -> str:
    source = match.groupdict().get("source") or line.get("source")
    if source in ("", "api"):
        return match["op"]
    return f"{match['op']} from {source}"


def _pleg(dummy: re.Match[str], line: Line) -> str:
    kind = re.search(r'Type"?:\s*"?(\w+)', line.text)
    return f"PLEG: {kind.group(1) if kind else 'an event of the runtime'}"


def _value(match: re.Match[str], line: Line, group: str, *names: str) -> str:
    return match.groupdict().get(group) or line.get(*names) or "?"


def _needs(match: re.Match[str], line: Line) -> str:
    container = _value(match, line, "container", "containerName")
    return (
        f"needs {_value(match, line, 'count', 'deviceNumber')}"
        f" {_value(match, line, 'resource', 'resourceName')} for container {container}"
    )


def _has(match: re.Match[str], line: Line) -> str:
    return (
        f"has {_value(match, line, 'resource', 'resourceName')} already:"
        f" {_value(match, line, 'devices', 'devices')}"
    )


def _gets(match: re.Match[str], line: Line) -> str:
    return (
        f"gets {_value(match, line, 'resource', 'resourceName')}:"
        f" {_value(match, line, 'devices', 'devices')}"
    )


def _rejects(match: re.Match[str], line: Line) -> str:
    reason = match.groupdict().get("why") or ": ".join(
        part for part in (line.get("reason"), line.get("message", "err")) if part
    )
    if reason:
        return f"rejected: {reason}"
    return "rejected"


def _unable(match: re.Match[str], line: Line) -> str:
    reason = line.get("err") or match["why"].strip(" ;:")
    if reason:
        return f"cannot be scheduled: {reason}"
    return "cannot be scheduled"


def _count(match: re.Match[str], line: Line) -> str:
    need = match.groupdict().get("need") or line.get("need", "target")
    done = match.groupdict().get("done") or line.get("creating", "deleting", "deleted")
    if match["which"] == "few":
        act = "creates"
    else:
        act = "deletes"
    text = f"too {match['which']} pods of the Job"
    if need:
        text += f" ({need} needed)"
    if done:
        text += f": {act} {done}"
    return text


def _event(match: re.Match[str], line: Line) -> str:
    return (
        f"event {_value(match, line, 'reason', 'reason')}:"
        f" {_value(match, line, 'message', 'message', 'note')}"
    )


def _hears(match: re.Match[str], dummy: Line) -> str:
    return f"hears of it ({match['op'].lower()}) as {match['kind']}, as every standby does"


def _says(template: str) -> _Words:
    """Return the template with the match's groups or the fields of that name."""
    return lambda match, line: re.sub(
        r"\{(\w+)\}", lambda name: _value(match, line, name[1], name[1]), template
    )


_OPS = "ADD|UPDATE|DELETE|REMOVE|RECONCILE|RESTORE"
_RESOURCE = re.compile(r'(?:allocate \d+ "?|for device plugin )([^"\s]+)')
NEEDS, GETS, SEEN = "needs", "gets", "seen"
# (name, pattern of the message, words): the first that matches counts. Texts of 1.18 to 1.36.
_RULES: tuple[tuple[str, re.Pattern[str], _Words], ...] = tuple(
    (name, re.compile(pattern), words)
    for name, pattern, words in (
        ("sync", rf'SyncLoop \((?P<op>{_OPS}), "(?P<source>\w*)"\)', _sync),
        ("sync", rf"SyncLoop (?P<op>{_OPS})$", _sync),
        ("pleg", r"SyncLoop \(PLEG\)", _pleg),
        (
            NEEDS,
            (
                r'Needs to allocate (?P<count>\d+) "?(?P<resource>[^"\s]+)"? for pod \S+ container'
                r' "?(?P<container>[^"\s]+)'
            ),
            _needs,
        ),
        (NEEDS, r"Need devices to allocate for pod$", _needs),
        (
            "has",
            (
                r"Found pre-allocated devices for resource (?P<resource>\S+) container \S+ in Pod"
                r" [^:]+: (?P<devices>.+)"
            ),
            _has,
        ),
        ("has", r"Found pre-allocated devices for resource on pod$", _has),
        (
            GETS,
            (
                r"Making allocation request for devices (?P<devices>\[.*?\]) for device plugin"
                r" (?P<resource>\S+)"
            ),
            _gets,
        ),
        (GETS, r"Making allocation request for device plugin$", _gets),
        ("rejected", r"Failed to admit pod \S+ - (?P<why>.*)", _rejects),
        ("rejected", r"Predicate failed on Pod: \S+, for reason: (?P<why>.*)", _rejects),
        ("rejected", r"Pod admission denied$|Failed to admit pod\b", _rejects),
        ("schedule", r"[Aa]ttempting to schedule pod\b", _says("tries to schedule it")),
        ("schedule", r"[Aa]bout to try and schedule pod\b", _says("takes it from the queue")),
        (
            "bound",
            r'pod \S+ is bound successfully on node "?(?P<node>[^",\s]+)',
            _says("bound to {node}"),
        ),
        ("bound", r"[Ss]uccessfully bound pod to node$", _says("bound to {node}")),
        ("unable", r"Unable to schedule pod(?P<why>.*)", _unable),
        ("unable", r"Unable to schedule \S+: (?P<why>.*)", _unable),
        (
            SEEN,
            r"(?P<op>[Aa]dd|[Uu]pdate|[Dd]elete) event for (?P<kind>(?:un)?scheduled) pod\b",
            _hears,
        ),
        (
            "created",
            r"Controller (?P<controller>\S+) created pod (?P<pod>\S+)",
            _says("created for {controller}"),
        ),
        ("created", r"Controller created pod$", _says("created for {controller}")),
        (
            "deleted",
            r"Controller (?P<controller>\S+) deleting pod (?P<pod>\S+)",
            _says("deletes it for {controller}"),
        ),
        ("deleted", r"Deleting pod$", _says("deletes it for {controller}")),
        (
            "count",
            (
                r'Too (?P<which>few|many) pods running(?: for)?(?: job)?(?: "[^"]*", need'
                r" (?P<need>\d+), (?:creat|delet)ing (?P<done>\d+))?"
            ),
            _count,
        ),
        (
            "event",
            (
                r"Event\(v1\.ObjectReference\{[^}]*\}\): type: '[^']*' reason: '(?P<reason>[^']*)'"
                r" (?P<message>.*)"
            ),
            _event,
        ),
        ("event", r"Event occurred$", _event),
        ("request", r"HTTP$", _says("{verb} by {userAgent} from {srcIP}: {resp}")),
    )
)


@dataclass(frozen=True)
class _CapturedLine:
    """One captured line that may be about a pod.

    order: its place among all captured lines
    """

    time: float | None
    precision: str
    order: int
    host: str
    component: str
    line: Line

    def position(self) -> tuple[bool, float, int]:
        """Return what sorts lines by time; those without a time are last."""
        return self.time is None, self.time or 0.0, self.order

    def entry(self, rule: str | None, text: str, pod: str) -> Entry:
        """Return what this line reports of one pod."""
        return Entry(
            self.time,
            self.precision,
            f"{self.host} {self.component}".strip(),
            pod,
            text,
            "log",
            one_line(self.line.text, 4 * SHOWN),
            rule not in (None, SEEN),
        )


_Needing = dict[str, tuple[str, list[str]]]  # host: the resource, and the pods that need it


def read(lines: Iterable[Mapping[str, Any]], names: Names) -> Told:
    """Return what these lines report of these pods, and of their owner's controller.

    Lines of wrong shape are skipped.
    """
    report, unknown = Told(), 0
    needing: _Needing = {}
    for captured in sorted(_relevant_lines(lines, names), key=_CapturedLine.position):
        rule, text = _recognised(captured.line)
        pods = _about(rule, captured.line, names, needing, captured.host)
        if not pods:
            continue
        unknown += rule is None
        if len(report.entries) >= MAX_KNOWN or (rule is None and unknown > MAX_OTHER):
            report.left_out += 1
            continue
        report.entries += [captured.entry(rule, text, pod) for pod in pods]
        if captured.component == MANAGER and _creates(rule, text):
            report.add_creator(pods, captured.host)
    return report


def _relevant_lines(lines: Iterable[Mapping[str, Any]], names: Names) -> Iterator[_CapturedLine]:
    """Yield the lines that name a pod or the owner, and all of allocations, which name neither."""
    for order, item in enumerate(lines):
        if not isinstance(item, Mapping) or not isinstance(item.get("text"), str):
            continue
        text = item["text"][: klog.LONGEST]
        if "llocat" in text or names.named(text) or names.owned(text):
            line = klog.parse(text)
            stamp = item.get("time")
            yield _CapturedLine(
                _time(stamp, line),
                "s" if isinstance(stamp, int) else "us",
                order,
                _word(item.get("host")),
                _word(item.get("component")),
                line,
            )


def _creates(rule: str | None, text: str) -> bool:
    """Tell whether a controller manager's line says that it created a pod."""
    return rule == "created" or text.startswith("event SuccessfulCreate: ")


def _recognised(line: Line) -> tuple[str | None, str]:
    for name, pattern, words in _RULES:
        match = pattern.match(line.message)
        if match:
            return name, one_line(words(match, line), SHOWN)
    return None, one_line(line.text, SHOWN)


def _about(rule: str | None, line: Line, names: Names, needing: _Needing, host: str) -> list[str]:
    """Return the pods that a line is about; an empty name stands for their owner."""
    pods = names.named(line.text)
    if rule == NEEDS:
        needing[host] = _resource(line), pods
    if pods:
        return pods
    if rule == GETS and not line.get("pod"):
        return _pods_of_allocation(line, needing, host)
    if rule in ("count", "event") and names.owned(line.text):
        return [""]
    return []


def _pods_of_allocation(line: Line, needing: _Needing, host: str) -> list[str]:
    """Return the pods that an allocation without a name is for: those that needed it last.

    A kubelet admits one pod after the other.
    """
    need = needing.get(host)
    if need is None or need[0] != _resource(line):
        return []
    del needing[host]
    return need[1]


def _resource(line: Line) -> str:
    match = _RESOURCE.search(line.message)
    if match:
        return match.group(1)
    return line.get("resourceName")


def _time(value: Any, line: Line) -> float | None:
    """Epoch seconds that a clock can show, of the capture or else of the line itself."""
    for candidate in (value, line.time):
        if isinstance(candidate, bool) or not isinstance(candidate, (int, float)):
            continue
        if 0 <= candidate <= LATEST and math.isfinite(candidate):
            return float(candidate)
    return None


def _word(value: Any) -> str:
    if isinstance(value, str):
        return one_line(value, 100)
    return ""
