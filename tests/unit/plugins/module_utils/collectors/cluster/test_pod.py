# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of one pod, its owner, its siblings and their events.

Some tests have a pod that does not exist any more.
"""

import json

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    pod as cluster_pod,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import (
    ApiError,
    Client,
)

TEXT = (
    "Pod was rejected: Allocate failed due to requested number of devices unavailable for"
    " nvidia.com/gpu. Requested: 2, Available: 0, which is unexpected"
)
UIDS = {
    name: f"00000000-0000-0000-0000-00000000000{number}"
    for number, name in enumerate(("job", "a", "b", "c", "other"))
}
JOB = {
    "kind": "Job",
    "name": "job",
    "uid": UIDS["job"],
    "controller": True,
    "apiVersion": "batch/v1",
}


class Api(Client):
    """Objects by path, and lists that obey the selectors as an API server does."""

    def __init__(self, pods=(), events=(), objects=None, fail=None):
        self.pods, self.events, self.objects, self.fail, self.asked = (
            list(pods),
            list(events),
            objects or {},
            fail,
            [],
        )

    def get(self, path, *dummy, **more):
        found = self.objects.get(path)
        for item in self.pods:
            if path == "/api/v1/namespaces/{}/pods/{}".format(
                item["metadata"]["namespace"],
                item["metadata"]["name"],
            ):
                found = item
        if found is None:
            raise ApiError("absent", path, 404)
        return found

    def items(self, path, query=None, accept=None):
        query = query or {}
        self.asked.append((path, query))
        if self.fail and path.endswith(self.fail[0]):
            raise self.fail[1]
        if path.endswith("/events"):
            yield from (
                item
                for item in self.events
                if all(
                    self.matches(item, *pair.split("="))
                    for pair in query["fieldSelector"].split(",")
                )
            )
        else:
            wanted = (
                dict(pair.split("=") for pair in query["labelSelector"].split(","))
                if "labelSelector" in query
                else {}
            )
            yield from (
                item
                for item in self.pods
                if set(wanted.items()) <= set(item["metadata"].get("labels", {}).items())
            )

    @staticmethod
    def matches(item, path, value):
        for part in path.split("."):
            item = item.get(part) or {}
        return item == value


def pod(name, owner="job", **status):
    owner = JOB if owner == "job" else owner
    meta = {
        "namespace": "n",
        "name": name,
        "uid": UIDS[name],
        "creationTimestamp": "2026-11-21T20:01:02Z",
        "labels": {"controller-uid": (owner or {}).get("uid")},
        "ownerReferences": [owner] if owner else [],
        "managedFields": [
            {
                "manager": "kube-controller-manager",
                "operation": "Update",
                "time": "2026-11-21T20:01:02Z",
                "fieldsV1": {"f:spec": {"f:nodeName": {}}},
            }
        ],
    }
    container = {
        "name": "c",
        "resources": {
            "requests": {"cpu": "100m"},
            "limits": {"nvidia.com/gpu": "2", "memory": "64Mi"},
        },
    }
    return {
        "metadata": meta,
        "spec": {
            "nodeName": "w1",
            "schedulerName": "default-scheduler",
            "containers": [container, container],
        },
        "status": dict(
            {
                "phase": "Running",
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "lastTransitionTime": "2026-11-21T20:01:04Z",
                    }
                ],
                "containerStatuses": [
                    {
                        "name": "c",
                        "restartCount": 1,
                        "state": {"running": {"startedAt": "2026-11-21T20:01:03Z"}},
                        "lastState": {
                            "terminated": {
                                "exitCode": 1,
                                "reason": "Error",
                                "finishedAt": "2026-11-21T20:01:02Z",
                            }
                        },
                    }
                ],
            },
            **status,
        ),
    }


def event(name, reason, message, kind="Pod", uid=None, **more):
    return dict(
        {
            "metadata": {
                "uid": f"{name} {reason} {message}",
                "creationTimestamp": "2026-11-21T20:01:09Z",
            },
            "reason": reason,
            "message": message,
            "involvedObject": {
                "kind": kind,
                "namespace": "n",
                "name": name,
                "uid": uid or UIDS[name],
                "apiVersion": "batch/v1" if kind == "Job" else "v1",
            },
            "firstTimestamp": "2026-11-21T20:01:05Z",
            "lastTimestamp": "2026-11-21T20:01:06Z",
            "count": 3,
            "source": {"component": "kubelet", "host": "w1"},
        },
        **more,
    )


def job(**more):
    return {
        "/apis/batch/v1/namespaces/n/jobs/job": {
            "metadata": {"uid": UIDS["job"], "creationTimestamp": "2026-11-21T20:01:01Z"},
            "spec": {
                "completions": 1,
                "selector": {"matchLabels": {"controller-uid": UIDS["job"]}},
            },
            "status": {
                "conditions": [
                    {
                        "type": "Complete",
                        "status": "True",
                        "lastTransitionTime": "2026-11-21T20:02:00Z",
                    }
                ],
                "completionTime": "2026-11-21T20:02:00Z",
            },
            **more,
        }
    }


def collect(api, asked="n/a", rejected=()):
    data, cut = cluster_pod.collect(
        api, asked, lambda: list(rejected), lambda error: getattr(error, "status", "") == "timeout"
    )
    json.dumps(data)
    return data, cut


def test_a_pod_with_its_owner_its_siblings_and_the_events_of_all_of_them():
    scheduled = event(
        "a",
        "Scheduled",
        "assigned",
        firstTimestamp=None,
        lastTimestamp=None,
        eventTime="2026-11-21T20:01:02.113402Z",
        count=None,
        source={},
        reportingComponent="default-scheduler",
        reportingInstance="default-scheduler-m1",
    )
    events = [
        scheduled,
        event("b", "UnexpectedAdmissionError", TEXT),
        event("c", "Scheduled", "gone by now"),
        event("other", "Pulled", "not ours"),
        event("job", "SuccessfulCreate", "Created pod: c", kind="Job"),
        event("job", "SuccessfulDelete", "Deleted pod: c", kind="Job"),
    ]
    data, cut = collect(
        Api([pod("a"), pod("b", phase="Failed"), pod("other", owner=None)], events, job())
    )
    assert not cut
    assert (data["namespace"], data["name"], data["uid"], data["siblings_total"]) == (
        "n",
        "a",
        UIDS["a"],
        1,
    )
    mine = data["pod"]
    assert (mine["placed"], mine["node"], mine["requests"]) == (True, "w1", {"nvidia.com/gpu": 4})
    assert mine["asks"] == {"cpu": "100m+100m", "memory": "64Mi+64Mi", "nvidia.com/gpu": "2+2"}
    assert mine["managers"] == [
        {
            "manager": "kube-controller-manager",
            "operation": "Update",
            "time": "2026-11-21T20:01:02Z",
            "subresource": None,
            "spec": True,
            "node": True,
        }
    ]
    assert mine["conditions"][0] == {
        "type": "Ready",
        "status": "True",
        "reason": None,
        "message": None,
        "time": "2026-11-21T20:01:04Z",
    }
    assert (
        mine["containers"][0]["now"]["started"],
        mine["containers"][0]["before"]["exit_code"],
    ) == ("2026-11-21T20:01:03Z", 1)
    assert (
        data["owner"]["state"],
        data["owner"]["completed"],
        data["owner"]["conditions"][0]["type"],
    ) == ("ok", "2026-11-21T20:02:00Z", "Complete")
    assert [one["name"] for one in data["siblings"]] == ["b"]
    assert next(
        (one["name"], one["component"], one["host"], one["first"]) for one in data["events"]
    ) == ("a", "default-scheduler", "m1", "2026-11-21T20:01:02.113402Z")
    assert sorted({one["name"] for one in data["events"]}) == ["a", "b", "c", "job"]


def test_a_pod_that_is_no_more_is_told_by_its_events_and_its_owner_by_theirs():
    events = [
        event("a", "Killing", "Stopping container c"),
        event("job", "SuccessfulCreate", "Created pod: a", kind="Job"),
        event("job", "SuccessfulDelete", "Deleted pod: a", kind="Job"),
    ]
    data, cut = collect(Api([pod("b")], events, job()))
    assert (data["pod"], data["uid"], data["owner"]["name"], cut) == (None, UIDS["a"], "job", False)
    assert [one["name"] for one in data["siblings"]] == ["b"]
    assert len(data["events"]) == 3
    gone, _dummy = collect(Api([pod("b")], events))
    assert (gone["owner"]["state"], [one["name"] for one in gone["siblings"]]) == ("gone", ["b"])


@pytest.mark.parametrize("events", [[], [event("a", "Scheduled", "x")]])
def test_a_pod_is_found_by_its_uid(events):
    data, _dummy = collect(Api([pod("b"), pod("a")], events, job()), UIDS["a"].upper())
    assert (data["name"], data["pod"]["uid"]) == ("a", UIDS["a"])


def test_a_static_pod_is_found_by_the_hash_of_its_file():
    static = pod("a", owner=None)
    static["metadata"]["annotations"] = {"kubernetes.io/config.hash": "f" * 32}
    data, _dummy = collect(Api([static]), "f" * 32)
    assert (data["pod"]["name"], data["uid"], data["owner"], data["siblings"]) == (
        "a",
        UIDS["a"],
        {},
        [],
    )


def test_another_pod_that_took_the_name_is_not_the_one():
    data, _dummy = collect(
        Api([pod("a")], [event("a", "Killing", "x", uid=UIDS["other"])]), UIDS["other"]
    )
    assert (data["pod"], data["name"], data["uid"]) == (None, "a", UIDS["other"])


@pytest.mark.parametrize("asked", ["n/nobody", "ffffffff-0000-0000-0000-000000000000"])
def test_a_pod_that_nobody_knows_is_absent_and_the_sentence_says_what_to_do(asked):
    with pytest.raises(ApiError) as caught:
        collect(Api([pod("a")]), asked)
    assert caught.value.status == "absent"
    assert asked in str(caught.value)
    assert "namespace/name" in str(caught.value)


@pytest.mark.parametrize("asked", ["a", "n/", "/a", "../../secrets"])
def test_what_names_no_pod_is_an_error_or_absent_and_asks_for_no_other_path(asked):
    api = Api([pod("a")])
    with pytest.raises(ApiError):
        collect(api, asked)
    assert all(".." not in path for path, dummy in api.asked)


@pytest.mark.parametrize(
    ("rejected", "chosen"),
    [
        ([], None),
        ([{"namespace": "n", "name": "b", "uid": UIDS["b"], "message": "OutOfcpu"}], "b"),
        (
            [
                {"namespace": "n", "name": "b", "uid": UIDS["b"], "message": None},
                {"namespace": "n", "name": "a", "uid": UIDS["a"], "message": TEXT},
            ],
            "a",
        ),
    ],
)
def test_of_the_rejected_pods_the_newest_whose_device_was_refused_is_taken(rejected, chosen):
    data, cut = collect(Api([pod("a"), pod("b")], [], job()), "rejected", rejected)
    assert (data["name"], (data["pod"] or {}).get("name"), cut) == (chosen, chosen, False)


def test_the_time_limit_keeps_what_was_read_and_says_so():
    late = ("/pods", ApiError("timeout", "the time limit was reached"))
    data, cut = collect(Api([pod("a"), pod("b")], [event("a", "Scheduled", "x")], job(), fail=late))
    assert cut
    assert data["pod"]
    assert data["siblings"] == []
    assert len(data["events"]) == 1
    with pytest.raises(ApiError):
        collect(Api([pod("a")], [], job(), fail=("/pods", ApiError("denied", "no", 403))))


def test_events_are_asked_of_the_nearest_siblings_only():
    many = [pod("b") for dummy in range(30)]
    for number, item in enumerate(many):
        item["metadata"].update(
            uid=f"u{number}",
            name=f"b{number}",
            creationTimestamp=f"2026-11-21T20:{59 - number:02d}:00Z",
        )
    api = Api([pod("a"), *many], [], job())
    collect(api)
    asked = [
        query["fieldSelector"].rpartition("=")[2]
        for path, query in api.asked
        if path.endswith("/events")
    ]
    assert len(asked) == 2 + cluster_pod.PER_POD
    assert "b29" in asked
    assert "b0" not in asked


def test_siblings_and_events_are_bounded(monkeypatch):
    many = [pod("b") for dummy in range(300)]
    for number, item in enumerate(many):
        item["metadata"].update(
            uid=f"u{number}",
            name=f"b{number}",
            creationTimestamp=f"2026-11-21T20:{number % 60:02d}:00Z",
        )
    data, cut = collect(
        Api([pod("a"), *many], [event("a", "r", f"{number}") for number in range(600)], job())
    )
    assert cut
    assert len(data["siblings"]) == cluster_pod.MAX_SIBLINGS
    assert len(data["events"]) == cluster_pod.MAX_EVENTS
    assert data["siblings_total"] == 300
    assert data["siblings"][0]["created"] == "2026-11-21T20:00:00Z"


@pytest.mark.parametrize(
    ("kind", "labels", "path"),
    [
        ("ReplicaSet", {"matchLabels": {"app": "x"}}, "/apis/apps/v1/namespaces/n/replicasets/job"),
        ("ReplicaSet", {"matchExpressions": []}, "/apis/apps/v1/namespaces/n/replicasets/job"),
        ("ReplicationController", {"app": "x"}, "/api/v1/namespaces/n/replicationcontrollers/job"),
        ("Workflow", None, "nowhere"),
    ],
)
def test_other_controllers_than_jobs(kind, labels, path):
    owner = dict(
        JOB,
        kind=kind,
        apiVersion="apps/v1" if kind == "ReplicaSet" else "v1" if labels else "argoproj.io/v1",
    )
    pods = [pod("a", owner), pod("b", owner), pod("other", None)]
    for item in pods:
        item["metadata"]["labels"] = {"app": "x"}
    data, _dummy = collect(
        Api(pods, [], {path: {"metadata": {"uid": UIDS["job"]}, "spec": {"selector": labels}}})
    )
    assert [one["name"] for one in data["siblings"]] == ["b"]
    assert data["owner"]["state"] == ("ok" if labels else "not_asked")
