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


def row(node="w1", status="Running"):
    return {"Name": "a", "Status": status, "Node": node}


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
            {"node": "w1", "states": {"Running": 2, "CrashLoopBackOff": 1}},
            {"node": "w2", "states": {"Terminating": 1}},
        ],
        "ending": [
            {
                "node": "w2",
                "pods": 2,
                "since": DELETED,
                "names": ["n/a", "n/b"],
                "finalizers": 1,
            }
        ],
    }


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
    assert data["nodes"] == [{"node": "w1", "states": {"Running": 1}}]


@pytest.mark.parametrize("rows", [[{"metadata": {}}], [ApiError("error", "gone", 410)]])
def test_without_a_table_it_is_an_error(rows):
    with pytest.raises(ApiError):
        collect(rows)
