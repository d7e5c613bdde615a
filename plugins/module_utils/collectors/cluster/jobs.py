# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs that might have had more pods than they asked for. The controller judges them.

Read in the order events, pods, Jobs, so that a Job that ends meanwhile looks deleted and never
unheard of. Of every object only a few short values are kept, so a cluster full of Jobs costs one
page of memory and a little for each pod.
"""

import calendar
import re
import sys
import time

from ...system import files

MAX_ITEMS = 200
MAX_PODS = 50000
MAX_EVENTS = 100000
PER_ITEM = 50
POD = re.compile(r"(?:Created|Deleted) pod: (\S+)")


def epoch(text):
    """Seconds of an API time, None when there is none."""
    text = str(text)
    try:  # ten times as fast as strptime, over some ten thousand pods
        return calendar.timegm(
            (
                int(text[:4]),
                int(text[5:7]),
                int(text[8:10]),
                int(text[11:13]),
                int(text[14:16]),
                int(text[17:19]),
            )
        )
    except ValueError:
        return None


def iso(seconds):
    """Return the API's spelling of these seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def event_of(item):
    """Return what an event says, whichever of its generations of fields it uses."""
    series = item.get("series") or {}
    first = item.get("firstTimestamp") or item.get("eventTime")
    named = POD.search(item.get("message") or "")
    return {
        "reason": sys.intern(item.get("reason") or ""),
        "message": files.told(item.get("message"), 300),
        "first": first,
        "last": item.get("lastTimestamp") or series.get("lastObservedTime") or first,
        "count": item.get("count") or series.get("count") or 1,
        "pod": named.group(1) if named else None,
    }


def pod_of(item):
    """Return the few values of a pod that tell how long it lived."""
    meta, status = item.get("metadata") or {}, item.get("status") or {}
    deleted, requested = meta.get("deletionTimestamp"), None
    if epoch(deleted) is not None:  # it lies ahead of the request by the grace period
        requested = iso(epoch(deleted) - (meta.get("deletionGracePeriodSeconds") or 0))
    return {
        "name": meta.get("name"),
        "uid": meta.get("uid"),
        "created": meta.get("creationTimestamp"),
        "deleted": deleted,
        "deletion_requested": requested,
        "phase": sys.intern(status.get("phase") or ""),
        "reason": status.get("reason"),
        "node": sys.intern((item.get("spec") or {}).get("nodeName") or "") or None,
        "finished_at": _finished(status),
    }


def _finished(status):
    """Return when the last container ended, of a pod that ended.

    A rejected pod has no container, and mostly no condition: it ended as it began.
    """
    if status.get("phase") not in ("Succeeded", "Failed"):
        return None
    states = [
        entry.get("state") or {}
        for entry in (status.get("containerStatuses") or [])
        + (status.get("initContainerStatuses") or [])
    ]
    ends = [state["terminated"].get("finishedAt") for state in states if state.get("terminated")]
    ends = [end for end in ends if end]
    if not ends:
        ends = [
            entry.get("lastTransitionTime")
            for entry in status.get("conditions") or []
            if entry.get("lastTransitionTime")
        ]
    if ends:
        return max(ends)
    return status.get("startTime")


def job_of(item):
    """Return the values of a Job that tell how many pods it asks for."""
    meta, spec, status = (
        item.get("metadata") or {},
        item.get("spec") or {},
        item.get("status") or {},
    )
    owner = [one for one in meta.get("ownerReferences") or [] if one.get("controller")]
    finished = any(
        entry.get("type") in ("Complete", "Failed") and entry.get("status") == "True"
        for entry in status.get("conditions") or []
    )
    return {
        "namespace": meta.get("namespace"),
        "name": meta.get("name"),
        "uid": meta.get("uid"),
        "created": meta.get("creationTimestamp"),
        "completions": spec.get("completions"),
        "parallelism": spec.get("parallelism"),
        "suspend": bool(spec.get("suspend")),
        "active": status.get("active") or 0,
        "succeeded": status.get("succeeded") or 0,
        "failed": status.get("failed") or 0,
        "finished": finished,
        "owner": "{}/{}".format(owner[0].get("kind"), owner[0].get("name")) if owner else None,
    }


def suspicion(job, pods, events):
    """Return how likely this Job had surplus pods, 0 for not at all. Generous.

    An ordinary replacement is recognised later.
    """
    parallelism, completions = job.get("parallelism"), job.get("completions")
    gone = job.get("created") is None
    if parallelism is None:
        allowed = 1
    else:
        allowed = parallelism
    if completions is not None and not gone:
        allowed = min(allowed, completions)
    lives = _lives(pods, events)
    together = _together(lives)
    deleted = any(event["reason"] == "SuccessfulDelete" for event in events)
    if not gone:
        finishing = completions is not None and job["succeeded"] > completions
        if together > allowed or finishing or (allowed and job["active"] > allowed):
            return 4
    elif together > 1 and deleted:  # how many it asked for is not known any more
        return 3
    if deleted:
        return 2
    if completions is None:
        asked = allowed
    else:
        asked = completions
    replaced = sum(1 for pod in pods if pod["deletion_requested"])
    if len(lives) > (1 if gone else max(asked, allowed) + job["failed"] + replaced):
        return 1
    return 0


