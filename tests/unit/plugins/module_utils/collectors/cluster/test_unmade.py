# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that are not there: owners that were refused one, and nodes that a DaemonSet leaves out."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    unmade,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError

RS = "/apis/apps/v1/namespaces/n/replicasets/"
CAF = {"key": "caf", "value": "log", "effect": "NoSchedule"}
MASTER = {"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}


class Answers:
    """Lists and objects by their path."""

    def __init__(self, events=(), daemonsets=(), pods=(), **objects):
        self.lists = {
            "/api/v1/events": events,
            "/apis/apps/v1/daemonsets": daemonsets,
            "/api/v1/pods": pods,
        }
        self.objects, self.asked = objects, []

    def items(self, path, query=None):
        self.asked.append((path, query))
        for item in self.lists[path]:
            if isinstance(item, Exception):
                raise item
            if path != "/api/v1/pods" or query["fieldSelector"] == "spec.nodeName=" + (
                item["spec"].get("nodeName") or ""
            ):
                yield item

    def find(self, path):
        self.asked.append((path, None))
        return self.objects.get(path.rsplit("/", 1)[1])


def event(
    name="rs",
    message="exceeded quota",
    first="2027-01-15T08:00:00Z",
    last="2027-01-15T08:00:00Z",
    kind="ReplicaSet",
    uid="u",
):
    return {
        "reason": "FailedCreate",
        "involvedObject": {"kind": kind, "namespace": "n", "name": name, "uid": uid},
        "message": message,
        "firstTimestamp": first,
        "lastTimestamp": last,
    }


def owner(wanted=2, has=0, uid="u", **more):
    meta = {
        "uid": uid,
        "ownerReferences": [{"kind": "Deployment", "name": "d", "controller": True}],
    }
    return {
        "metadata": dict(meta, **more),
        "spec": {"replicas": wanted},
        "status": {"replicas": has},
    }


def collect(answers, nodes=()):
    return unmade.collect(
        answers, lambda error: error.status == "timeout", None if nodes is None else list(nodes)
    )


def test_an_owner_that_lacks_pods_is_told_of_by_its_newest_event():
    again = unmade.AGAIN
    answers = Answers(
        [
            event(last="2027-01-15T08:00:01Z"),
            event(
                message=again + "newest", first="2027-01-15T07:00:00Z", last="2027-01-15T08:00:09Z"
            ),
            event(message="older", last="2027-01-15T08:00:02Z"),
            event(kind="Node"),
            {},
        ],
        rs=owner(),
    )
    data, cut = collect(answers)
    assert not cut
    assert data["refused"] == [
        {
            "kind": "ReplicaSet",
            "namespace": "n",
            "name": "rs",
            "owner": "Deployment/d",
            "message": "newest",
            "first": "2027-01-15T07:00:00Z",
            "last": "2027-01-15T08:00:09Z",
            "wanted": 2,
            "has": 0,
        }
    ]
    assert answers.asked == [
        ("/api/v1/events", {"fieldSelector": "reason=FailedCreate"}),
        (RS + "rs", None),
    ]


@pytest.mark.parametrize(
    "found",
    [
        None,
        owner(has=2),
        owner(wanted=0),
        owner(uid="another"),
        owner(deletionTimestamp="2027-01-15T08:00:00Z"),
    ],
)
def test_an_owner_that_is_gone_or_has_its_pods_is_not(found):
    assert collect(Answers([event()], rs=found))[0]["refused"] == []


@pytest.mark.parametrize(
    ("kind", "spec", "status", "counts"),
    [
        ("Job", {"parallelism": 3, "completions": 4}, {"succeeded": 2, "active": 1}, (2, 1)),
        ("Job", {"parallelism": 1}, {}, (1, 0)),
        ("Job", {}, {}, (1, 0)),
        ("Job", {"suspend": True}, {}, None),
        ("Job", {}, {"conditions": [{"type": "Failed", "status": "True"}]}, None),
        ("DaemonSet", {}, {"desiredNumberScheduled": 3, "currentNumberScheduled": 1}, (3, 1)),
        ("StatefulSet", {"replicas": 3}, {"replicas": 1}, (3, 1)),
        ("ReplicationController", {}, {}, (1, 0)),
    ],
)
def test_how_many_pods_it_lacks(kind, spec, status, counts):
    assert unmade.lacking({"spec": spec, "status": status}, kind) == counts


def test_it_is_bounded(monkeypatch):
    many = [
        event(name=f"rs{number:03d}", last=f"2027-01-15T08:{number % 60:02d}:00Z")
        for number in range(unmade.MAX_OWNERS + 5)
    ]
    answers = Answers(many)
    assert collect(answers)[1]
    assert len(answers.asked) == 1 + unmade.MAX_OWNERS
    monkeypatch.setattr(unmade, "MAX_EVENTS", 3)
    answers = Answers(many)
    assert collect(answers)[1]
    assert len(answers.asked) == 4


def test_what_was_read_until_the_time_limit_proves_something():
    data, cut = collect(
        Answers([event()], [ApiError("timeout", "late")], rs=owner()), [node("w1", CAF)]
    )
    assert cut
    assert len(data["refused"]) == 1
    with pytest.raises(ApiError):
        collect(Answers([ApiError("denied", "no", 403)]))


def node(name, *taints, **labels):
    return {"name": name, "labels": labels, "taints": list(taints)}


def daemonset(*tolerations, strays=0, **more):
    template = {"tolerations": list(tolerations), "nodeSelector": more.get("selector")}
    return {
        "metadata": {"namespace": "n", "name": "log", "uid": "ds"},
        "spec": {"selector": {"matchLabels": {"app": "log"}}, "template": {"spec": template}},
        "status": {"desiredNumberScheduled": more.get("desired", 2), "numberMisscheduled": strays},
    }


def running(where, uid="ds"):
    return {"metadata": {"ownerReferences": [{"uid": uid}]}, "spec": {"nodeName": where}}


def missed(item, *nodes, **more):
    found = collect(Answers(daemonsets=[item], **more), nodes)[0]["daemonsets"]
    return found[0]["nodes"] if found else []


def test_nodes_that_a_daemonset_leaves_out():
    nodes = [
        node("m1", MASTER),
        node("w1", CAF),
        node("w2", CAF),
        node("w3"),
        node("w4", {"key": "k", "effect": "PreferNoSchedule"}),
    ]
    item = daemonset({"key": "x", "operator": "Exists", "tolerationSeconds": 3}, strays=1)
    answers = Answers(daemonsets=[item], pods=[running("w2"), running("w1", "other")])
    data, cut = collect(answers, nodes)
    assert not cut
    assert data["daemonsets"] == [
        {
            "namespace": "n",
            "name": "log",
            "nodes": ["w1"],
            "more": 0,
            "desired": 2,
            "tolerations": [{"key": "x", "operator": "Exists"}],
        }
    ]
    assert sorted(
        query["fieldSelector"] for path, query in answers.asked if path == "/api/v1/pods"
    ) == ["spec.nodeName=", "spec.nodeName=w1", "spec.nodeName=w2"]


@pytest.mark.parametrize(
    "tolerations",
    [
        [CAF],
        [{"key": "caf", "operator": "Exists"}],
        [{"operator": "Exists"}],
        [{"key": "caf", "operator": "Gt", "value": "1"}],
        [],
    ],
)
def test_where_no_pod_can_be_there_or_must_be_none_is_asked_for(tolerations):
    """The controller adds pods for the taints that a DaemonSet tolerates.

    For a taint that it does not tolerate, the DaemonSet's own status says that no pod is missing.
    """
    answers = Answers(daemonsets=[daemonset(*tolerations) for _number in range(5)])
    data, cut = collect(answers, [node("w1", CAF)])
    assert [one["nodes"] for one in data["daemonsets"]] == ([] if tolerations else [["w1"]] * 5)
    assert not cut
    assert [path for path, _query in answers.asked] == [
        "/api/v1/events",
        "/apis/apps/v1/daemonsets",
    ]


@pytest.mark.parametrize(
    "toleration",
    [{"key": "caf", "value": "other"}, {"key": "other", "operator": "Exists"}, {"key": "caf"}],
)
def test_a_toleration_of_something_else(toleration):
    assert missed(daemonset(toleration), node("w1", CAF)) == ["w1"]


def test_a_status_that_is_late_proves_nothing():
    late = daemonset()
    late["metadata"]["generation"] = 2
    assert missed(late, node("w1", CAF), pods=[running("w1")]) == []


def test_pods_of_a_few_nodes_are_asked_for_once_each():
    answers = Answers(daemonsets=[daemonset(strays=1), daemonset(strays=1)])
    data, cut = collect(
        answers, [node(f"w{number:02d}", CAF) for number in range(unmade.MAX_NODES + 3)]
    )
    assert data["unlooked"] == 3
    assert not cut
    assert len(answers.asked) == 2 + unmade.MAX_NODES + 1
    assert [len(one["nodes"]) for one in data["daemonsets"]] == [unmade.MAX_NODES] * 2


def test_a_pod_that_waits_for_its_node_is_there():
    waits = {
        "metadata": {"ownerReferences": [{"uid": "ds"}]},
        "spec": {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchFields": [
                                    {"key": "metadata.name", "operator": "In", "values": ["w1"]}
                                ]
                            }
                        ]
                    }
                }
            }
        },
    }
    assert missed(daemonset(strays=1), node("w1", CAF), pods=[waits]) == []


@pytest.mark.parametrize(
    ("item", "names"),
    [
        (daemonset({"operator": "Exists"}), []),
        (daemonset({"operator": "Exists", "effect": "NoExecute"}), ["w1"]),
        (daemonset(selector={"gpu": "yes"}), []),
        (daemonset(selector={"disk": "big"}), ["w1"]),
        (daemonset(desired=0), ["m1", "w1"]),
    ],
)
def test_of_which_nodes_a_daemonset_may_lack_a_pod(item, names):
    assert (
        missed(
            item,
            node("m1", MASTER),
            node("w1", CAF, disk="big"),
            node("w2", {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}),
        )
        == names
    )


def test_without_a_tainted_node_daemonsets_are_not_asked_for():
    answers = Answers()
    assert collect(
        answers,
        [
            node("w1"),
            node("w2", {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}),
        ],
    ) == ({"refused": [], "daemonsets": [], "unlooked": 0}, False)
    assert len(answers.asked) == 1


def test_without_the_nodes_the_list_is_not_whole():
    assert collect(Answers(), None) == ({"refused": [], "daemonsets": [], "unlooked": 0}, True)
