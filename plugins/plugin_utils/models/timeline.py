# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timeline of one pod, from what the API, its events and captured log lines say.

Pure, over untrusted data: whatever has a wrong shape is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...module_utils.shared import pod_rejection
from ...module_utils.shared.text import counted
from ..evidence import contract
from ..evidence.answers.cluster.pod import (
    Condition,
    FieldManager,
    Pod,
    PodContainer,
    PodEvent,
    PodOwner,
    TimedPod,
)
from ..evidence.document import one_line
from .cluster import Cluster
from .timeline_lines import LATEST, SHOWN, Entry, Names, read

API, NONE = "api", "no timeline of a pod: "
MAX_PODS, MAX_EVENTS, MAX_PARTS, LONGEST = 60, 600, 40, 1000
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)")
# Within a second of which the API says no more, things are shown in the order in which they happen
# to a pod.
OWNER, CREATED, SCHEDULED, ACCEPTED, EVENT, STARTED, READY, ENDED, DELETED, CLOSED = range(10)
_RANKS = {
    "SuccessfulCreate": CREATED,
    "Scheduled": SCHEDULED,
    "Killing": ENDED,
    "SuccessfulDelete": DELETED,
    "Completed": CLOSED,
}
_Ranked = tuple[int, Entry]


@dataclass(frozen=True)
class Timeline:
    """The timeline of one pod.

    pod: namespace/name
    name: as entries have it
    about: what it is, in words
    uid: empty where it is not known
    """

    pod: str
    name: str
    uid: str
    about: str
    entries: tuple[Entry, ...]


def of_clusters(
    clusters: Iterable[Cluster], lines: Iterable[Mapping[str, Any]] = ()
) -> tuple[tuple[Timeline, ...], tuple[str, ...]]:
    """Return the timelines of this run's pods, and a sentence for each that it lacks."""
    timelines: list[Timeline] = []
    lacking: list[str] = []
    unknown: list[str] = []
    lines = list(lines)
    for cluster in clusters:
        record = _map(_map(cluster.api).get("pod"))
        status, reason = (
            record.get("status"),
            one_line(_text(record.get("error")) or _text(record.get("status"))),
        )
        if status == "ok":
            answer = contract.decoded(record.get("data"), Pod).answer
            if answer.name:  # else no pod was rejected
                timelines.append(_described(answer, lines))
                if record.get("truncated"):
                    lacking.append(
                        f"the timeline of {timelines[-1].pod} is not complete: there was more than"
                        " time or room for"
                    )
        elif record:
            (unknown if status == "absent" else lacking).append(f"{NONE}{reason}")
    # In one of several clusters it is enough.
    return tuple(timelines), tuple(dict.fromkeys(lacking + ([] if timelines else unknown)))


def describe(pod_data: Mapping[str, Any], lines: Iterable[Mapping[str, Any]] = ()) -> Timeline:
    """Return the timeline of the collector pod's data, with what it is."""
    return _described(contract.decoded(pod_data, Pod).answer, lines)


def _described(answer: Pod, lines: Iterable[Mapping[str, Any]]) -> Timeline:
    owner = _owner(answer)
    about = f"pod of {owner}" if owner else "a pod without an owner"
    if answer.pod is None:
        about = f"pod of {owner}, " if owner else "a pod "
        about += "which is no more: what others report of it"
    return Timeline(
        f"{_text(answer.namespace)}/{_text(answer.name)}",
        _text(answer.name),
        _text(answer.uid),
        about,
        _entries(answer, lines),
    )


def timeline(
    pod_data: Mapping[str, Any], lines: Iterable[Mapping[str, Any]] = ()
) -> tuple[Entry, ...]:
    """Return what happened to a pod, its siblings and their owner, in the order of time.

    What has no time comes last. Times that the API has in seconds come before finer ones.

    pod_data: the data of the collector pod. lines: captured log lines, {"time": epoch seconds as a
    float, "host", "component", "source", "text"}.
    """
    return _entries(contract.decoded(pod_data, Pod).answer, lines)


def _entries(answer: Pod, lines: Iterable[Mapping[str, Any]]) -> tuple[Entry, ...]:
    pods, events = _pods(answer), answer.events[:MAX_EVENTS]
    names = _uids(answer, pods, events)
    report = read(
        lines,
        Names(
            _text(answer.namespace),
            names,
            {uid: name for name, uid in names.items()},
            _text(_of(answer.owner).name),
        ),
    )
    ranked: list[_Ranked] = list(_of_owner(answer))
    for pod in pods:
        ranked += _of_pod(pod, _owner(answer), report.creators.get(_text(pod.name), []))
    ranked += [_of_event(event, names) for event in events]
    ranked += [(EVENT, entry) for entry in report.entries]
    entries = [entry for _rank, entry in sorted(ranked, key=_order)]
    if report.left_out:
        notice = f"{counted(report.left_out, 'more line')} of the logs about these pods left out"
        entries.append(Entry(None, "s", "", "", notice, "log"))
    return tuple(entries)


