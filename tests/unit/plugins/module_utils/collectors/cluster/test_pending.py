# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that no scheduler finds a node for, and what is kept of a Node.

The Node's taints, conditions and lease are kept.
"""

import json

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    pending as cluster_pending,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError
from tests.unit.support.fake_client import ItemClient

TEXT = "0/2 nodes are available: 2 node(s) had untolerated taint {caf: log}."


def pod(
    name,
    message=TEXT,
    since="2027-01-15T08:00:00Z",
    owner="rs",
    reason="Unschedulable",
    tolerations=None,
    status="False",
):
    meta = {"namespace": "n", "name": name}
    if owner:
        meta["ownerReferences"] = [{"kind": "ReplicaSet", "name": owner, "controller": True}]
    return {
        "metadata": meta,
        "spec": {"schedulerName": "default-scheduler", "tolerations": tolerations},
        "status": {
            "phase": "Pending",
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": status,
                    "reason": reason,
                    "message": message,
                    "lastTransitionTime": since,
                }
            ],
        },
    }


def collect(*items):
    return cluster_pending.collect(
        ItemClient(*items), lambda error: isinstance(error, ApiError) and error.status == "timeout"
    )


def test_one_list_of_pending_pods_is_asked_for():
    answers = ItemClient()
    assert cluster_pending.collect(answers, lambda error: False) == (
        {"items": [], "total": 0, "read": 0, "taken": 0, "unseen": [], "gated": [], "bound": []},
        False,
    )
    assert answers.asked == [("/api/v1/pods", {"fieldSelector": "status.phase=Pending"})]


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        ({}, True),
        ({"reason": "SchedulerError"}, True),
        ({"reason": "SchedulingGated"}, False),
        ({"reason": None}, False),
        ({"status": "True"}, False),
    ],
)
def test_only_what_a_scheduler_refused_is_kept(more, kept):
    data, cut = collect(pod("a", **more), {"metadata": {}, "status": {"conditions": "x"}}, {})
    assert (len(data["items"]), data["total"], cut) == (int(kept), int(kept), False)


def test_pods_of_one_owner_that_hear_the_same_are_one_entry():
    tolerations = [{"key": "a", "operator": "Exists", "tolerationSeconds": 300, "more": "x"}]
    data, cut = collect(
        *[
            pod(
                f"p{number}",
                since=f"2027-01-15T08:00:{30 - number:02d}Z",
                tolerations=tolerations,
            )
            for number in range(7)
        ],
        pod("q", owner="other"),
        pod("r", message="0/2 nodes are available: 2 Insufficient cpu."),
        pod("bare", owner=None),
    )
    assert (len(data["items"]), data["total"], cut) == (4, 10, False)
    first = next(one for one in data["items"] if one["pods"] == 7)
    assert first["names"] == ["p0", "p1", "p2", "p3", "p4"]
    assert first["since"] == "2027-01-15T08:00:24Z"
    assert first["owner"] == "ReplicaSet/rs"
    assert first["tolerations"] == [{"key": "a", "operator": "Exists"}]
    assert first["message"] == TEXT


def test_what_a_pod_asks_for_and_what_the_largest_node_has():
    asking = pod("a")
    asking["spec"]["containers"] = [
        {
            "resources": {
                "requests": {"cpu": "1500m", "memory": "1Gi"},
                "limits": {"nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"},
            }
        },
        {"resources": {"requests": {"cpu": 1}}},
    ]
    has = {
        "n1": {"cpu": 4000, "memory": 2**33, "hugepages-2Mi": 0},
        "n2": {"cpu": 8000, "memory": 2**32},
    }
    data, _dummy = cluster_pending.collect(
        ItemClient(asking, pod("b")), lambda error: False, allocatable=has
    )
    assert data["items"][0]["asks"] == {
        "cpu": 2500,
        "memory": 2**30,
        "nvidia.com/gpu": 2,
        "hugepages-2Mi": 2**22,
    }
    assert data["items"][1]["asks"] == {}
    assert data["largest"] == {"cpu": 8000, "memory": 2**33, "hugepages-2Mi": 0}
    assert (
        len(
            cluster_pending.asks_of(
                {
                    "containers": [
                        {"resources": {"limits": {f"x.y/{one}": "1" for one in range(99)}}}
                    ]
                }
            )
        )
        == 20
    )
    assert (
        "largest"
        not in cluster_pending.collect(ItemClient(), lambda error: False, allocatable=has)[0]
    )


def test_it_is_bounded():
    data, cut = collect(
        *[pod(f"p{number}", owner=f"o{number}", message="m" * 9000) for number in range(300)]
    )
    assert cut
    assert len(data["items"]) == cluster_pending.MAX_ITEMS
    assert data["total"] == 300
    assert len(json.dumps(data)) < 600000
    assert max(len(one["message"]) for one in data["items"]) == cluster_pending.MAX_TEXT
    data, cut = collect(*[pod("p")] * (cluster_pending.MAX_READ + 9))
    assert cut
    assert data["total"] == cluster_pending.MAX_READ
    data, _dummy = collect(pod("p", tolerations=[{"key": f"k{number}"} for number in range(99)]))
    assert data["items"][0]["tolerations"] is None


def test_what_was_read_until_the_time_limit_proves_something():
    data, cut = collect(pod("a"), ApiError("timeout", "late"))
    assert cut
    assert data["total"] == 1
    with pytest.raises(ApiError):
        collect(pod("a"), ApiError("denied", "no", 403))


def meant(name, *terms):
    item = pod(name)
    item["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}
        }
    }
    return item


def field(*values, **more):
    return {
        "matchFields": [
            dict({"key": "metadata.name", "operator": "In", "values": list(values)}, **more)
        ]
    }


@pytest.mark.parametrize(
    ("terms", "node"),
    [
        ([field("m3")], "m3"),
        ([field("m3"), dict(field("m3"), matchExpressions=[])], "m3"),
        ([], None),
        ([field("m3"), field("m2")], None),
        ([field("m3"), {"matchExpressions": []}], None),
        ([field("m3", "m2")], None),
        ([field("m3", operator="NotIn")], None),
        ([{"matchFields": "x"}], None),
        ([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": None}]}], None),
    ],
)
def test_the_node_that_a_pod_is_meant_for(terms, node):
    assert cluster_pending.target_of(meant("a", *terms)) == node
    assert collect(meant("a", *terms))[0]["items"][0]["targets"] == ([["a", node]] if node else [])


def test_pods_of_a_daemonset_are_one_entry_with_their_nodes():
    data, _dummy = collect(
        *[
            meant(f"p{number}", field(f"n{number}"))
            for number in range(cluster_pending.MAX_TARGETS + 9)
        ]
    )
    assert len(data["items"]) == 1
    assert len(data["items"][0]["targets"]) == cluster_pending.MAX_TARGETS
    assert data["items"][0]["targets"][1] == ["p1", "n1"]


@pytest.mark.parametrize(
    ("labels", "unfit"),
    [
        ({"m3": {"disk": "ssd"}}, False),
        ({"m3": {}}, True),
        ({"m3": {"disk": "hdd"}, "m1": {"disk": "ssd"}}, True),
        ({"m1": {}}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_pod_that_does_not_ask_for_its_own_node_any_more(labels, unfit):
    """The node's label is gone.

    The scheduler counts that node then, and its controller soon removes the pod.
    """
    item = meant("a", field("m3"))
    item["spec"]["nodeSelector"] = {"disk": "ssd"}
    data, _dummy = cluster_pending.collect(
        ItemClient(item, meant("b", field("m3"))), lambda error: False, labels=labels
    )
    assert [one.get("unfit", False) for one in data["items"]] == (
        [True, False] if unfit else [False]
    )


def bare(name, scheduler="volcano", created="2027-01-15T08:00:00Z", conditions=None, **spec):
    return {
        "metadata": {"namespace": "n", "name": name, "creationTimestamp": created},
        "spec": dict({"schedulerName": scheduler}, **spec),
        "status": {"phase": "Pending", "conditions": conditions},
    }


def test_pods_that_nobody_looked_at_are_counted_by_their_scheduler():
    data, cut = collect(
        *[
            bare(f"p{number}", created=f"2027-01-15T08:00:{30 - number:02d}Z")
            for number in range(9)
        ],
        bare("q", "other"),
        pod("r"),
    )
    assert [
        (one["scheduler"], one["pods"], len(one["names"]), one["since"]) for one in data["unseen"]
    ] == [
        ("other", 1, 1, "2027-01-15T08:00:00Z"),
        ("volcano", 9, cluster_pending.MAX_NAMES, "2027-01-15T08:00:22Z"),
    ]
    assert not cut
    assert data["total"] == 1
    assert data["unseen"][0]["names"] == ["n/q"]


@pytest.mark.parametrize(
    "item",
    [
        bare("a", nodeName="m1"),
        bare("a", None),
        bare("a", schedulingGates=[{"name": "g"}]),
        bare("a", conditions=[{"type": "PodScheduled", "status": "True"}]),
        {"metadata": {"deletionTimestamp": "x"}, "spec": {"schedulerName": "a"}},
        {},
    ],
)
def test_pods_that_somebody_looked_at_or_nobody_is_to(item):
    assert collect(item)[0]["unseen"] == []


def test_names_of_schedulers_are_bounded():
    data, cut = collect(
        *[bare("p", f"s{number:03d}") for number in range(cluster_pending.MAX_SCHEDULERS + 5)]
    )
    assert cut
    assert len(data["unseen"]) == cluster_pending.MAX_SCHEDULERS


# Whose turn it is: a gate's owner, a kubelet, nobody


def test_pods_with_gates_are_held():
    gates = {"schedulingGates": [{"name": "b"}, {"name": "a"}, None]}
    held = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
    data, _dummy = collect(
        bare("p", conditions=held, **gates),
        bare("q", **gates),
        bare("r", schedulingGates=[{"name": "c"}]),
    )
    assert [(one["gates"], one["pods"], one["names"]) for one in data["gated"]] == [
        (["a", "b"], 2, ["n/p", "n/q"]),
        (["c"], 1, ["n/r"]),
    ]
    assert data["unseen"] == []
    assert data["items"] == []
    assert data["read"] == 3


def test_pods_that_have_a_node_wait_for_its_kubelet_until_it_begins():
    placed = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2027-01-15T08:00:09Z"}
    ]
    taken, gone = bare("c", nodeName="w1"), bare("d", nodeName="w1")
    taken["status"]["startTime"] = "2027-01-15T08:00:00Z"
    gone["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    data, _dummy = collect(
        bare("a", nodeName="w1", conditions=placed), bare("b", nodeName="w9"), taken, gone
    )
    assert [(one["node"], one["names"], one["since"]) for one in data["bound"]] == [
        ("w1", ["n/a"], "2027-01-15T08:00:09Z"),
        ("w9", ["n/b"], "2027-01-15T08:00:00Z"),
    ]
    assert (data["taken"], data["read"]) == (1, 4)


@pytest.mark.parametrize(
    ("nodes", "absent"), [(None, []), (("w1",), ["gone"]), (("w1", "joined", "gone"), [])]
)
def test_a_node_that_may_have_joined_since_they_were_listed_is_asked_for_by_its_name(nodes, absent):
    class Nodes(ItemClient):
        def find(self, path):
            self.asked.append((path, None))
            if path.endswith("/refused"):
                raise ApiError("denied", "no", 403)
            return {"metadata": {}} if path.endswith("/joined") else None

    answers = Nodes(*[bare(name, nodeName=name) for name in ("w1", "joined", "gone", "refused")])
    listed = None if nodes is None else {key: {} for key in nodes}
    rows = cluster_pending.collect(answers, lambda error: False, labels=listed)[0]["bound"]
    assert sorted(one["node"] for one in rows if one.get("absent")) == absent
    assert all(path != "/api/v1/nodes/w1" for path, _query in answers.asked)


def spoken(uid, message, last):
    return {"involvedObject": {"uid": uid}, "message": message, "lastTimestamp": last}


def test_events_speak_where_the_pod_does_not():
    answers = ItemClient(
        pod("a"),
        dict(
            bare("b"),
            metadata={
                "namespace": "n",
                "name": "b",
                "uid": "u-b",
                "creationTimestamp": "2027-01-15T08:00:00Z",
            },
        ),
        dict(pod("c", message=""), metadata={"namespace": "n", "name": "c", "uid": "u-c"}),
        bare("d"),
    )
    answers.events = [
        spoken("u-b", "old", "2027-01-15T08:00:01Z"),
        spoken("u-b", "new", "2027-01-15T08:00:03Z"),
        spoken("u-b", "older", "2027-01-15T08:00:02Z"),
        spoken("u-c", TEXT, None),
        {},
        {"involvedObject": {}, "message": "x"},
    ]
    data, cut = cluster_pending.collect(answers, lambda error: False)
    assert not cut
    assert [(one["names"], one["message"], one["since"]) for one in data["items"]] == [
        (["a"], TEXT, "2027-01-15T08:00:00Z"),
        (["b"], "new", "2027-01-15T08:00:00Z"),
        (["c"], TEXT, "2027-01-15T08:00:00Z"),
    ]
    assert [one["names"] for one in data["unseen"]] == [["n/d"]]
    assert answers.asked[1] == (
        "/api/v1/events",
        {"fieldSelector": "involvedObject.kind=Pod,reason=FailedScheduling"},
    )


def test_events_that_may_not_be_read_cost_nothing_and_are_not_asked_for_without_need():
    answers = ItemClient(bare("b"), pod("c", message=""))
    answers.events = [ApiError("denied", "no", 403)]
    data, cut = cluster_pending.collect(answers, lambda error: False)
    assert not cut
    assert len(data["unseen"]) == 1
    assert [one["message"] for one in data["items"]] == [""]
    answers = ItemClient(pod("a"), bare("b", nodeName="w1"))
    cluster_pending.collect(answers, lambda error: False)
    assert len(answers.asked) == 1


@pytest.mark.parametrize("asked", ["n/a", "U-A"])
def test_the_pod_that_was_asked_for_is_an_entry_of_its_own(asked):
    mine = pod("a")
    mine["metadata"]["uid"] = "u-a"
    data, _dummy = cluster_pending.collect(
        ItemClient(pod("b"), mine, pod("c")), lambda error: False, asked
    )
    assert [(one["names"], one.get("asked")) for one in data["items"]] == [
        (["a"], True),
        (["b", "c"], None),
    ]
    for item, name in (
        (bare("a"), "unseen"),
        (bare("a", nodeName="w1"), "bound"),
        (bare("a", schedulingGates=[{"name": "g"}]), "gated"),
    ):
        item["metadata"]["uid"] = "u-a"
        rows = cluster_pending.collect(ItemClient(item), lambda error: False, asked)[0][name]
        assert [one["asked"] for one in rows] == [True]


# Nodes that a pod does not ask for

LABELS = {"m1": {"zone": "a", "size": "3"}, "w1": {"zone": "b"}, "w2": {"size": "9"}}


def test_an_entry_says_which_nodes_it_does_not_ask_for():
    mine = pod("a")
    mine["spec"]["nodeSelector"] = {"zone": "a"}
    data, _dummy = cluster_pending.collect(
        ItemClient(mine, pod("b"), meant("c", field("m1"))), lambda error: False, None, LABELS
    )
    assert [one["off"] for one in data["items"]] == [["w1", "w2"], [], None]


def test_which_nodes_are_full_is_only_asked_where_a_scheduler_says_so():
    class Crowd(ItemClient):
        def items(self, path, query=None, accept=None, restarts=3):
            # a row that comes twice looks like two pods
            assert restarts == (3 if query == {"fieldSelector": "status.phase=Pending"} else 0)
            self.asked.append((path, query))
            # some servers make no tables
            placed = [{"spec": {"nodeName": name}} for name in ("w1", "w1")] + [
                {"Name": "c", "Node": "w2"}
            ]
            return iter(
                [pod("a", message=self.message)]
                if query == {"fieldSelector": "status.phase=Pending"}
                else placed
            )

    answers, room = Crowd(), {"w1": 2, "w2": 2, "w3": 0, "w4": None}
    answers.message = "0/4 nodes are available: 2 Too many pods."
    data, cut = cluster_pending.collect(answers, lambda error: False, None, None, room)
    assert not cut
    assert data["full"] == ["w1", "w3"]
    assert len(answers.asked) == 2
    assert cluster_pending.collect(answers, lambda error: False)[0]["full"] is None
    answers.message, answers.asked = TEXT, []
    assert "full" not in cluster_pending.collect(answers, lambda error: False, None, None, room)[0]
    assert len(answers.asked) == 1


def test_of_more_pods_than_are_read_nobody_knows(monkeypatch):
    monkeypatch.setattr(cluster_pending, "MAX_PLACED", 1)
    assert (
        cluster_pending.full_nodes(
            ItemClient(bare("a", nodeName="w1"), bare("b", nodeName="w1")), {"w1": 1}
        )
        is None
    )
    assert cluster_pending.full_nodes(ItemClient(ApiError("denied", "no", 403)), {"w1": 1}) is None


def test_a_table_without_nodes_tells_of_no_node():
    assert cluster_pending.full_nodes(ItemClient({"Name": "a"}), {"w1": 1}) is None
