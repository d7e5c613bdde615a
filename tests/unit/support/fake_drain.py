# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster for the tests of a drain.

Nodes, pods that take their time to end, budgets, and evictions that are refused at will.
"""

import contextlib
import copy
import datetime
import multiprocessing.sharedctypes
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import step_record
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.drain import (
    cordon,
    disruption_budgets,
    eviction,
    eviction_api,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    api_steps,
)
from tests.unit.support.fake_api import UID, Api, made
from tests.unit.support.fake_file_change import RUN

NODES, LEASES = "/api/v1/nodes/", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"
TOO_MANY = "Cannot evict pod as it would violate the pod's disruption budget."
FREE, OURS, THEIRS = (False, False), (True, True), (True, False)  # what Cluster.cordon() says
CROSSED = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not"
    " support."
)


def stamp(ago: float = 0.0) -> str:
    at = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=ago)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def status(
    code: int, message: str, *causes: "tuple[str, str]", **details: Any
) -> "tuple[int, Any]":
    body = {
        "kind": "Status",
        "code": code,
        "message": message,
        "details": dict(details, causes=[{"reason": one[0], "message": one[1]} for one in causes]),
    }
    return code, body


def node(
    name: str, ready: str = "True", reason: str = "KubeletReady", **spec: Any
) -> "dict[str, Any]":
    return {
        "metadata": {"name": name, "uid": "u-" + name},
        "spec": spec,
        "status": {"conditions": [{"type": "Ready", "status": ready, "reason": reason}]},
    }


def pod(
    name: str,
    owner: "str | None" = "ReplicaSet",
    labels: "dict[str, str] | None" = None,
    on: str = "w1",
    **more: Any,
) -> "dict[str, Any]":
    """n/<name>; more: phase, ready, finalizers, emptydir, mirror, grace, uid."""
    meta: dict[str, Any] = {
        "namespace": "n",
        "name": name,
        "uid": more.get("uid") or "u-" + name,
        "labels": labels or {"app": name},
    }
    if owner:
        meta["ownerReferences"] = [
            {"kind": owner, "name": "owner", "uid": "u-owner", "controller": True}
        ]
    if more.get("mirror"):
        meta["annotations"] = {"kubernetes.io/config.mirror": "0"}
    if more.get("finalizers"):
        meta["finalizers"] = list(more["finalizers"])
    phase = more.get("phase", "Running")
    state = {"terminated": {}} if phase in ("Succeeded", "Failed") else {"running": {}}
    return {
        "metadata": meta,
        "spec": {
            "nodeName": on,
            "terminationGracePeriodSeconds": more.get("grace", 30),
            "volumes": [{"name": "v", "emptyDir": {}}] if more.get("emptydir") else [],
        },
        "status": {
            "phase": phase,
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True" if more.get("ready", phase == "Running") else "False",
                }
            ],
            "containerStatuses": [{"name": "c", "state": state}],
        },
    }


def budget(
    name: str,
    app: str,
    allowed: int = 0,
    healthy: int = 1,
    desired: int = 1,
    expected: int = 1,
    **spec: Any,
) -> "dict[str, Any]":
    return {
        "metadata": {"namespace": "n", "name": name, "generation": 1},
        "spec": dict({"selector": {"matchLabels": {"app": app}}}, **spec),
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "observedGeneration": 1,
        },
    }


class Clock:
    """The drain's own clock, in the place of its `time`.

    A test says when its time is over, however slow the machine is.

    The drain is at work in a process of its own, hence the shared memory.
    """

    def __init__(self) -> None:
        self._ahead = multiprocessing.sharedctypes.RawValue("d", 0.0)

    @staticmethod
    def sleep(seconds: float) -> None:
        time.sleep(seconds)  # looked up now: tests/fault_injection interrupt whoever waits

    @staticmethod
    def time() -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic() + float(self._ahead.value)

    def over(self) -> None:
        self._ahead.value = 1e6


class Cluster(Api):
    """ends: seconds that an evicted pod takes; refusals: answers that the next evictions get.

    On_end(pod): what its controller does then.
    """

    def __init__(self, minor: str = "36", version: str = "v1") -> None:
        super().__init__()
        self.lock, self.minor, self.policy = threading.RLock(), minor, version
        self.pods_by_uid: dict[str, dict[str, Any]] = {}
        self.budgets: list[dict[str, Any]] = []
        self.ends, self.evicting, self.most = 0.0, 0, 0
        self.refusals: list[tuple[int, Any]] = []
        self.asked: list[tuple[str, float, Any, bool]] = []
        self.on_end: Any = lambda gone: None
        self.dead, self.clock = False, Clock()
        for name in ("w1", "w2"):
            self.put(NODES + name, node(name))
            self.put(LEASES + name, {"spec": {"renewTime": stamp(1), "leaseDurationSeconds": 40}})

    def add(self, *pods: "dict[str, Any]") -> None:
        for one in pods:
            self.pods_by_uid[one["metadata"]["uid"]] = one

    def left(self, on: str = "w1") -> "set[str]":
        self._pass()
        return {
            one["metadata"]["name"]
            for one in self.pods_by_uid.values()
            if one["spec"]["nodeName"] == on
        }

    def the_node(self, name: str = "w1") -> "dict[str, Any]":
        return self.objects[NODES + name]

    def cordon(self, name: str = "w1") -> "tuple[bool, bool]":
        """Return (unschedulable, whether kubemend's annotation is on it)."""
        return bool(self.the_node(name)["spec"].get("unschedulable")), "kubemend.io/cordon" in (
            self.the_node(name)["metadata"].get("annotations") or {}
        )

    def evicted(self) -> "list[str]":
        return [name for name, dummy, code, dry in self.asked if code == 201 and not dry]

    def over_when(self, met: Any) -> None:
        """Let the time limit of the drain pass once this is so, and its pods were read since."""
        looks = []

        def before(method: str, path: str) -> None:
            if path == "/api/v1/pods" and met():
                looks.append(path)
                if len(looks) > 1:
                    self.clock.over()

        self.before = before

    def let_go(self) -> None:
        """End every pod that is ending now, and at once those that are to end later."""
        with self.lock:
            self.ends = 0.0
            for one in self.pods_by_uid.values():
                if "over" in one:
                    one["over"] = 0.0

    def _pass(self) -> None:
        """Do what the kubelets did meanwhile."""
        now = time.monotonic()
        for uid, one in list(self.pods_by_uid.items()):
            if one.get("over", now + 1) > now:
                continue
            if one["metadata"].get("finalizers"):
                one["metadata"]["deletionGracePeriodSeconds"] = 0
                one["status"]["containerStatuses"] = [{"name": "c", "state": {"terminated": {}}}]
                continue
            del self.pods_by_uid[uid]
            self.on_end(one)

    def _evict(
        self, name: str, sent: "dict[str, Any]", query: "dict[str, str]"
    ) -> "tuple[int, Any]":
        if self.refusals:
            return self.refusals.pop(0)
        assert sent["apiVersion"] == "policy/" + self.policy
        assert sent["kind"] == "Eviction"
        assert "gracePeriodSeconds" not in sent["deleteOptions"]
        one = next(
            (item for item in self.pods_by_uid.values() if item["metadata"]["name"] == name), None
        )
        if one is None:
            return status(404, f"pods {name} not found")
        dry = query.get("dryRun") == "All"
        assert dry == (sent["deleteOptions"].get("dryRun") == ["All"])
        mine = [
            item
            for item in self.budgets
            if item["spec"]["selector"]["matchLabels"].items() <= one["metadata"]["labels"].items()
        ]
        if one["status"]["phase"] == "Running" and not one["metadata"].get("deletionTimestamp"):
            if len(mine) > 1:
                return status(500, CROSSED)
            if mine and mine[0]["status"]["disruptionsAllowed"] <= 0:
                numbers = mine[0]["status"]
                return status(
                    429,
                    TOO_MANY,
                    (
                        "DisruptionBudget",
                        f"The disruption budget {mine[0]['metadata']['name']} needs"
                        f" {numbers['desiredHealthy']} healthy pods and has"
                        f" {numbers['currentHealthy']} currently",
                    ),
                )
            if mine and not dry:
                mine[0]["status"]["disruptionsAllowed"] -= 1
        if sent["deleteOptions"]["preconditions"]["uid"] != one["metadata"]["uid"]:
            return status(409, "the UID in the precondition does not match the UID in record")
        if not dry:
            one["metadata"].update(
                deletionTimestamp=stamp(),
                deletionGracePeriodSeconds=one["spec"]["terminationGracePeriodSeconds"],
            )
            one["over"] = time.monotonic() + self.ends
        return 201, {"kind": "Status", "status": "Success"}

    def _patch(self, path: str, sent: "dict[str, Any]") -> "tuple[int, Any]":
        """Apply a merge patch to a Node."""
        item = copy.deepcopy(self.objects[path])
        if sent["metadata"].pop("resourceVersion") != item["metadata"]["resourceVersion"]:
            return status(409, "the object has been modified")
        for key, value in sent["metadata"]["annotations"].items():
            item["metadata"].setdefault("annotations", {})[key] = value
        item["metadata"]["annotations"] = {
            key: value
            for key, value in item["metadata"]["annotations"].items()
            if value is not None
        }
        item["spec"] = {
            key: value
            for key, value in dict(item["spec"], **sent.get("spec", {})).items()
            if value is not None
        }
        return 200, self.put(path, item)

    def answer(
        self, method: str, path: str, query: "dict[str, str]", sent: Any
    ) -> "tuple[int, Any]":
        parts = path.split("/")
        with self.lock:
            self.evicting += path.endswith("/eviction")
            self.most = max(self.most, self.evicting)
        if path.endswith("/eviction"):
            time.sleep(0.002)  # for others to be there at the same time
        with self.lock:
            self.evicting -= path.endswith("/eviction")
            if self.dead:
                return 500, b"dial tcp 10.0.0.1:6443: connect: connection refused\n"
            self._pass()
            if path.endswith("/eviction"):
                code, item = self._evict(parts[-2], sent, query)
                self.asked.append((parts[-2], time.monotonic(), code, "dryRun" in query))
                return code, item
            if method == "PATCH":
                return self._patch(path, sent)
            if path == "/api/v1/pods":
                node_name = query["fieldSelector"].partition("=")[2]
                items = [
                    one for one in self.pods_by_uid.values() if one["spec"]["nodeName"] == node_name
                ]
                return 200, {"metadata": {}, "items": copy.deepcopy(items)}
            if path.startswith("/apis/policy"):
                if path == "/apis/policy":
                    return 200, {"versions": [{"version": self.policy}]}
                assert parts[3] == self.policy
                return 200, {"metadata": {}, "items": copy.deepcopy(self.budgets)}
            if path == "/api/v1":
                return 200, {
                    "resources": [
                        {"name": "pods/eviction", "group": "policy", "version": self.policy}
                    ]
                }
            if path == "/version":
                return 200, {"major": "1", "minor": self.minor}
            return super().answer(method, path, query, sent)


@contextlib.contextmanager
def served(
    monkeypatch: pytest.MonkeyPatch, cluster: "Cluster | None" = None
) -> "Iterator[Cluster]":
    """Yield that cluster, and a drain that is not patient."""
    for module, name, value in (
        (eviction, "POLL", 0.02),
        (eviction, "TELL", 0.1),
        (eviction, "HELD_SECONDS", 0.1),
        (eviction, "LEASE_WAIT", 1),
        (eviction, "BACK_SECONDS", 0.1),
        (disruption_budgets, "RETRY", 0.05),
        (cordon, "PAUSE", 0.01),
        (api_steps, "READY_SECONDS", 0.1),
    ):
        monkeypatch.setattr(module, name, value)
    cluster = cluster or Cluster()
    for module in (eviction, eviction_api):
        monkeypatch.setattr(module, "time", cluster.clock)
    with made(monkeypatch, cluster):
        yield cluster


def params(
    tmp_path: Path, run_id: str = RUN, remedy: str = "drain", check: bool = False, **more: Any
) -> "dict[str, Any]":
    change = dict(
        {
            "kind": remedy,
            "cluster_uid": UID,
            "node": "w1",
            "timeout": 120,
            "max_unavailable": 1,
            "allow": [],
            "reason": "test",
        },
        **more,
    )
    step = {
        "id": "01-m1-" + remedy,
        "host": "m1",
        "code": ["KM301"],
        "remedy": remedy,
        "target": "w1",
        "change": None if remedy == "recover" else change,
    }
    return {
        "run_id": run_id,
        "step": step,
        "lock": None,
        "check": check,
        "root": str(tmp_path / "kubemend"),
    }


def run(tmp_path: Path, *args: Any, **more: Any) -> "dict[str, Any]":
    return step_executor.run(params(tmp_path, *args, **more))


def unproven(tmp_path: Path) -> "list[Any]":
    return step_record.unproven(str(tmp_path / "kubemend"))
