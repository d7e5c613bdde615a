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
    """One pod's. pod: namespace/name; name: as entries have it; about: what it is, in words.

    uid: empty where it is not known.
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
    found: list[Timeline] = []
    lacking: list[str] = []
    unknown: list[str] = []
    lines = list(lines)
    for cluster in clusters:
        record = _map(_map(cluster.api).get("pod"))
        status, why = (
            record.get("status"),
            one_line(_text(record.get("error")) or _text(record.get("status"))),
        )
        if status == "ok":
            data = _map(record.get("data"))
            if _text(data.get("name")):  # else no pod was rejected
                found.append(describe(data, lines))
                if record.get("truncated"):
                    lacking.append(
                        f"the timeline of {found[-1].pod} is not complete: there was more than time"
                        " or room for"
                    )
        elif record:
            (unknown if status == "absent" else lacking).append(f"{NONE}{why}")
    # In one of several clusters it is enough.
    return tuple(found), tuple(dict.fromkeys(lacking + ([] if found else unknown)))


def describe(pod_data: Mapping[str, Any], lines: Iterable[Mapping[str, Any]] = ()) -> Timeline:
    """Return the timeline of the collector pod's data, with what it is."""
    owner = _owner(pod_data)
    if owner:
        about = f"pod of {owner}"
    else:
        about = "a pod without an owner"
    if not _map(pod_data.get("pod")):
        about = (
            f"pod of {owner}, " if owner else "a pod "
        ) + "which is no more: what others tell of it"
    place = f"{_text(pod_data.get('namespace'))}/{_text(pod_data.get('name'))}"
    return Timeline(
        place,
        _text(pod_data.get("name")),
        _text(pod_data.get("uid")),
        about,
        timeline(pod_data, lines),
    )


def timeline(
    pod_data: Mapping[str, Any], lines: Iterable[Mapping[str, Any]] = ()
) -> tuple[Entry, ...]:
    """Return what happened to a pod, its siblings and their owner, in the order of time.

    What has no time comes last. Times that the API has in seconds come before finer ones.

    pod_data: the data of the collector pod. lines: captured log lines, {"time": epoch seconds as a
    float, "host", "component", "source", "text"}.
    """
    pods, events = _pods(pod_data), _maps(pod_data.get("events"))[:MAX_EVENTS]
    names = _uids(pod_data, pods, events)
    told = read(
        lines,
        Names(
            _text(pod_data.get("namespace")),
            names,
            {uid: name for name, uid in names.items()},
            _text(_map(pod_data.get("owner")).get("name")),
        ),
    )
    ranked: list[_Ranked] = list(_of_owner(pod_data))
    for pod in pods:
        ranked += _of_pod(pod, _owner(pod_data), told.creators.get(_text(pod.get("name")), []))
    ranked += [_of_event(event, names) for event in events]
    ranked += [(EVENT, entry) for entry in told.entries]
    entries = [entry for _rank, entry in sorted(ranked, key=_order)]
    if told.left_out:
        left = f"{told.left_out} more lines of the logs name these pods; they were left out"
        entries.append(Entry(None, "s", "", "", left, "log"))
    return tuple(entries)


def _uids(
    pod_data: Mapping[str, Any],
    pods: Iterable[Mapping[str, Any]],
    events: Iterable[Mapping[str, Any]],
) -> dict[str, str]:
    """Map the pod, its siblings and the pods of events to their uids, empty where not known."""
    names = {_text(pod.get("name")): _text(pod.get("uid")) for pod in pods}
    main = _text(pod_data.get("name"))
    names[main] = names.get(main) or _text(pod_data.get("uid"))
    for event in events:
        for name, uid in _pods_of_event(event):
            if name and not names.get(name):
                names[name] = uid
    return names


