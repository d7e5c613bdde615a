# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All pods by node and state, and those whose deletion was asked for."""

import json

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    pod_states,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError
from tests.unit.support.listed_pods import Lists

DELETED = "2027-01-15T07:00:00Z"


def row(node="w1", status="Running", name="a"):
    return {"Name": name, "Status": status, "Node": node}


def meta(name, deleted=None, finalizers=()):
    fields = {"namespace": "n", "name": name, "finalizers": list(finalizers)}
    return {"metadata": dict(fields, deletionTimestamp=deleted) if deleted else fields}


def collect(rows, **nodes):
    api = Lists(
        {
            "spec.nodeName!=,": rows,
            **{"spec.nodeName=" + name: items for name, items in nodes.items()},
        }
    )
    data, cut = pod_states.collect(api, lambda error: error.status == "timeout")
    json.dumps(data)
    return data, cut


def test_pods_are_counted_and_those_that_end_are_read_again():
    data, cut = collect(
        [row(), row(), row(status="CrashLoopBackOff"), row("w2", "Terminating")],
        w2=[
            meta("a", "2027-01-15T07:10:00Z"),
            meta("b", DELETED, ["x/y"]),
            meta("c"),
            {},
        ],
    )
    assert not cut
    assert data == {
        "nodes": [
            {"node": "w1", "states": {"Running": 2, "CrashLoopBackOff": 1}, "elsewhere": 0},
            {"node": "w2", "states": {"Terminating": 1}, "elsewhere": 0},
        ],
        "ending": [
            {
                "node": "w2",
                "pods": 2,
                "since": "2027-01-15T07:10:00Z",  # b waits for its finalizer
                "names": ["n/a"],
                "finalizers": 1,
            }
        ],
    }


def test_workloads_that_crash_on_one_node_and_run_on_another_are_counted():
    crash = "CrashLoopBackOff"
    data, _cut = collect(
        [
            row("w1", crash, "proxy-b7xkq"),
            row("w2", name="proxy-c8zwd"),
            row("w1", crash, "web-1-b7xkq"),
            row("w1", crash, "web-1-c8zwd"),
            row("w1", crash, "db-0"),
            row("w1", name="db-1"),
            row("w2", "Pending", "web-1-d2fgh"),
            row("w1", crash, None),
        ]
    )
    assert [node["elsewhere"] for node in data["nodes"]] == [1, 0]


def test_it_is_bounded(monkeypatch):
    monkeypatch.setattr(pod_states, "MAX_PODS", 5)
    monkeypatch.setattr(pod_states, "MAX_STATES", 2)
    monkeypatch.setattr(pod_states, "MAX_ENDING", 0)
    rows = [row(status=status) for status in ("a", "b", "c", "d", "Terminating", "e")]
    data, cut = collect(rows)
    assert cut
    assert data["nodes"][0]["states"] == {"a": 1, "b": 1, "other": 3}
    assert data["ending"] == []


def test_a_time_limit_keeps_what_was_read():
    data, cut = collect([row(), ApiError("timeout", "late")])
    assert cut
    assert data["nodes"] == [{"node": "w1", "states": {"Running": 1}, "elsewhere": 0}]


@pytest.mark.parametrize("rows", [[{"metadata": {}}], [ApiError("error", "gone", 410)]])
def test_without_a_table_it_is_an_error(rows):
    with pytest.raises(ApiError):
        collect(rows)


@pytest.mark.parametrize(
    ("name", "workload"),
    [
        ("calico-node-x2bzx", "calico-node"),
        ("web-7d4b9c8f6d-x2bzx", "web-7d4b9c8f6d"),
        ("db-12", "db"),
        ("kube-apiserver-ip-10-0-0-1", "kube-apiserver"),
        # pods without a controller, whose names begin alike
        ("test-one", ""),
        ("test-apple", ""),
        ("one", ""),
    ],
)
def test_whose_pod_it_is_by_its_name(name, workload):
    assert pod_states.workload_of(name, "ip-10-0-0-1") == workload


def test_pods_that_stand_alone_are_of_no_common_workload():
    crash = "CrashLoopBackOff"
    rows = [row("w1", crash, "test-one"), row("w2", name="test-two")]
    assert [node["elsewhere"] for node in collect(rows)[0]["nodes"]] == [0, 0]
