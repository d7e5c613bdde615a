# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs that may have had more pods than they asked for. The controller judges them.

It reads events, then pods, then Jobs, so that a Job that ends meanwhile looks deleted and never
unknown. It keeps only a few short values of every object, so a cluster full of Jobs costs one page
of memory and a little for each pod.
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
    """Return the seconds of an API time, None when there is none."""
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
    """Return these seconds as the API writes a time."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def event_of(item):
    """Return the reason, the times, the count and the text of an event.

    Events have two generations of fields, and it reads both.
    """
    series = item.get("series") or {}
    first = item.get("firstTimestamp") or item.get("eventTime")
    named = POD.search(item.get("message") or "")
    return {
        "reason": sys.intern(item.get("reason") or ""),
        "message": files.masked_ends(item.get("message"), 300),
        "first": first,
        "last": item.get("lastTimestamp") or series.get("lastObservedTime") or first,
        "count": item.get("count") or series.get("count") or 1,
        "pod": named.group(1) if named else None,
    }


def pod_of(item):
    """Return the few values of a pod that show how long it lived."""
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
    """Return when the last container of a pod ended; None where the pod has not ended.

    A rejected pod has no container, and mostly no condition: it ended as it began.
    """
    if status.get("phase") not in ("Succeeded", "Failed"):
        return None
    ends = _ends_of_containers(status)
    if not ends:
        times = [entry.get("lastTransitionTime") for entry in status.get("conditions") or []]
        ends = list(filter(None, times))
    if ends:
        return max(ends)
    return status.get("startTime")


def _ends_of_containers(status):
    ends = []
    for name in ("containerStatuses", "initContainerStatuses"):
        for entry in status.get(name) or []:
            terminated = (entry.get("state") or {}).get("terminated") or {}
            ends.append(terminated.get("finishedAt"))
    return list(filter(None, ends))


def job_of(item):
    """Return the values of a Job that show how many pods it asks for."""
    meta = item.get("metadata") or {}
    spec, status = item.get("spec") or {}, item.get("status") or {}
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
        "finished": any(map(_is_end, status.get("conditions") or [])),
        "owner": _owner(meta),
    }


def _is_end(condition):
    return condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True"


def _owner(meta):
    """Return kind/name of the controller of an object, or None."""
    for owner in meta.get("ownerReferences") or []:
        if owner.get("controller"):
            return "{}/{}".format(owner.get("kind"), owner.get("name"))
    return None


def suspicion(job, pods, events):
    """Return how likely this Job had surplus pods, 0 for not at all.

    The number is generous: the controller recognises an ordinary replacement later.
    """
    lives = _lives(pods, events)
    deleted = any(event["reason"] == "SuccessfulDelete" for event in events)
    if job.get("created") is None:  # how many it asked for is not known any more
        if deleted and _together(lives) > 1:
            return 3
        expected = 1
    else:
        if _has_surplus(job, _together(lives)):
            return 4
        replaced = sum(1 for pod in pods if pod["deletion_requested"])
        expected = _expected(job) + job["failed"] + replaced
    if deleted:
        return 2
    return int(len(lives) > expected)


def _allowed(job):
    """Return how many pods of a Job may live at one time."""
    allowed = job.get("parallelism")
    if allowed is None:
        allowed = 1
    if job.get("completions") is not None:
        allowed = min(allowed, job["completions"])
    return allowed


def _expected(job):
    """Return how many pods a Job makes where none fails."""
    if job.get("completions") is None:
        return _allowed(job)
    return max(job["completions"], _allowed(job))


def _has_surplus(job, together):
    allowed, completions = _allowed(job), job.get("completions")
    if together > allowed:
        return True
    if completions is not None and job["succeeded"] > completions:
        return True
    return bool(allowed and job["active"] > allowed)


def _together(lives):
    """Return the largest number of pods that lived at one time."""
    most = now = 0
    for _dummy, change in sorted(
        [(begin, 1) for begin, end in lives] + [(end, -1) for begin, end in lives]
    ):
        now += change
        most = max(most, now)
    return most


def _lives(pods, events):
    """Return (begin, end) of every pod that exists or was created by an event.

    A life lasts at least a second, which is the resolution of the API's times.
    """
    lives = {}
    for event in events:
        begin = epoch(event["first"])
        if event["reason"] != "SuccessfulCreate" or begin is None:
            continue
        lives[event["pod"] or event["message"]] = (begin, begin + 1)
        if event["message"].startswith("(combined"):
            for number in range(1, event["count"]):
                lives[f"{event['message']} {number}"] = (begin, begin + 1)
    for pod in pods:
        begin = epoch(pod["created"])
        if begin is not None:
            lives[pod["name"]] = (begin, max(_end(pod, begin), begin + 1))
    return list(lives.values())


def _end(pod, begin):
    ends = [epoch(pod[key]) for key in ("finished_at", "deletion_requested")]
    ends = [end for end in ends if end is not None]
    if ends:
        return min(ends)
    if pod["phase"] in ("Succeeded", "Failed"):
        return begin
    return float("inf")


def _controller(item):
    for owner in (item.get("metadata") or {}).get("ownerReferences") or []:
        if owner.get("kind") == "Job" and owner.get("controller"):
            return owner.get("uid")
    return None


def read_events(api):
    """Return (job UID → its events, job UID → (namespace, name), oldest time or None, cut)."""
    events, names, uids = {}, {}, set()
    times = []
    cut = False
    for item in api.items("/api/v1/events", {"fieldSelector": "involvedObject.kind=Job"}):
        about, uid = item.get("involvedObject") or {}, (item.get("metadata") or {}).get("uid")
        if uid in uids or not _is_batch(about):
            continue
        if len(uids) >= MAX_EVENTS:
            cut = True
            break
        uids.add(uid)
        event = event_of(item)
        events.setdefault(about["uid"], []).append(event)
        names[about["uid"]] = (about.get("namespace"), about.get("name"))
        if event["last"]:
            times.append(event["last"])
    return events, names, min(times, default=None), cut


def _is_batch(about):
    if not about.get("uid"):
        return False
    return str(about.get("apiVersion") or "batch/v1").startswith("batch/")


def read_pods(api):
    """Return (job UID → its pods, cut).

    By 1.36 Kubernetes still sets the old label in addition to the new one. Pods with the new
    one alone are read too.
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

    `ended(error)` returns whether an error may cut the list short instead of costing all of it.
    """
    return _Search(api, ended).result()


class _Search:
    """A reading of events, pods and Jobs that keeps the Jobs most likely to have surplus pods."""

    def __init__(self, api, ended):
        self.api, self.ended = api, ended
        self.is_cut = False
        self.worst, self.listed = [], set()
        self.pods, self.events, self.names = {}, {}, {}

    def result(self):
        """Return (data, truncated)."""
        any_job = bool(self.api.get("/apis/batch/v1/jobs", {"limit": 1}).get("items"))
        self.events, self.names, oldest, is_cut = self._until_cut(
            lambda: read_events(self.api), ({}, {}, None, True)
        )
        self.is_cut = self.is_cut or is_cut
        if any_job:
            self.pods, is_cut = self._until_cut(lambda: read_pods(self.api), ({}, True))
            self.is_cut = self.is_cut or is_cut
            self._until_cut(self._read_jobs, None)
        for uid in list(self.events):  # Jobs that are no more
            namespace, name = self.names[uid]
            self._weigh(dict(job_of({}), namespace=namespace, name=name, uid=uid))
        self.worst.sort(key=lambda entry: entry[:3], reverse=True)
        items = [entry[3] for entry in self.worst[:MAX_ITEMS]]
        data = {"listed": len(self.listed), "events_oldest": oldest, "items": items}
        return data, self.is_cut or len(self.worst) > MAX_ITEMS

    def _until_cut(self, read, nothing):
        try:
            return read()
        except Exception as error:  # pylint: disable=broad-except
            if not self.ended(error):
                raise
            self.is_cut = True
            return nothing

    def _read_jobs(self):
        for item in self.api.items("/apis/batch/v1/jobs"):
            job = job_of(item)
            if job["uid"] not in self.listed:
                self.listed.add(job["uid"])
                self._weigh(job)

    def _weigh(self, job):
        uid = job["uid"]
        pods, events = self.pods.pop(uid, []), self.events.pop(uid, [])
        level = suspicion(job, pods, events)
        if not level:
            return
        times = [event["last"] or "" for event in events] + [pod["created"] or "" for pod in pods]
        job = dict(job, pods=pods[:PER_ITEM], events=events[:PER_ITEM])
        self.worst.append((level, max(times, default=""), uid, job))
        if len(self.worst) > 2 * MAX_ITEMS:
            self.worst.sort(key=lambda entry: entry[:3], reverse=True)
            del self.worst[MAX_ITEMS:]
            self.is_cut = True
