# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that a kubelet accepted and that do not start, with the events about them."""

import json

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    pod_start,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError
from tests.unit.support.listed_pods import Lists

SINCE = "2027-01-15T07:30:00Z"
SANDBOX = "FailedCreatePodSandBox"
NO_ADDRESS = (
    'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network "4f1d0c'
    '22aa771bc": no IP addresses available in range set: 10.244.1.1-10.244.1.254'
)


def waiting(reason, message=None, name="app"):
    return {"name": name, "state": {"waiting": {"reason": reason, "message": message}}}


def pod(name="a", node="w1", containers=(), owner="ReplicaSet", init=(), since=SINCE, **meta):
    return {
        "metadata": {
            "namespace": "n",
            "name": name,
            "uid": "uid-" + name,
            "ownerReferences": [{"kind": owner, "name": "rs", "controller": True}] if owner else [],
            **meta,
        },
        "spec": {"nodeName": node},
        "status": {
            "startTime": since,
            "containerStatuses": list(containers),
            "initContainerStatuses": list(init),
        },
    }


def event(name="a", reason=SANDBOX, message=NO_ADDRESS, last="2027-01-15T07:59:00Z", **more):
    return {
        "reason": reason,
        "message": message,
        "count": 3,
        "firstTimestamp": "2027-01-15T07:31:00Z",
        "lastTimestamp": last,
        "involvedObject": {"kind": "Pod", "namespace": "n", "name": name, "uid": "uid-" + name},
        "source": {"component": "kubelet", "host": "w1"},
        **more,
    }


def ended(at, code=0):
    return {"state": {"terminated": {"exitCode": code, "finishedAt": at}}}


def turned(kind, at):
    return {"type": kind, "status": "False", "lastTransitionTime": at}


def table(*states):
    return [{"Status": state} for state in states]


def collect(pods=(), events=(), nodes=None, attachments=(), probes=(), found=None):
    api = Lists(
        {
            "reason=Unhealthy": probes,
            "status.phase=Pending": pods,
            "involvedObject.kind=Pod": events,
            **{"spec.nodeName=" + name: rows for name, rows in (nodes or {}).items()},
            pod_start.ATTACHMENTS: attachments,
        },
        found,
    )
    data, cut = pod_start.collect(api, lambda error: error.status == "timeout")
    json.dumps(data)
    return data, cut, api


@pytest.mark.parametrize(
    ("item", "state"),
    [
        (pod(), ("ContainerCreating", "")),
        (pod(containers=[waiting("ContainerCreating")]), ("ContainerCreating", "")),
        (pod(containers=[waiting("PodInitializing")]), ("ContainerCreating", "")),
        (pod(containers=[waiting("ErrImagePull", "x")]), ("ErrImagePull", "x")),
        (
            pod(containers=[{"state": {"running": {}}}, waiting("ImagePullBackOff", "y")]),
            ("ImagePullBackOff", "y"),
        ),
        (
            pod(init=[waiting("CrashLoopBackOff", "z")], containers=[waiting("PodInitializing")]),
            ("Init:CrashLoopBackOff", "z"),
        ),
        (pod(init=[{"state": {"running": {}}}]), ("Init:Running", "")),
        (pod(init=[{"state": {"running": {}}, "started": True}]), ("ContainerCreating", "")),
        (
            pod(init=[{"state": {"terminated": {"exitCode": 0}}}]),
            ("ContainerCreating", ""),
        ),
        (
            pod(init=[{"state": {"terminated": {"exitCode": 1, "message": "no"}}}]),
            ("Init:Error", "no"),
        ),
        ({"status": {"containerStatuses": [{"state": {"waiting": 1}}]}}, ("ContainerCreating", "")),
        ({}, ("ContainerCreating", "")),
    ],
)
def test_the_state_is_that_of_kubectl(item, state):
    assert pod_start.state_of(item) == state


def test_what_differs_for_each_pod_is_folded():
    text = "failed for app-0f9 of 0123456789abcdef at 10.0.0.1, container c"
    assert (
        pod_start.folded(text, "app-0f9", "c", None) == "failed for * of # at #.#.#.#, container c"
    )


