# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pod that was asked for, its owner, siblings and events."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    pod,
)
from tests.unit.support import answers

UID = "11111111-0000-0000-0000-00000000000a"
AT = "2026-11-21T20:01:02Z"
MANAGER = {
    "manager": "kube-scheduler",
    "operation": "Update",
    "time": AT,
    "subresource": "binding",
    "spec": True,
    "node": True,
}
CONTAINER = {
    "name": "main",
    "init": False,
    "restarts": 2,
    "state": "waiting",
    "now": {"reason": "CrashLoopBackOff"},
    "before": {"reason": "Error", "exit_code": 137, "started": AT, "finished": AT},
}
POD = {
    "namespace": "default",
    "name": "job-a-x7f2p",
    "uid": UID,
    "node": "w1",
    "phase": "Running",
    "grace": 30,
    "finalizers": ["batch.kubernetes.io/job-tracking"],
    "managers": [MANAGER],
    "asks": {"cpu": "100m", "nvidia.com/gpu": "2"},
    "requests": {"nvidia.com/gpu": 2},
    "conditions": [{"type": "PodScheduled", "status": "True", "time": AT}],
    "containers": [CONTAINER],
}
ANSWER = {
    "asked": "default/job-a-x7f2p",
    "namespace": "default",
    "name": "job-a-x7f2p",
    "uid": UID,
    "pod": POD,
    "owner": {"kind": "Job", "name": "job-a", "state": "found", "completions": 1, "managers": []},
    "siblings": [{"name": "job-a-b1c2d", "node": "w2"}],
    "siblings_total": 3,
    "events": [{"type": "Warning", "reason": "BackOff", "count": 5, "uid": UID, "host": "w1"}],
}


def test_the_pod_with_what_happened_to_it():
    found = answers.typed(pod.Pod, ANSWER).pod
    assert (found.uid, found.node, found.grace) == (UID, "w1", 30)
    assert found.finalizers == ("batch.kubernetes.io/job-tracking",)
    assert (found.asks["cpu"], found.requests) == ("100m", {"nvidia.com/gpu": 2})
    (manager,), (condition,) = found.managers, found.conditions
    assert (manager.manager, manager.subresource) == ("kube-scheduler", "binding")
    assert (manager.spec, manager.node, manager.time) == (True, True, AT)
    assert (condition.type, condition.status, condition.time) == ("PodScheduled", "True", AT)


def test_a_container_that_ended_and_waits():
    (container,) = answers.typed(pod.Pod, ANSWER).pod.containers
    assert (container.name, container.init, container.restarts) == ("main", False, 2)
    assert (container.state, container.now.reason) == ("waiting", "CrashLoopBackOff")
    assert (container.now.exit_code, container.before.exit_code) == (None, 137)
    assert container.before.finished == AT


def test_owner_siblings_and_events():
    answer = answers.typed(pod.Pod, ANSWER)
    assert (answer.owner.kind, answer.owner.state, answer.owner.completions) == ("Job", "found", 1)
    assert [(item.name, item.node) for item in answer.siblings] == [("job-a-b1c2d", "w2")]
    assert answer.siblings_total == 3
    (event,) = answer.events
    assert (event.type, event.reason, event.count) == ("Warning", "BackOff", 5)
    assert (event.uid, event.host) == (UID, "w1")


def test_a_pod_that_is_gone_has_only_its_name():
    answer = answers.typed(pod.Pod, {**ANSWER, "pod": None, "owner": {}})
    assert (answer.pod, answer.name, answer.owner) == (None, "job-a-x7f2p", pod.PodOwner())


def test_an_owner_that_was_deleted():
    owner = {
        "kind": "ReplicaSet",
        "state": "gone",
        "created": AT,
        "deleted": AT,
        "replicas": 3,
        "parallelism": None,
        "conditions": [{"type": "Complete", "reason": "x", "message": "done"}],
    }
    found = answers.typed(pod.Pod, {**ANSWER, "owner": owner}).owner
    assert (found.kind, found.state, found.replicas) == ("ReplicaSet", "gone", 3)
    assert (found.created, found.deleted, found.completed) == (AT, AT, None)
    assert (found.parallelism, found.conditions[0].message) == (None, "done")


def test_an_exit_code_of_another_type_is_unknown():
    place = ("pod", "containers", 0, "before", "exit_code")
    decoded = answers.changed(pod.Pod, ANSWER, *place, value="137")
    assert decoded.malformed == ("pod.containers[0].before.exit_code",)
    assert decoded.answer.pod.containers[0].before.exit_code is None
    assert decoded.answer.pod.containers[0].before.reason == "Error"