def _pods_of_event(event: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (name, uid) of the pods that an event names."""
    yield _text(event.get("pod")), ""
    if event.get("kind") == "Pod":
        yield _text(event.get("name")), _text(event.get("uid"))


def _order(one: _Ranked) -> tuple[bool, int, bool, float, int]:
    rank, entry = one
    when = entry.time or 0.0
    return entry.time is None, int(when), entry.precision == "us", when, rank


def _of_owner(data: Mapping[str, Any]) -> Iterator[_Ranked]:
    owner, name = _map(data.get("owner")), _owner(data)
    by = _manager(owner)
    yield from _at(
        OWNER, owner.get("created"), API, "", f"{name} created" + (f" by {by}" if by else "")
    )
    for one in _maps(owner.get("conditions"))[:MAX_PARTS]:
        if one.get("status") == "True":
            yield from _at(
                CLOSED,
                one.get("time"),
                API,
                "",
                f"{name}: {_joined(one.get('type'), one.get('reason'), one.get('message'))}",
            )
    yield from _at(DELETED, owner.get("deleted"), API, "", f"{name} deleted")


def _of_pod(pod: Mapping[str, Any], owner: str, hosts: list[str]) -> Iterator[_Ranked]:
    """Yield what the object itself contains."""
    name, node = _text(pod.get("name")), _text(pod.get("node"))
    yield from _at(
        CREATED,
        pod.get("created"),
        API,
        name,
        _created(pod, owner, hosts),
        "asks for " + _listed(pod.get("asks")),
    )
    for one in _maps(pod.get("conditions"))[:MAX_PARTS]:
        yield from _of_condition(pod, one)
    why = _joined("", pod.get("reason"), pod.get("message"))
    if pod_rejection.rejected(
        {"status": {key: _text(pod.get(key)) for key in ("phase", "reason", "message")}}
    ):
        times = (pod.get(key) for key in ("rejected_at", "started", "finished_at", "created"))
        when = next(filter(None, times), None)
        yield from _at(EVENT, when, API, name, f"rejected by the kubelet of {node}: {why}")
    else:
        yield from _at(ACCEPTED, pod.get("started"), API, name, f"the kubelet of {node} took it up")
        yield from _of_run(pod, name, why)
    yield from _at(
        DELETED,
        pod.get("deletion_requested") or pod.get("deleted"),
        API,
        name,
        _deletion(pod),
    )


def _of_run(pod: Mapping[str, Any], name: str, why: str) -> Iterator[_Ranked]:
    """Yield what the containers of an accepted pod did, and how the pod ended."""
    for one in _maps(pod.get("containers"))[:MAX_PARTS]:
        yield from _of_container(name, one)
    if pod.get("phase") in ("Succeeded", "Failed"):
        end = _text(pod.get("phase")).lower()
        if why:
            end += f": {why}"
        yield from _at(ENDED, pod.get("finished_at"), API, name, end)


def _deletion(pod: Mapping[str, Any]) -> str:
    text = "deletion asked for"
    grace = pod.get("grace")
    if isinstance(grace, int):
        text += f", {grace} s given to end"
    holds = [_text(one) for one in _list(pod.get("finalizers")) if _text(one)]
    if holds:
        text += f"; held by {', '.join(holds)}"
    return text


def _created(pod: Mapping[str, Any], owner: str, hosts: list[str]) -> str:
    text = f"created{_creator(pod, hosts)}"
    if owner:
        text += f" for {owner}"
    requests = _map(pod.get("requests")).items()
    devices = {name: value for name, value in requests if "/" in str(name)}
    if devices:
        text += f"; asks for {_listed(devices)}"
    return text + _placement(pod)


def _creator(pod: Mapping[str, Any], hosts: list[str]) -> str:
    by = _manager(pod)
    if hosts:
        return f" by {by or 'kube-controller-manager'} of {' and '.join(hosts)}"
    if by:
        return f" by {by}"
    return ""


def _placement(pod: Mapping[str, Any]) -> str:
    """Return who named the node, where no scheduler is known to have done so."""
    node, placed = _text(pod.get("node")), pod.get("placed")
    if node and placed is True:
        return f"; node {node} named by its author"
    if node and placed is None:
        return (
            f"; on node {node} (who named it is not recorded; schedulerName"
            f" {_text(pod.get('scheduler'))})"
        )
    return ""


def _of_condition(pod: Mapping[str, Any], one: Mapping[str, Any]) -> Iterator[_Ranked]:
    kind, name, why = (
        one.get("type"),
        _text(pod.get("name")),
        _joined("", one.get("reason"), one.get("message")),
    )
    if kind == "PodScheduled" and one.get("status") == "False":
        yield from _at(SCHEDULED, one.get("time"), API, name, f"not scheduled: {why}")
    elif kind == "PodScheduled" and pod.get("placed") is False:
        yield from _at(
            SCHEDULED,
            one.get("time"),
            API,
            name,
            f"scheduled to {_text(pod.get('node'))} by {_text(pod.get('scheduler'))}",
        )
    elif kind == "Ready" and one.get("status") == "True":
        yield from _at(READY, one.get("time"), API, name, "ready")
    elif kind == "DisruptionTarget" and one.get("status") == "True":
        yield from _at(ENDED, one.get("time"), API, name, f"to be disrupted: {why}")


def _of_container(pod: str, one: Mapping[str, Any]) -> Iterator[_Ranked]:
    title = f"{'init container' if one.get('init') else 'container'} {_text(one.get('name'))}"
    for state, which in ((_map(one.get("before")), " (a former run)"), (_map(one.get("now")), "")):
        yield from _at(STARTED, state.get("started"), API, pod, f"{title} started{which}")
        code = state.get("exit_code")
        why = _joined(
            f"exit code {code}" if isinstance(code, int) else "",
            state.get("reason"),
            state.get("message"),
        )
        yield from _at(ENDED, state.get("finished"), API, pod, f"{title} ended{which}: {why}")


def _of_event(event: Mapping[str, Any], names: Mapping[str, str]) -> _Ranked:
    name, uid, reason = (
        _text(event.get("name")),
        _text(event.get("uid")),
        _text(event.get("reason")),
    )
    if event.get("kind") == "Pod":
        pod = name
    else:
        pod = _text(event.get("pod"))
    if event.get("kind") == "Pod" and uid and names.get(name) != uid:
        pod = f"{name} (uid {uid})"  # another one that had the name
    time, precision = _time(event.get("first"))
    count = event.get("count")
    if isinstance(count, int) and count > 1:
        more = one_line(f"({count} times, last {_text(event.get('last'))})")
    else:
        more = ""
    where = " ".join(
        part for part in (_text(event.get("host")), _text(event.get("component"))) if part
    )
    return _RANKS.get(reason, EVENT), Entry(
        time,
        precision,
        one_line(where or "event", 100),
        pod,
        f"{one_line(f'event {reason}: ' + _text(event.get('message')), SHOWN)} {more}".strip(),
        "event",
    )


def _at(
    rank: int, stamp: Any, where: str, pod: str, what: str, detail: str = ""
) -> Iterator[_Ranked]:
    """Yield an entry where the API has a time for it."""
    time, precision = _time(stamp)
    if time is not None:
        yield (
            rank,
            Entry(time, precision, where, pod, one_line(what, 2 * SHOWN), "api", one_line(detail)),
        )


def _time(stamp: Any) -> tuple[float | None, str]:
    """(epoch seconds or None, precision) of a time of the API, Time or MicroTime."""
    if isinstance(stamp, str):
        match = _STAMP.fullmatch(stamp)
    else:
        match = None
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


def _manager(item: Mapping[str, Any]) -> str:
    """Who made an object: the first that wrote its spec.

    A status is written by others, on older releases without saying that it is one.
    """
    made = [
        one
        for one in _maps(item.get("managers"))
        if one.get("spec") is True and _time(one.get("time"))[0] is not None
    ]
    if made:
        return one_line(
            _text(min(made, key=lambda one: _time(one.get("time"))[0] or 0.0).get("manager")), 100
        )
    return ""


def _owner(data: Mapping[str, Any]) -> str:
    owner = _map(data.get("owner"))
    if _text(owner.get("name")):
        return (
            f"{_text(owner.get('kind'))} {_text(owner.get('namespace'))}/{_text(owner.get('name'))}"
        )
    return ""


def _pods(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return ([_map(data.get("pod"))] if _map(data.get("pod")) else []) + _maps(data.get("siblings"))[
        :MAX_PODS
    ]


def _joined(*parts: Any) -> str:
    return ": ".join(_text(part) for part in parts if _text(part))


def _listed(value: Any) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in _map(value).items()) or "nothing"


def _map(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    return {}


def _list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return []


def _maps(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in _list(value) if isinstance(item, Mapping)]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value[:LONGEST]
    return ""
