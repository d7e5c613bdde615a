# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Jobs are kept for judging: those with surplus pods always, an ordinary life never."""

import itertools
import json
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    jobs as cluster_jobs,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError

NUMBERS = itertools.count()
RECORDED = Path(__file__).parents[5] / "fixtures" / "api"


class Answers:
    """Lists by path, as Client.items gives them."""

    def __init__(self, jobs=(), pods=(), events=(), fail=None):
        self.lists = {"/apis/batch/v1/jobs": jobs, "/api/v1/pods": pods, "/api/v1/events": events}
        self.fail = fail or {}

    def get(self, path, query):
        return {"items": list(self.lists[path])[:1]}

    def items(self, path, query=None):
        if "!job-name" in (query or {}).get("labelSelector", ""):
            return
        for number, item in enumerate(self.lists[path]):
            if self.fail.get(path) == number:
                raise ApiError("timeout", "the time limit was reached")
            yield item


def collect(**lists):
    return cluster_jobs.collect(Answers(**lists), lambda error: error.status == "timeout")


def job(name="j", parallelism=1, completions=1, **status):
    return {
        "metadata": {
            "namespace": "n",
            "name": name,
            "uid": "u-" + name,
            "creationTimestamp": at(0),
        },
        "spec": {"parallelism": parallelism, "completions": completions},
        "status": status,
    }


def pod(name, created, owner="j", deleted=None, grace=30, **status):
    meta = {
        "name": name,
        "uid": "p-" + name,
        "creationTimestamp": at(created),
        "ownerReferences": [{"kind": "Job", "uid": "u-" + owner, "controller": True}],
    }
    if deleted is not None:
        meta.update(deletionTimestamp=at(deleted + grace), deletionGracePeriodSeconds=grace)
    return {
        "metadata": meta,
        "spec": {"nodeName": "w1"},
        "status": dict({"phase": "Running"}, **status),
    }


def ended(second, phase="Failed"):
    return {
        "phase": phase,
        "containerStatuses": [{"state": {"terminated": {"finishedAt": at(second)}}}],
    }


def event(reason, name, second, owner="j"):
    verb = {"SuccessfulCreate": "Created pod: ", "SuccessfulDelete": "Deleted pod: "}.get(
        reason, ""
    )
    return {
        "metadata": {"uid": f"e{next(NUMBERS)}"},
        "reason": reason,
        "message": verb + name,
        "firstTimestamp": at(second),
        "lastTimestamp": at(second),
        "count": 1,
        "involvedObject": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "namespace": "n",
            "name": owner,
            "uid": "u-" + owner,
        },
    }


def at(second):
    return cluster_jobs.iso(1_800_000_000 + second)


CREATE, DELETE = "SuccessfulCreate", "SuccessfulDelete"
ORDINARY = {
    "one pod": ([job(active=1)], [pod("a", 0)], [event(CREATE, "a", 0)]),
    "done": (
        [job(succeeded=1)],
        [pod("a", 0, **ended(5, "Succeeded"))],
        [event(CREATE, "a", 0), event("Completed", "", 5)],
    ),
    "tried again after a failure": (
        [job(failed=1, active=1)],
        [pod("a", 0, **ended(4)), pod("b", 14)],
        [event(CREATE, "a", 0), event(CREATE, "b", 14)],
    ),
    "a failure whose pod is gone": (
        [job(failed=1, active=1)],
        [pod("b", 14)],
        [event(CREATE, "a", 0), event(CREATE, "b", 14)],
    ),
    "the next of several at once": (
        [job(completions=3, active=1, succeeded=1)],
        [pod("a", 0, **ended(4, "Succeeded")), pod("b", 4)],
        [],
    ),
    "replaced while the first terminates": (
        [job(active=1)],
        [pod("a", 0, deleted=20), pod("b", 20)],
        [],
    ),
    "as parallel as it asks": (
        [job(parallelism=2, completions=4, active=2)],
        [pod("a", 0), pod("b", 0)],
        [event(CREATE, "a", 0), event(CREATE, "b", 0)],
    ),
    "suspended from the start": ([job(parallelism=1)], [], []),
}
SURPLUS = {
    "two that live": ([job()], [pod("a", 0), pod("b", 1)], []),
    "two that live, seen by status": ([job(active=2)], [], []),
    "both succeeded": ([job(succeeded=2)], [], []),
    "the second deleted, pods and events": (
        [job(active=1)],
        [pod("a", 0), pod("b", 0, deleted=1)],
        [event(CREATE, "a", 0), event(CREATE, "b", 0), event(DELETE, "b", 1)],
    ),
    "the second gone, events only": (
        [job(active=1)],
        [pod("a", 0)],
        [event(CREATE, "a", 0), event(CREATE, "b", 1), event(DELETE, "b", 1)],
    ),
    "created in one second, events only": (
        [job(active=1)],
        [],
        [event(CREATE, "a", 0), event(CREATE, "b", 0)],
    ),
    "one rejected, one running": (
        [job(active=1, failed=1)],
        [pod("a", 0), pod("b", 0, phase="Failed", reason="UnexpectedAdmissionError")],
        [],
    ),
    "three of two": (
        [job(parallelism=2, completions=4)],
        [pod("a", 0), pod("b", 0), pod("c", 1)],
        [],
    ),
    "the Job is no more": (
        [],
        [],
        [event(CREATE, "a", 0), event(CREATE, "b", 0), event(DELETE, "b", 1)],
    ),
}