def _uids(answer: Pod, pods: Iterable[TimedPod], events: Iterable[PodEvent]) -> dict[str, str]:
    """Map the pod, its siblings and the pods of events to their uids, empty where not known."""
    names = {_text(pod.name): _text(pod.uid) for pod in pods}
    main = _text(answer.name)
    names[main] = names.get(main) or _text(answer.uid)
    for event in events:
        for name, uid in _pods_of_event(event):
            if name and not names.get(name):
                names[name] = uid
    return names


def _pods_of_event(event: PodEvent) -> Iterator[tuple[str, str]]:
    """Yield (name, uid) of the pods that an event names."""
    yield _text(event.pod), ""
    if event.kind == "Pod":
        yield _text(event.name), _text(event.uid)


def _order(pair: _Ranked) -> tuple[bool, int, bool, float, int]:
    rank, entry = pair
    when = entry.time or 0.0
    return entry.time is None, int(when), entry.precision == "us", when, rank


def _of_owner(answer: Pod) -> Iterator[_Ranked]:
    owner, name = _of(answer.owner), _owner(answer)
    by = _manager(owner.managers)
    yield from _at(OWNER, owner.created, API, "", f"{name} created" + (f" by {by}" if by else ""))
    for condition in owner.conditions[:MAX_PARTS]:
        if condition.status == "True":
            yield from _at(
                CLOSED,
                condition.time,
                API,
                "",
                f"{name}: {_joined(condition.type, condition.reason, condition.message)}",
            )
    yield from _at(DELETED, owner.deleted, API, "", f"{name} deleted")


def _of_pod(pod: TimedPod, owner: str, hosts: list[str]) -> Iterator[_Ranked]:
    """Yield what the object itself contains."""
    name, node = _text(pod.name), _text(pod.node)
    yield from _at(
        CREATED,
        pod.created,
        API,
        name,
        _created(pod, owner, hosts),
        "asks for " + _listed(pod.asks),
    )
    for condition in pod.conditions[:MAX_PARTS]:
        yield from _of_condition(pod, condition)
    reason = _joined("", pod.reason, pod.message)
    if pod_rejection.rejected(
        {"status": {key: _text(getattr(pod, key)) for key in ("phase", "reason", "message")}}
    ):
        times = (pod.rejected_at, pod.started, pod.finished_at, pod.created)
        when = next(filter(None, times), None)
        yield from _at(EVENT, when, API, name, f"rejected by the kubelet of {node}: {reason}")
    else:
        yield from _at(ACCEPTED, pod.started, API, name, f"the kubelet of {node} took it up")
        yield from _of_run(pod, name, reason)
    yield from _at(
        DELETED,
        pod.deletion_requested or pod.deleted,
        API,
        name,
        _deletion(pod),
    )


def _of_run(pod: TimedPod, name: str, reason: str) -> Iterator[_Ranked]:
    """Yield what the containers of an accepted pod did, and how the pod ended."""
    for container in pod.containers[:MAX_PARTS]:
        yield from _of_container(name, container)
    if pod.phase in ("Succeeded", "Failed"):
        end = _text(pod.phase).lower()
        if reason:
            end += f": {reason}"
        yield from _at(ENDED, pod.finished_at, API, name, end)


def _deletion(pod: TimedPod) -> str:
    text = "deletion asked for"
    if pod.grace is not None:
        text += f", {pod.grace} s given to end"
    holds = [_text(finalizer) for finalizer in pod.finalizers if finalizer]
    if holds:
        text += f"; held by {', '.join(holds)}"
    return text


def _created(pod: TimedPod, owner: str, hosts: list[str]) -> str:
    text = f"created{_creator(pod, hosts)}"
    if owner:
        text += f" for {owner}"
    requests = (pod.requests or {}).items()
    devices = {name: value for name, value in requests if "/" in name}
    if devices:
        text += f"; asks for {_listed(devices)}"
    return text + _placement(pod)


def _creator(pod: TimedPod, hosts: list[str]) -> str:
    by = _manager(pod.managers)
    if hosts:
        return f" by {by or 'kube-controller-manager'} of {' and '.join(hosts)}"
    if by:
        return f" by {by}"
    return ""


def _placement(pod: TimedPod) -> str:
    """Return who named the node, where no scheduler is known to have done so."""
    node, placed = _text(pod.node), pod.placed
    if node and placed is True:
        return f"; node {node} named by its author"
    if node and placed is None:
        return (
            f"; on node {node} (who named it is not recorded; schedulerName {_text(pod.scheduler)})"
        )
    return ""