def _together(lives):
    """Return the most that lived at one time."""
    most = now = 0
    for _dummy, change in sorted(
        [(begin, 1) for begin, end in lives] + [(end, -1) for begin, end in lives]
    ):
        now += change
        most = max(most, now)
    return most


def _lives(pods, events):
    """Return (begin, end) of every pod that exists or was created by an event.

    At least a second, the API's resolution.
    """
    lives = {}
    for event in events:
        begin = epoch(event["first"])
        if event["reason"] == "SuccessfulCreate" and begin is not None:
            lives[event["pod"] or event["message"]] = (begin, begin + 1)
            for more in range(1, event["count"] if event["message"].startswith("(combined") else 1):
                lives[f"{event['message']} {more}"] = (begin, begin + 1)
    for pod in pods:
        begin = epoch(pod["created"])
        if begin is None:
            continue
        ends = [epoch(pod[key]) for key in ("finished_at", "deletion_requested")]
        ends = [end for end in ends if end is not None]
        if ends:
            end = min(ends)
        elif pod["phase"] in ("Succeeded", "Failed"):
            end = begin
        else:
            end = float("inf")
        lives[pod["name"]] = (begin, max(end, begin + 1))
    return list(lives.values())


def _controller(item):
    for owner in (item.get("metadata") or {}).get("ownerReferences") or []:
        if owner.get("kind") == "Job" and owner.get("controller"):
            return owner.get("uid")
    return None


def read_events(api):
    """Return (job uid → its events, job uid → (namespace, name), oldest time or None, cut)."""
    events, names, oldest, seen = {}, {}, None, set()
    for item in api.items("/api/v1/events", {"fieldSelector": "involvedObject.kind=Job"}):
        about, uid = item.get("involvedObject") or {}, (item.get("metadata") or {}).get("uid")
        if (
            uid in seen
            or not about.get("uid")
            or not str(about.get("apiVersion") or "batch/v1").startswith("batch/")
        ):
            continue
        if len(seen) >= MAX_EVENTS:
            return events, names, oldest, True
        seen.add(uid)
        event = event_of(item)
        events.setdefault(about["uid"], []).append(event)
        names[about["uid"]] = (about.get("namespace"), about.get("name"))
        if event["last"] and (oldest is None or event["last"] < oldest):
            oldest = event["last"]
    return events, names, oldest, False


def read_pods(api):
    """Return (job uid → its pods, cut). The old label is still set beside the new one by 1.36.

    Pods with the new one alone are asked for too.
    """
    pods, kept = {}, set()
    for selector in ("job-name", "batch.kubernetes.io/job-name,!job-name"):
        for item in api.items("/api/v1/pods", {"labelSelector": selector}):
            owner, uid = _controller(item), (item.get("metadata") or {}).get("uid")
            if owner is None or uid in kept:
                continue
            if len(kept) >= MAX_PODS:
                return pods, True
            kept.add(uid)
            pods.setdefault(owner, []).append(pod_of(item))
    return pods, False


def collect(api, ended):
    """Return (data, truncated).

    `ended(error)` says whether an error may cut the list short instead of costing all of it.
    """
    cut = []

    def until_cut(read, nothing):
        try:
            return read()
        except Exception as error:  # pylint: disable=broad-except
            if not ended(error):
                raise
            cut.append(True)
            return nothing

    any_job = bool(api.get("/apis/batch/v1/jobs", {"limit": 1}).get("items"))
    events, names, oldest, some = until_cut(lambda: read_events(api), ({}, {}, None, True))
    if any_job:
        pods, more = until_cut(lambda: read_pods(api), ({}, True))
    else:
        pods, more = ({}, False)
    if some or more:
        cut += [True]
    worst, listed = [], set()

    def weigh(job):
        uid = job["uid"]
        mine, said = pods.pop(uid, []), events.pop(uid, [])
        level = suspicion(job, mine, said)
        if level:
            last = max(
                [event["last"] or "" for event in said] + [pod["created"] or "" for pod in mine]
                or [""]
            )
            worst.append(
                (level, last, uid, dict(job, pods=mine[:PER_ITEM], events=said[:PER_ITEM]))
            )
            if len(worst) > 2 * MAX_ITEMS:
                worst.sort(key=lambda entry: entry[:3], reverse=True)
                del worst[MAX_ITEMS:]
                cut.append(True)

    def read_jobs():
        for item in api.items("/apis/batch/v1/jobs"):
            job = job_of(item)
            if job["uid"] not in listed:
                listed.add(job["uid"])
                weigh(job)

    if any_job:
        until_cut(read_jobs, None)
    for uid in list(events):  # Jobs that are no more
        weigh(dict(job_of({}), namespace=names[uid][0], name=names[uid][1], uid=uid))
    worst.sort(key=lambda entry: entry[:3], reverse=True)
    items = [entry[3] for entry in worst[:MAX_ITEMS]]
    return {"listed": len(listed), "events_oldest": oldest, "items": items}, bool(cut) or len(
        worst
    ) > MAX_ITEMS