@pytest.mark.parametrize("case", ORDINARY)
def test_an_ordinary_life_is_not_kept(case):
    jobs, pods, events = ORDINARY[case]
    assert collect(jobs=jobs, pods=pods, events=events) == (
        {
            "listed": len(jobs),
            "events_oldest": events[0]["lastTimestamp"] if events else None,
            "items": [],
        },
        False,
    )


@pytest.mark.parametrize("case", SURPLUS)
def test_a_surplus_is_kept(case):
    jobs, pods, events = SURPLUS[case]
    data, truncated = collect(jobs=jobs, pods=pods, events=events)
    assert [item["name"] for item in data["items"]] == ["j"]
    assert not truncated
    assert len(data["items"][0]["events"]) == len(events)


@pytest.mark.parametrize("version", ["v1.18.4", "v1.36.3"])
def test_the_recorded_clusters_with_two_leaders(version):
    recorded = json.loads((RECORDED / (version + ".json")).read_text())
    lists = {
        name: recorded[path]["items"]
        for name, path in (
            ("jobs", "/apis/batch/v1/jobs"),
            ("pods", "/api/v1/pods?labelSelector=job-name"),
            ("events", "/api/v1/events?fieldSelector=involvedObject.kind%3DJob"),
        )
    }
    wrong = {
        entry["involvedObject"]["name"] for entry in lists["events"] if entry["reason"] == DELETE
    }
    data, truncated = collect(**lists)
    assert len(wrong) == 3
    assert {item["name"] for item in data["items"]} == wrong
    assert not truncated
    for item in data["items"]:
        created = {entry["pod"] for entry in item["events"] if entry["reason"] == CREATE}
        assert len(created) >= 2
        assert len(item["pods"]) == 1
        assert item["pods"][0]["name"] in created


def test_newer_events_and_rejected_pods_are_understood():
    newer = {
        "reason": CREATE,
        "message": "Created pod: x",
        "eventTime": "2026-01-01T00:00:00.123456Z",
        "series": {"count": 4, "lastObservedTime": "2026-01-01T00:01:00.000000Z"},
    }
    assert cluster_jobs.event_of(newer) == {
        "reason": CREATE,
        "message": "Created pod: x",
        "first": "2026-01-01T00:00:00.123456Z",
        "last": "2026-01-01T00:01:00.000000Z",
        "count": 4,
        "pod": "x",
    }
    rejected = cluster_jobs.pod_of(
        pod("a", 0, phase="Failed", conditions=[{"lastTransitionTime": at(1)}])
    )
    assert rejected["finished_at"] == at(1)


def test_the_worst_are_kept_when_there_are_too_many():
    count = cluster_jobs.MAX_ITEMS
    jobs = [job(f"b{number}", succeeded=2) for number in range(3)]
    jobs[1:1] = [job(f"k{number}") for number in range(2 * count + 5)]
    events = [event(DELETE, "x", 5, f"k{number}") for number in range(2 * count + 5)]
    data, truncated = collect(jobs=jobs, events=events)
    assert truncated
    assert len(data["items"]) == count
    assert data["listed"] == len(jobs)
    assert [item["name"] for item in data["items"][:3]] == ["b2", "b1", "b0"]


@pytest.mark.parametrize("path", ["/apis/batch/v1/jobs", "/api/v1/pods", "/api/v1/events"])
def test_what_was_read_before_the_time_limit_still_counts(path):
    jobs = [job(), job("k")]
    pods = [pod("a", 0), pod("b", 0), pod("c", 0)]
    data, truncated = cluster_jobs.collect(
        Answers(
            jobs,
            pods,
            [event(CREATE, "a", 0), event(CREATE, "b", 0), event(CREATE, "z", 0)],
            {path: 2},
        ),
        lambda error: True,
    )
    assert truncated or path == "/apis/batch/v1/jobs"
    assert data["items"] == [] or data["items"][0]["name"] == "j"


def test_any_other_error_costs_the_collector():
    class Refusing(Answers):
        def items(self, path, query=None):
            raise ApiError("denied", "GET /x: HTTP 403")

    with pytest.raises(ApiError):
        cluster_jobs.collect(Refusing([job()]), lambda error: error.status == "timeout")


def test_a_rejected_pod_ended_as_it_began():
    """It has no container that ended, and on older releases no condition either.

    Its replacement is no surplus.
    """
    status = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "startTime": at(3)}
    assert cluster_jobs.pod_of({"metadata": {}, "status": status})["finished_at"] == at(3)
    assert (
        cluster_jobs.pod_of({"metadata": {}, "status": dict(status, phase="Running")})[
            "finished_at"
        ]
        is None
    )