def _of_condition(pod: TimedPod, condition: Condition) -> Iterator[_Ranked]:
    kind, name, reason = (
        condition.type,
        _text(pod.name),
        _joined("", condition.reason, condition.message),
    )
    if kind == "PodScheduled" and condition.status == "False":
        yield from _at(SCHEDULED, condition.time, API, name, f"not scheduled: {reason}")
    elif kind == "PodScheduled" and pod.placed is False:
        yield from _at(
            SCHEDULED,
            condition.time,
            API,
            name,
            f"scheduled to {_text(pod.node)} by {_text(pod.scheduler)}",
        )
    elif kind == "Ready" and condition.status == "True":
        yield from _at(READY, condition.time, API, name, "ready")
    elif kind == "DisruptionTarget" and condition.status == "True":
        yield from _at(ENDED, condition.time, API, name, f"to be disrupted: {reason}")


def _of_container(pod: str, container: PodContainer) -> Iterator[_Ranked]:
    title = f"{'init container' if container.init else 'container'} {_text(container.name)}"
    for state, suffix in ((container.before, " (a former run)"), (container.now, "")):
        if state is None:
            continue
        yield from _at(STARTED, state.started, API, pod, f"{title} started{suffix}")
        reason = _joined(
            f"exit code {state.exit_code}" if state.exit_code is not None else "",
            state.reason,
            state.message,
        )
        yield from _at(ENDED, state.finished, API, pod, f"{title} ended{suffix}: {reason}")


def _of_event(event: PodEvent, names: Mapping[str, str]) -> _Ranked:
    name, uid, reason = (
        _text(event.name),
        _text(event.uid),
        _text(event.reason),
    )
    if event.kind == "Pod":
        pod = name
    else:
        pod = _text(event.pod)
    if event.kind == "Pod" and uid and names.get(name) != uid:
        pod = f"{name} (uid {uid})"  # another one that had the name
    time, precision = _time(event.first)
    if event.count is not None and event.count > 1:
        more = one_line(f"({event.count} times, last {_text(event.last)})")
    else:
        more = ""
    source = " ".join(part for part in (_text(event.host), _text(event.component)) if part)
    return _RANKS.get(reason, EVENT), Entry(
        time,
        precision,
        one_line(source or "event", 100),
        pod,
        f"{one_line(f'event {reason}: ' + _text(event.message), SHOWN)} {more}".strip(),
        "event",
    )


def _at(
    rank: int, stamp: str | None, source: str, pod: str, text: str, detail: str = ""
) -> Iterator[_Ranked]:
    """Yield an entry where the API has a time for it."""
    time, precision = _time(stamp)
    if time is not None:
        yield (
            rank,
            Entry(time, precision, source, pod, one_line(text, 2 * SHOWN), "api", one_line(detail)),
        )


def _time(stamp: str | None) -> tuple[float | None, str]:
    """(epoch seconds or None, precision) of a time of the API, Time or MicroTime."""
    match = _STAMP.fullmatch(stamp or "")
    if match is None:
        return None, "s"
    try:
        begun = datetime.fromisoformat(
            match[1].upper() + ("+00:00" if match[3] in "Zz" else match[3])
        ).timestamp()
    except (ValueError, OverflowError):
        return None, "s"
    if 0 <= begun < LATEST:
        return (begun + float(match[2] or 0), "us" if match[2] else "s")
    return (None, "s")


def _manager(managers: Iterable[FieldManager]) -> str:
    """Who made an object: the first that wrote its spec.

    A status is written by others, on older releases without saying that it is one.
    """
    times = [(_time(entry.time)[0], entry.manager) for entry in managers if entry.spec]
    writers = [(time, manager) for time, manager in times if time is not None]
    if not writers:
        return ""
    _time_of, manager = min(writers, key=lambda entry: entry[0])
    return one_line(_text(manager), 100)


def _of(owner: PodOwner | None) -> PodOwner:
    return owner or PodOwner()


def _owner(answer: Pod) -> str:
    owner = _of(answer.owner)
    if not owner.name:
        return ""
    return f"{_text(owner.kind)} {_text(owner.namespace)}/{_text(owner.name)}"


def _pods(answer: Pod) -> list[TimedPod]:
    siblings = answer.siblings[:MAX_PODS]
    if answer.pod is None:
        return list(siblings)
    return [answer.pod, *siblings]


def _joined(*parts: str | None) -> str:
    return ": ".join(_text(part) for part in parts if part)


def _listed(amounts: Mapping[str, int] | Mapping[str, str] | None) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in (amounts or {}).items()) or "nothing"


def _map(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    return {}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value[:LONGEST]
    return ""
