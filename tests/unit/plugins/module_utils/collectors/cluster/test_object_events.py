# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which events about Nodes, Services and volumes the evidence has."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    object_events,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError


class Client:
    """Events by the first word of their selector; an error comes at its place."""

    def __init__(self, *events):
        self.events, self.asked = events, []

    def items(self, path, query=None):
        assert path == "/api/v1/events"
        selector = query["fieldSelector"]
        self.asked.append(selector)
        for item in self.events:
            if isinstance(item, Exception):
                raise item
            kind = item["involvedObject"]["kind"]
            is_other = kind not in ("Node", "PersistentVolumeClaim", "Pod")
            if selector == f"involvedObject.kind={kind}" or (
                is_other and selector.startswith("type=Warning") and item["type"] == "Warning"
            ):
                yield item


def event(kind, reason, message, name="w1", type_="Warning", count=1, last="2027-01-15T07:50:00Z"):
    return {
        "involvedObject": {"kind": kind, "name": name, "namespace": "a", "uid": "u"},
        "reason": reason,
        "message": message,
        "type": type_,
        "count": count,
        "firstTimestamp": "2027-01-15T07:00:00Z",
        "lastTimestamp": last,
        "source": {"component": "kubelet", "host": "w1"},
    }


def collect(*events):
    return object_events.collect(Client(*events), lambda error: error.status == "timeout")


def test_events_of_nodes():
    data, is_cut = collect(
        event("Node", "SystemOOM", "System OOM encountered, victim process: java, pid: 7"),
        event("Node", "SystemOOM", "System OOM encountered, victim process: java, pid: 9"),
        event("Node", "SystemOOM", "System OOM encountered, victim process: java, pid: 9", "w2"),
        event("Node", "CIDRNotAvailable", "Node w1 status is now", type_="Normal"),
        event("Node", "NodeReady", "Node w1 status is now: NodeReady", type_="Normal"),
        event("Node", "InvalidDiskCapacity", "invalid capacity 0 on image filesystem"),
    )
    rows = {(row["reason"], row["name"]): row["count"] for row in data["items"]}
    assert rows == {
        ("SystemOOM", "w1"): 2,
        ("SystemOOM", "w2"): 1,
        ("CIDRNotAvailable", "w1"): 1,
    }
    assert (data["items"][0]["component"], is_cut) == ("kubelet", False)


def test_how_many_messages_differ_however_often_they_come():
    same = event("Node", "SystemOOM", "System OOM encountered, victim process: java, pid: 7")
    other = event("Node", "SystemOOM", "System OOM encountered, victim process: java, pid: 9")
    (row,) = collect(same, same, same, other)[0]["items"]
    assert (row["count"], row["texts"]) == (4, 2)


def test_events_of_a_node_are_parted_by_who_reports_them():
    by_controller = event("Node", "NodeNotReady", "Node w1 status is now: NodeNotReady", count=2)
    by_controller["source"] = {"component": "node-controller"}
    data, _is_cut = collect(
        event("Node", "NodeNotReady", "Node w1 status is now: NodeNotReady"), by_controller
    )
    rows = {row["component"]: row["count"] for row in data["items"]}
    assert rows == {"kubelet": 1, "node-controller": 2}


def test_events_of_one_cause_about_several_objects_are_one_row():
    text = 'failed to provision volume with StorageClass "fast": rpc error: claim {}'
    claims = [
        event("PersistentVolumeClaim", "ProvisioningFailed", text.format(name), name, count=4)
        for name in ("data-db-0", "data-db-1")
    ]
    (row,) = collect(*claims)[0]["items"]
    assert (row["objects"], row["count"], row["namespace"]) == (2, 8, "a")


def test_the_newest_event_is_told_whatever_the_order():
    events = [
        event("Service", "SyncLoadBalancerFailed", "quota 5", "web", last="2027-01-15T07:58:00Z"),
        event("Service", "SyncLoadBalancerFailed", "quota 3", "web", last="2027-01-15T07:40:00Z"),
    ]
    for given in (events, events[::-1]):
        (row,) = collect(*given)[0]["items"]
        assert (row["message"], row["last"]) == ("quota 5", "2027-01-15T07:58:00Z")


def test_events_of_workloads_are_left_out():
    rows = collect(
        event("Job", "BackoffLimitExceeded", "Job has reached the specified backoff limit"),
        event("HorizontalPodAutoscaler", "FailedGetResourceMetric", "no metrics"),
        event("Service", "Other", "x"),
    )[0]["items"]
    assert rows == []


def test_secrets_stay_and_texts_are_bounded(monkeypatch):
    text = "AWS token=abcdefghijklmnopqrstuvwxyz012345 " + "x" * 5000
    (row,) = collect(event("Service", "SyncLoadBalancerFailed", text))[0]["items"]
    assert "abcdefghijklmnop" not in row["message"]
    assert len(row["message"]) < 700
    monkeypatch.setattr(object_events, "MAX_READ", 1)
    assert collect(event("Node", "SystemOOM", "a"), event("Node", "SystemOOM", "b"))[1] is True


def test_an_api_that_does_not_answer():
    data, is_cut = collect(event("Node", "SystemOOM", "a"), ApiError("timeout", "late"))
    assert (len(data["items"]), is_cut) == (1, True)
    with pytest.raises(ApiError):
        collect(ApiError("denied", "HTTP 403", 403))
