# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods count as rejected by a kubelet.

The tests also check what is kept of them and of the other pods on their nodes.
"""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    rejected as cluster_rejected,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError

TEXT = (
    "Pod was rejected: Allocate failed due to requested number of devices unavailable for"
    " nvidia.com/gpu. Requested: 2, Available: 0, which is unexpected"
)


class Answers:
    """Pods by selector, as Client.items gives them."""

    def __init__(self, failed, around=(), fail=None, logs=None, events=(), owners=None):
        self.failed, self.around, self.fail, self.events, self.asked, self.logs = (
            failed,
            around,
            fail,
            events,
            [],
            logs or {},
        )
        self.owners = owners or {}

    def find(self, path):
        self.asked.append(path)
        if isinstance(self.owners, Exception):
            raise self.owners
        return self.owners.get(path)

    def lines(self, path, seconds):
        assert 0 < seconds < 10
        self.asked.append(path)
        return (200, self.logs[path]) if path in self.logs else (None, [])

    def items(self, path, query=None):
        if path == "/api/v1/events":
            self.asked.append(query["fieldSelector"])
            if isinstance(self.events, Exception):
                raise self.events
            yield from self.events
            return
        assert path == "/api/v1/pods"
        self.asked.append(query["fieldSelector"])
        if query["fieldSelector"] == "status.phase=Failed":
            yield from self.failed
            return
        if self.fail:
            raise self.fail
        yield from self.around


def pod(name, phase="Failed", reason="UnexpectedAdmissionError", message=TEXT, limits=None, **more):
    return {
        "metadata": {
            "namespace": "n",
            "name": name,
            "uid": "u-" + name,
            "creationTimestamp": f"2027-01-15T08:00:0{len(name)}",
            **more.get("meta", {}),
        },
        "spec": {
            "nodeName": "w1",
            "schedulerName": "default-scheduler",
            "containers": [{"resources": {"limits": limits or {"nvidia.com/gpu": "2"}}}],
            **more.get("spec", {}),
        },
        "status": {"phase": phase, "reason": reason, "message": message, **more.get("status", {})},
    }


def collect(*args, **more):
    return cluster_rejected.collect(Answers(*args, **more), lambda error: error.status == "timeout")


@pytest.mark.parametrize(
    ("reason", "message", "kept"),
    [
        ("UnexpectedAdmissionError", TEXT, True),
        ("OutOfcpu", "", True),
        ("Outofnvidia.com/gpu", "", True),
        ("TopologyAffinityError", "", True),
        ("Topology Affinity Error", "", True),
        ("SMTAlignmentError", "", True),
        ("NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed", True),
        ("NodeAffinity", "Pod Predicate NodeAffinity failed", True),
        ("Evicted", "The node was low", False),
        ("NodeShutdown", "Pod was rejected: Pod was rejected as the node is shutting down.", False),
        (None, None, False),
        ("Error", "", False),
    ],
)
def test_which_failed_pods_were_rejected(reason, message, kept):
    data, cut = collect([pod("a", reason=reason, message=message)])
    assert bool(data["items"]) is kept
    assert not cut


def test_what_is_kept():
    owner = {"ownerReferences": [{"kind": "Job", "name": "j", "uid": "u-j", "controller": True}]}
    fields = {"managedFields": [{"fieldsV1": {"f:spec": {"f:nodeName": {}}}}], **owner}
    around = [
        pod("a"),
        pod(
            "running",
            phase="Running",
            reason=None,
            meta={"managedFields": [{"fieldsV1": {"f:spec": {}}}]},
        ),
        pod(
            "plugin",
            phase="Running",
            reason=None,
            spec={"volumes": [{"hostPath": {"path": "/var/lib/kubelet/device-plugins/"}}]},
            status={
                "containerStatuses": [
                    {
                        "name": "c",
                        "restartCount": 4,
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                        "lastState": {
                            "terminated": {"exitCode": 1, "message": "too many open files"}
                        },
                    }
                ]
            },
        ),
    ]
    data, cut = collect([pod("a", meta=fields)], around)
    (item,) = data["items"]
    assert (
        item["placed"],
        item["owner"],
        item["owner_uid"],
        item["requests"],
        item["message"],
    ) == (True, "Job/j", "u-j", {"nvidia.com/gpu": 2}, TEXT)
    assert [(one["name"], one["placed"]) for one in data["nodes"]["w1"]["pods"]] == [
        ("running", False),
        ("plugin", None),
    ]
    assert data["nodes"]["w1"]["plugins"][0]["containers"] == [
        {
            "name": "c",
            "ready": False,
            "restarts": 4,
            "waiting": "CrashLoopBackOff",
            "exit_code": 1,
            "message": "too many open files",
        }
    ]
    assert not cut


def plugin(name, **state):
    return pod(
        name,
        phase="Running",
        reason=None,
        spec={"volumes": [{"hostPath": {"path": "/var/lib/kubelet/device-plugins"}}]},
        status={
            "containerStatuses": [
                dict(
                    {
                        "name": "c",
                        "restartCount": 4,
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                        "lastState": {"terminated": {"exitCode": 1}},
                    },
                    **state,
                )
            ]
        },
    )


LOG = "/api/v1/namespaces/n/pods/%s/log?container=c&previous=true&tailLines=40&limitBytes=16384"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["starting", "inotify_init1: Too many open files", "exiting"],
            "inotify_init1: Too many open files",
        ),
        (["starting", "no driver"], "no driver"),
        ([], ""),
        (["x", "password=hunter2hunter2"], "password=**************"),
    ],
)
def test_what_a_plugin_that_does_not_stay_up_said_last(lines, message):
    data, _dummy = collect([pod("a")], [plugin("plugin")], logs={LOG % "plugin": lines})
    assert data["nodes"]["w1"]["plugins"][0]["containers"][0]["message"] == message


def test_only_few_logs_are_read_and_none_of_those_that_are_well():
    around = [plugin(f"p{number}") for number in range(9)] + [
        plugin("well", ready=True, state={"running": {}})
    ]
    api = Answers([pod("a")], around, logs={LOG % "p0": ["why"], LOG % "well": ["no"]})
    data, _dummy = cluster_rejected.collect(api, lambda error: False)
    assert sum("/log?" in path for path in api.asked) == cluster_rejected.MAX_LOGS
    assert not any("well" in path for path in api.asked)
    assert [one["containers"][0]["message"] for one in data["nodes"]["w1"]["plugins"]] == [
        "why"
    ] + [""] * 9


def test_requests_are_those_of_the_scheduler():
    def container(count, **more):
        return dict({"resources": {"requests": {"x.example/d": count, "cpu": "100m"}}}, **more)

    spec = {
        "containers": [container("1"), container("2")],
        "initContainers": [container("5"), container("1", restartPolicy="Always"), {}],
    }
    assert cluster_rejected.requests(spec) == {"x.example/d": 5}
    assert cluster_rejected.requests({"containers": [container("3"), container("4")]}) == {
        "x.example/d": 7
    }


def test_compute_resources_are_those_that_a_kubelet_counts():
    def container(cpu, memory, **more):
        return dict(
            {
                "resources": {
                    "requests": {"cpu": cpu, "memory": memory},
                    "limits": {"cpu": "9", "x.example/d": "1"},
                }
            },
            **more,
        )

    spec = {
        "containers": [container("250m", "64Mi"), {"resources": {"limits": {"cpu": "0.1"}}}, {}],
        "initContainers": [
            container("50m", "1Mi", restartPolicy="Always"),
            container("1", "8Mi"),
            container("1m", "1", restartPolicy="Always"),
        ],
        "overhead": {"cpu": "10m", "memory": "1Ki"},
    }
    assert cluster_rejected.compute(spec) == {
        "cpu": 1050 + 10,
        "memory": 65 * 2**20 + 1 + 1024,
        "pods": 1,
    }
    assert cluster_rejected.compute(dict(spec, resources={"requests": {"cpu": "3"}}))["cpu"] == 3010
    huge = {"containers": [{"resources": {"limits": {"hugepages-2Mi": "64Mi"}}}] * 2}
    assert cluster_rejected.compute(huge) == {
        "hugepages-2Mi": 2**27,
        "pods": 1,
    }
    assert cluster_rejected.COMPUTE.match("OutOfhugepages-2Mi")
    assert (
        cluster_rejected.compute({})
        == {"pods": 1}
        == cluster_rejected.compute({"containers": [{"resources": {"requests": {"cpu": "much"}}}]})
    )


def test_compute_resources_are_only_read_where_a_node_lacked_them():
    around = [pod("running", phase="Running", reason=None, limits={"cpu": "1500m"})]
    data, _dummy = collect(
        [pod("a", reason="OutOfcpu", message="", limits={"cpu": "700m"})], around
    )
    assert data["items"][0]["compute"] == {"cpu": 700, "pods": 1}
    assert data["nodes"]["w1"]["pods"][0]["compute"] == {"cpu": 1500, "pods": 1}
    data, _dummy = collect([pod("a")], around)
    assert "compute" not in data["items"][0]
    assert "compute" not in data["nodes"]["w1"]["pods"][0]


def owned(kind, uid="u-o", name="o"):
    return {"ownerReferences": [{"kind": kind, "name": name, "uid": uid, "controller": True}]}


JOB, SET = "/apis/batch/v1/namespaces/n/jobs/o", "/apis/apps/v1/namespaces/n/replicasets/o"


@pytest.mark.parametrize(
    ("kind", "path", "found", "wanted"),
    [
        ("Job", JOB, {"parallelism": 4, "completions": 3}, 3),
        ("Job", JOB, {"parallelism": 2, "completions": None}, 2),
        ("Job", JOB, {"parallelism": 0}, None),
        ("ReplicaSet", SET, {"replicas": 5}, 5),
        ("StatefulSet", SET.replace("replicasets", "statefulsets"), {"replicas": 5}, 5),
        (
            "ReplicationController",
            "/api/v1/namespaces/n/replicationcontrollers/o",
            {"replicas": 0},
            None,
        ),
        ("PyTorchJob", JOB, {"parallelism": 4}, None),
        ("Job", SET, {"replicas": 5}, None),
    ],
)
def test_how_many_pods_an_owner_wants_at_a_time(kind, path, found, wanted):
    owners = {path: {"metadata": {"uid": "u-o"}, "spec": found}}
    data, _dummy = collect([pod("a", meta=owned(kind))], owners=owners)
    assert data["items"][0]["wanted"] == wanted
    data, _dummy = collect([pod("a", meta=owned(kind, uid="volcanos"))], owners=owners)
    assert data["items"][0]["wanted"] is None


def test_owners_that_cannot_be_read_cost_nothing_else():
    data, cut = collect([pod("a", meta=owned("Job"))], owners=ApiError("denied", "no"))
    assert data["items"][0].get("wanted") is None
    assert not cut
    api = Answers(
        [pod(f"p{number}", meta=owned("Job", f"u-{number}", f"o-{number}")) for number in range(40)]
    )
    cluster_rejected.collect(api, lambda error: False)
    assert sum("/jobs/" in path for path in api.asked) == cluster_rejected.MAX_OWNERS


def test_the_time_limit_keeps_what_was_read_and_says_so():
    data, cut = collect([pod("a")], fail=ApiError("timeout", "the time limit was reached"))
    assert len(data["items"]) == 1
    assert data["nodes"] == {}
    assert cut
    with pytest.raises(ApiError):
        collect([pod("a")], fail=ApiError("denied", "no"))


def test_only_the_newest_of_very_many_are_kept():
    many = [
        pod("a", meta={"creationTimestamp": f"2027-01-15T{hour:02d}:{minute:02d}:00Z"})
        for hour, minute in (divmod(number, 60) for number in range(1000))
    ]
    data, cut = collect(many)
    assert (data["total"], data["nodes"]["w1"]["rejected"]) == (1000, 1000)
    assert len(data["items"]) == cluster_rejected.MAX_ITEMS
    assert data["items"][0]["created"] == "2027-01-15T16:39:00Z"
    assert cut


def test_resources_of_a_node():
    status = {
        "capacity": {"cpu": "2", "nvidia.com/gpu": "2", "x.example/d": "1"},
        "allocatable": {"nvidia.com/gpu": "1"},
    }
    assert cluster_rejected.resources_of({"status": status}) == {
        "nvidia.com/gpu": [2, 1],
        "x.example/d": [1, 0],
    }


AT, LATER = "2027-01-15T09:00:01Z", "2027-01-15T09:30:00Z"
KUBELET = {"manager": "kubelet", "operation": "Update", "time": AT, "subresource": "status"}


def written(*entries, **status):
    return pod(
        "a",
        meta={"managedFields": [{"manager": "kube-scheduler", "time": LATER}, *entries]},
        status=status,
    )


@pytest.mark.parametrize(
    ("item", "at"),
    [
        (written(KUBELET), AT),
        (written(KUBELET, dict(KUBELET, apiVersion="v2", time=LATER)), LATER),
        (written(KUBELET, conditions=[{"type": "example.org/gate"}]), AT),  # no kubelet's
        # a kubelet that started later wrote it once more
        (written(KUBELET, conditions=[{"type": "Ready"}]), None),
        (written(KUBELET, containerStatuses=[{"name": "c"}]), None),
        (written(), None),
        (written(dict(KUBELET, time=7)), None),
        (written(dict(KUBELET, time="soon")), None),
        (written("kubelet", None, 3), None),
        (written(KUBELET, phase="Running"), None),
        ({"metadata": 1, "status": []}, None),
        ({"metadata": {"managedFields": {"time": AT}}, "status": written()["status"]}, None),
        ({}, None),
    ],
)
def test_when_it_was_rejected(item, at):
    assert cluster_rejected.rejected_at(item) == at


def event(uid="u-a", reason="UnexpectedAdmissionError", **more):
    return {
        "involvedObject": {"kind": "Pod", "uid": uid},
        "reason": reason,
        "lastTimestamp": AT,
        **more,
    }


@pytest.mark.parametrize(
    ("events", "at"),
    [
        ([event()], AT),
        ([event(), event(lastTimestamp=LATER)], LATER),
        (
            [event(lastTimestamp=None, eventTime="2027-01-15T09:00:01.123456Z")],
            "2027-01-15T09:00:01.123456Z",
        ),
        (
            [
                event("u-b"),
                event(reason="Failed"),
                event(lastTimestamp=9),
                {},
                {"involvedObject": 1},
            ],
            None,
        ),
        (ApiError("denied", "no"), None),
        (ApiError("timeout", "the time limit was reached"), None),
    ],
)
def test_events_tell_it_where_the_pod_does_not(events, at):
    data, cut = collect(
        [pod("a", meta={"managedFields": [{"manager": "kubelet", "fieldsV1": {"f:spec": {}}}]})],
        events=events,
    )
    assert data["items"][0]["rejected_at"] == at
    assert not cut


def test_events_are_only_asked_for_when_a_time_lacks():
    for item, asked in (
        (written(KUBELET), 0),
        (written(), 1),
        (pod("numa", reason="Topology Affinity Error"), 1),
        (pod("cpu", reason="a,b=c", message="Pod was rejected: x"), 0),
        (pod("x", spec={"containers": []}), 0),
    ):
        answers = Answers([item])
        cluster_rejected.collect(answers, lambda error: False)
        assert (
            len([one for one in answers.asked if one.startswith("involvedObject.kind=Pod,reason=")])
            == asked
        )


def test_devices_that_it_had():
    def container(*parts):
        return {"name": "c", "allocatedResourcesStatus": list(parts)}

    two = {"name": "x.example/d", "resources": [{"resourceID": "a"}, {"resourceID": "b"}]}
    one = {"name": "x.example/d", "resources": [{"resourceID": "c"}]}
    assert cluster_rejected.had(
        {
            "containerStatuses": [
                container(two),
                container(one, {"name": "claim:x", "resources": [{}]}),
            ]
        }
    ) == {"x.example/d": 3}
    for odd in (
        {},
        {"containerStatuses": 1},
        {"containerStatuses": [1, container(1, {"name": 1}, {"name": "a/b", "resources": {}})]},
        {"containerStatuses": [{"allocatedResourcesStatus": {}}]},
    ):
        assert cluster_rejected.had(odd) == {}