def test_pods_of_one_owner_and_state_are_one_row_of_their_node():
    data, cut, _api = collect(
        [
            pod("a"),
            pod("b", since="2027-01-15T07:00:00Z"),
            pod("c", node="w2"),
            pod("d", containers=[waiting("ErrImagePull", "no such host")]),
            pod("e", owner=None),
            pod("b"),  # the list began again
            pod("gone", deletionTimestamp=SINCE),
            pod("waits", node=None),
            pod("silent", since=None),
        ],
        nodes={"w1": table("Running", "Running", "ContainerCreating"), "w2": []},
    )
    assert not cut
    assert data["read"] == 9
    assert [
        (row["node"], row["owner"], row["state"], row["pods"], row["names"], row["since"])
        for row in data["pods"]
    ] == [
        ("w1", "ReplicaSet/rs", "ContainerCreating", 2, ["b", "a"], "2027-01-15T07:00:00Z"),
        ("w1", None, "ContainerCreating", 1, ["e"], SINCE),
        ("w1", "ReplicaSet/rs", "ErrImagePull", 1, ["d"], SINCE),
        ("w2", "ReplicaSet/rs", "ContainerCreating", 1, ["c"], SINCE),
    ]
    assert data["nodes"] == [
        {"node": "w1", "waiting": 4, "states": {"Running": 2, "ContainerCreating": 1}},
        {"node": "w2", "waiting": 1, "states": {}},
    ]
    assert data["attachments"] is None


@pytest.mark.parametrize(
    ("more", "since"),
    [
        ({}, SINCE),
        # an init container worked until then
        ({"initContainerStatuses": [ended("2027-01-15T07:50:00Z")]}, "2027-01-15T07:50:00Z"),
        ({"initContainerStatuses": [ended("2027-01-15T07:50:00Z", 1)]}, SINCE),
        # its node booted
        ({"conditions": [turned("Ready", "2027-01-15T07:51:00Z")]}, "2027-01-15T07:51:00Z"),
        ({"conditions": [turned("Ready", "2027-01-15T07:00:00Z"), 5]}, SINCE),
        ({"conditions": [turned("Other", "2027-01-15T07:51:00Z")]}, SINCE),
        ({"conditions": [{"type": "Ready", "lastTransitionTime": 5}]}, SINCE),
    ],
)
def test_a_pod_waits_since_it_last_went_on(more, since):
    assert pod_start.since_of({"startTime": SINCE, **more}) == since


def test_of_a_row_the_oldest_pods_have_their_times():
    pods = [pod(f"p{number:02}", since=f"2027-01-15T07:{number:02}:00Z") for number in range(30)]
    data, _cut, _api = collect(reversed(pods), nodes={"w1": []})
    (row,) = data["pods"]
    assert (row["pods"], row["names"]) == (30, ["p00", "p01", "p02"])
    assert row["times"] == [f"2027-01-15T07:{number:02}:00Z" for number in range(20)]


def test_events_with_one_cause_are_one_row():
    other = NO_ADDRESS.replace("4f1d0c22aa771bc", "0b0b0b0b0b0b0b")
    data, _cut, _api = collect(
        [pod("a"), pod("b")],
        [
            event("a"),
            event(
                "b",
                message="(combined from similar events): " + other,
                last="2027-01-15T07:59:30Z",
            ),
            event("ended", message=other),
            event("a", reason="BackOff", message="Back-off restarting failed container"),
            event("a", reason="Unhealthy"),
            event("x", source={}),
            {},
        ],
        {"w1": table("ContainerCreating")},
    )
    first, second = data["events"]
    assert (first["reason"], first["count"], first["pods"], first["waiting"]) == (SANDBOX, 9, 3, 2)
    assert (first["message"], first["pod"], first["last"]) == (
        other,
        "n/b",
        "2027-01-15T07:59:30Z",
    )
    assert second["reason"] == "BackOff"


def test_each_workload_ends_for_itself():
    message = "Back-off restarting failed container work in pod"
    names = ("web-5d4f-aaaaa", "web-5d4f-bbbbb", "api-77c9-aaaaa")
    data, _cut, _api = collect((), [event(name, "BackOff", message) for name in names])
    assert [(row["pods"], row["pod"]) for row in data["events"]] == [
        (2, "n/web-5d4f-bbbbb"),
        (1, "n/api-77c9-aaaaa"),
    ]


def test_a_volume_whose_owners_are_changed():
    text = "Setting volume ownership for 1/volumes/x/mount is taking longer than expected"
    data, _cut, _api = collect(
        [pod("a", containers=[waiting("ContainerCreating", "")])],
        events=[event("a", "VolumePermissionChangeInProgress", text)],
        nodes={"w1": table("ContainerCreating")},
    )
    (row,) = data["pods"]
    assert row["event"]["message"] == text


