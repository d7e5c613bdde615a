# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock objects of kube-system, of every kind, through one API server."""

import json
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import locks
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import (
    ApiError,
    Deadline,
)

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
SYSTEM = "/api/v1/namespaces/kube-system"


def lease(name: str, holder: str = "m1_x", renewed: str = "2026-11-21T09:00:00Z") -> Any:
    return {
        "metadata": {"name": name, "namespace": "kube-system", "uid": "u"},
        "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseTransitions": 3},
    }


class Api:
    """Answers from a table of paths; an exception is raised."""

    clock = 7.0

    def __init__(self, **lists: Any) -> None:
        self.deadline = Deadline(600)
        self.lists = lists

    def get(self, path: str, **dummy: Any) -> Any:
        if path == SYSTEM:
            return {"metadata": {"uid": "cluster"}}
        return self._of("group", {"preferredVersion": {"groupVersion": "coordination.k8s.io/v1"}})

    def items(self, path: str, **dummy: Any) -> Any:
        return self._of(path.rpartition("/")[2], [])

    def _of(self, name: str, default: Any) -> Any:
        found = self.lists.get(name, default)
        if isinstance(found, Exception):
            raise found
        return found


def names(found: Any) -> Any:
    return [(lock["kind"], lock["name"], lock["holder"]) for lock in found["objects"]]


def test_leases_and_annotations_are_locks_of_their_own() -> None:
    record = json.dumps({"holderIdentity": "m2", "leaderTransitions": 1})
    annotated = {"metadata": {"name": "kube-scheduler", "annotations": {locks.LEADER: record}}}
    api = Api(
        leases=[lease("kube-scheduler")],
        endpoints=[annotated, {"metadata": {"name": "kube-dns"}}],
        configmaps=[{"metadata": {"name": "x", "annotations": {locks.LEADER: "{"}}}],
    )
    found = locks.read("a", api)
    assert names(found) == [
        ("ConfigMap", "x", None),
        ("Endpoints", "kube-scheduler", "m2"),
        ("Lease", "kube-scheduler", "m1_x"),
    ]
    assert (found["kube_system_uid"], found["error"], found["clock"]) == ("cluster", None, 7.0)


def test_the_identity_of_an_api_server_is_a_beat_and_no_lock() -> None:
    labelled = lease("other", renewed="2026-11-21T09:00:09Z")
    labelled["metadata"]["labels"] = {"apiserver.kubernetes.io/identity": "kube-apiserver"}
    api = Api(leases=[lease("kube-apiserver-abc"), labelled, lease("kube-scheduler")])
    found = locks.read("a", api)
    assert [name for _kind, name, _holder in names(found)] == ["kube-scheduler"]
    assert found["beat"] == "2026-11-21T09:00:09Z"


def test_a_kind_that_may_not_be_read_keeps_the_others() -> None:
    api = Api(leases=ApiError("denied", "no leases", 403), endpoints=[])
    found = locks.read("a", api)
    assert (found["error"], found["kube_system_uid"]) == ("no leases", "cluster")
    assert locks.read("a", Api(group=ApiError("absent", "none", 404)))["error"] is None


@pytest.mark.parametrize("error", [ApiError("error", "x", 500), ApiError("timeout", "x")])
def test_a_server_that_does_not_answer_is_an_error(error: ApiError) -> None:
    with pytest.raises(ApiError):
        locks.read("a", Api(leases=error))


def test_whether_two_servers_name_different_holders() -> None:
    one = locks.read("a", Api(leases=[lease("kube-scheduler")]))
    two = locks.read("b", Api(leases=[lease("kube-scheduler", "m2")]))
    assert locks.differ([one, two])
    assert not locks.differ([one, one])
    assert not locks.differ([one, {"objects": []}])
    assert not locks.differ([])