@pytest.mark.parametrize("turned", [False, True])
def test_a_row_has_the_newest_event_that_says_a_cause(turned):
    events = [
        event(message="older", last="2027-01-15T07:40:00Z"),
        event(message="newest", last="2027-01-15T07:41:00Z"),
        event(message="Back-off pulling image", reason="BackOff", last="2027-01-15T07:59:00Z"),
    ]
    data, _cut, _api = collect([pod()], events[::-1] if turned else events, {"w1": []})
    assert data["pods"][0]["event"] == {
        "reason": SANDBOX,
        "message": "newest",
        "last": "2027-01-15T07:41:00Z",
    }


def test_volumes_that_are_attached_are_read_where_one_cannot_be():
    attachment = {
        "metadata": {"name": "csi-1", "deletionTimestamp": SINCE},
        "spec": {
            "attacher": "x.csi.example",
            "nodeName": "w2",
            "source": {"persistentVolumeName": "pvc-1"},
        },
        "status": {"attached": True, "detachError": {"message": "password=hunter2 refused"}},
    }
    data, _cut, _api = collect(
        [pod()], [event(reason="FailedAttachVolume")], {"w1": []}, [attachment]
    )
    assert data["attachments"] == [
        {
            "name": "csi-1",
            "node": "w2",
            "attacher": "x.csi.example",
            "volume": "pvc-1",
            "attached": True,
            "deleted": SINCE,
            "error": "password=***************",
        }
    ]
    attachment["status"]["detachError"]["message"] = "rpc error: " * 100 + "it is in use"
    data, _cut, _api = collect(
        [pod()], [event(reason="FailedAttachVolume")], {"w1": []}, [attachment]
    )
    error = data["attachments"][0]["error"]
    assert (error[:11], error[-12:]) == ("rpc error: ", "it is in use")
    assert len(error) <= pod_start.MAX_TEXT
    well = {"spec": {"source": {"persistentVolumeName": "pvc-2"}}, "status": {"attached": True}}
    wanted = 'Multi-Attach error for volume "pvc-2" Volume is already'
    for message, sent in (("x", []), (wanted, ["pvc-2"])):
        about = event(reason="FailedAttachVolume", message=message)
        data, cut, _api = collect([pod()], [about], {"w1": []}, [well])
        assert ([row["volume"] for row in data["attachments"]], cut) == (sent, False)
    denied = [ApiError("denied", "HTTP 403", 403)]
    data, cut, _api = collect([pod()], [event(reason="FailedMount")], {"w1": []}, denied)
    assert (data["attachments"], cut) == (None, False)


def test_no_secret_is_in_a_message():
    text = "cannot log in: password=hunter2 at https://me:hunter2@db"
    data, _cut, _api = collect(
        [pod(containers=[waiting("CreateContainerError", text)])], [event(message=text)], {"w1": []}
    )
    assert "hunter2" not in json.dumps(data)


def test_a_node_whose_table_is_none_has_no_states():
    data, _cut, _api = collect([pod()], (), {"w1": [{"metadata": {}}]})
    assert data["nodes"][0]["states"] is None


def test_it_is_bounded(monkeypatch):
    for name, most in (("MAX_READ", 6), ("MAX_ROWS", 3), ("MAX_NODES", 1), ("MAX_EVENT_ROWS", 2)):
        monkeypatch.setattr(pod_start, name, most)
    pods = [pod(str(number), node=f"w{number}", owner=None) for number in range(9)]
    data, cut, api = collect(
        pods, [event(name, message=name * 9 + "z") for name in "ghijk"], {"w0": [], "w1": []}
    )
    assert cut
    assert (data["read"], len(data["pods"]), len(data["nodes"])) == (6, 3, 1)
    assert len(data["events"]) == 2
    assert len(api.asked) == 4


def test_a_time_limit_keeps_what_was_read():
    timeout = ApiError("timeout", "no answer within the time limit")
    data, cut, _api = collect([pod("a"), timeout], [event("a"), timeout], {"w1": [timeout]})
    assert cut
    assert (len(data["pods"]), len(data["events"])) == (1, 1)
    with pytest.raises(ApiError):
        collect([ApiError("denied", "HTTP 403", 403)])


def test_the_end_of_a_long_message_is_kept():
    cause = "dial tcp: lookup reg.example on 10.0.0.2:53: no such host"
    message = 'Failed to pull image "reg.example/app:1": ' + "wrapped: " * 200 + cause
    data, _cut, _api = collect(
        [pod("a", containers=[waiting("ErrImagePull", message)])],
        events=[event("a", "Failed", message)],
        nodes={"w1": table("ErrImagePull")},
    )
    (row,) = data["pods"]
    for text in (row["message"], row["event"]["message"], data["events"][0]["message"]):
        assert text.startswith("Failed to pull image")
        assert text.endswith(cause)
        assert len(text) <= pod_start.MAX_TEXT


def probe(name="calico-node-bcdfg", namespace="calico-system", container="calico-node", **more):
    about = {"kind": "Pod", "namespace": namespace, "name": name}
    about["fieldPath"] = f"spec.containers{{{container}}}"
    message = "Readiness probe failed: BIRD is not ready: BGP not established with 192.0.2.11"
    return event(reason="Unhealthy", message=message, involvedObject=about, **more)


def test_failed_probes_of_the_cluster_s_own_pods():
    other = probe(last="2027-01-15T07:59:30Z", firstTimestamp="2027-01-15T07:20:00Z", count=9)
    data, cut, _api = collect(probes=[probe(), other, probe(namespace="default", container="app")])
    (row,) = data["unhealthy"]
    assert (row["pod"], row["container"], row["node"]) == ("calico-node-bcdfg", "calico-node", "w1")
    assert (row["count"], row["first"]) == (12, "2027-01-15T07:20:00Z")
    assert row["last"] == "2027-01-15T07:59:30Z"
    assert "BGP not established" in row["message"]
    assert not cut


@pytest.mark.parametrize(("container", "count"), [("driver-registrar", 1), ("app", 0)])
def test_agents_of_nodes_are_the_cluster_s_own_in_any_namespace(container, count):
    waits = pod(containers=[waiting("CrashLoopBackOff")])
    waits["spec"]["containers"] = [{"name": "csi-rbdplugin"}, {"name": container}]
    probes = [probe(namespace="a", container=container)]
    data, _cut, _api = collect([waits], nodes={"w1": []}, probes=probes)
    assert [row["agent"] for row in data["pods"]] == [bool(count)]
    assert len(data["unhealthy"]) == count


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        (None, 0),
        ({"metadata": {"uid": "another"}}, 0),
        ({"metadata": {"uid": "u", "deletionTimestamp": "2027-01-15T07:59:00Z"}}, 0),
        ({"metadata": {"uid": "u"}}, 1),
        # a static pod, whose mirror has a UID of its own
        ({"metadata": {"uid": "m", "annotations": {"kubernetes.io/config.hash": "u"}}}, 1),
        ({"metadata": {"uid": "m", "annotations": {"kubernetes.io/config.mirror": "u"}}}, 1),
        ({"metadata": {"uid": "m", "annotations": {"kubernetes.io/config.hash": "v"}}}, 0),
        (ApiError("denied", "HTTP 403", 403), 1),
    ],
)
def test_events_of_a_pod_that_is_gone_do_not_count(answer, count):
    failed = probe()
    failed["involvedObject"]["uid"] = "u"
    path = "/api/v1/namespaces/calico-system/pods/calico-node-bcdfg"
    data, cut, _api = collect(probes=[failed], found={path: answer})
    assert (len(data["unhealthy"]), cut) == (count, False)


def test_failed_probes_are_bounded_and_may_be_cut(monkeypatch):
    """What waits is whole all the same."""
    many = [probe(name=f"calico-node-{n}") for n in range(4)]
    data, cut, _api = collect(probes=many)
    assert (len(data["unhealthy"]), data["unhealthy_cut"], cut) == (4, False, False)
    monkeypatch.setattr(pod_start, "MAX_UNHEALTHY", 2)
    data, cut, _api = collect(probes=many)
    assert (len(data["unhealthy"]), data["unhealthy_cut"], cut) == (2, True, False)
    data, cut, _api = collect(probes=[probe(), ApiError("timeout", "too slow")])
    assert (data["unhealthy"], cut) == (None, True)
    monkeypatch.setattr(pod_start, "MAX_PROBES", 2)
    users = [probe(namespace="app", container="app") for _number in range(3)]
    data, cut, _api = collect(probes=[probe(), *users])
    assert [row["pod"] for row in data["unhealthy"]] == ["calico-node-bcdfg"]
    assert (data["unhealthy_cut"], cut) == (True, False)


@pytest.mark.parametrize(("most", "left"), [(0, 4), (1, 3), (4, 0)])
def test_of_so_many_pods_it_is_asked_whether_they_are_there(monkeypatch, most, left):
    monkeypatch.setattr(pod_start, "MAX_ASKED", most)
    names = [f"calico-node-{number}" for number in range(4)]
    gone = {f"/api/v1/namespaces/calico-system/pods/{name}": None for name in names}
    data, cut, _api = collect(probes=[probe(name=name) for name in names], found=gone)
    assert ([row["pod"] for row in data["unhealthy"]], cut) == (names[4 - left :], False)
