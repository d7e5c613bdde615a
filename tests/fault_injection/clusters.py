# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every kind of step with an effect in the API, against a stand-in that outlives its client."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    workload_resources,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import journal
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    api_steps,
    delete_rejected_pods,
    job_probe,
)
from tests.fault_injection.nodes import Scene, Step
from tests.unit.plugins.module_utils.steps import test_api_object_change
from tests.unit.plugins.module_utils.steps.handlers import (
    test_delete_rejected_pods,
    test_job_probe,
)
from tests.unit.support import fake_api, fake_drain, workload
from tests.unit.support.fake_api import UID


def _node(path: Path, fake: Any) -> SimpleNamespace:
    return SimpleNamespace(root=str(path / "kubemend"), fake=fake)


def at_api(
    prepare: Callable[[Any], None], fake_of: Callable[[], Any] = fake_api.Api
) -> Callable[[Path, pytest.MonkeyPatch], Any]:
    """Yield a node that reaches an API which holds what prepare puts there."""

    @contextlib.contextmanager
    def made(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
        for module, name, value in (
            (job_probe, "PATIENCE", 1),
            (job_probe, "GONE", 3),
            (delete_rejected_pods, "GONE", 3),
            (api_steps, "ROLLOUT_SECONDS", 3),
        ):
            monkeypatch.setattr(module, name, value)
        with fake_api.made(monkeypatch, fake_of()) as fake:
            prepare(fake)
            yield _node(path, fake)

    return made


@contextlib.contextmanager
def _cluster(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield two nodes: a pod of the first ends, and its controller creates one on the other."""
    with fake_drain.served(monkeypatch) as fake:
        fake.add(fake_drain.pod("a"), fake_drain.pod("b"), fake_drain.pod("other", on="w2"))
        yield _node(path, fake)


@contextlib.contextmanager
def _cordoned(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield a node that an earlier run of kubemend left cordoned."""
    with fake_drain.served(monkeypatch) as fake:
        mark = json.dumps(
            {"run": "20261120T090000Z-0a0a0a", "reason": "reset", "at": "2026-11-20T09:00:00Z"}
        )
        item = fake_drain.node("w1", unschedulable=True)
        item["metadata"]["annotations"] = {"kubemend.io/cordon": mark}
        fake.put(fake_drain.NODES + "w1", item)
        yield _node(path, fake)


def _drain(node: Any) -> list[Step]:
    change = {
        "kind": "drain",
        "cluster_uid": UID,
        "node": "w1",
        "timeout": 5,
        "max_unavailable": 1,
        "allow": [],
        "reason": "test",
    }
    step = {
        "id": "01-m1-drain",
        "host": "m1",
        "code": ["KM301"],
        "remedy": "drain",
        "target": "w1",
        "change": change,
    }
    return [] if node.fake.cordon() == fake_drain.OURS and not node.fake.left() else [step]


def _uncordon(node: Any) -> list[Step]:
    return (
        []
        if node.fake.cordon() == fake_drain.FREE
        else [
            {
                "id": "05-m1-uncordon",
                "host": "m1",
                "code": ["KM301"],
                "remedy": "uncordon",
                "target": "w1",
                "change": {"kind": "uncordon", "cluster_uid": UID, "node": "w1"},
            }
        ]
    )


def _text(node: Any) -> str:
    return str(node.fake.objects[test_api_object_change.URL]["data"]["ClusterConfiguration"])


def _pods(fake: Any) -> None:
    for name in ("bare", "second", "third"):
        test_delete_rejected_pods.put(fake, name)


def _clean(node: Any) -> list[Step]:
    pods = [
        {"namespace": "n", "name": name, "uid": "u-" + name}
        for name in sorted(test_delete_rejected_pods.left(node.fake))
    ]
    return (
        [
            {
                "id": "02-m1-clean-up-w1",
                "host": "m1",
                "code": ["KM320"],
                "remedy": "clean_up",
                "target": "rejected pods of w1",
                "change": {"kind": "clean_up", "cluster_uid": UID, "pods": pods},
            }
        ]
        if pods
        else []
    )


def _patch(node: Any) -> list[Step]:
    text = workload_resources.text_of(node.fake.objects[workload.PATH])
    if text != workload_resources.text_of(workload.ITEM):
        return []
    return [
        {
            "id": "01-patch",
            "host": "m1",
            "code": ["KM313"],
            "remedy": "patch_workload",
            "target": "Deployment shop/db",
            "change": {
                "kind": "patch_workload",
                "path": "Deployment shop/db",
                "real": journal.WORKLOAD + workload.PATH,
                "resources": workload.WANTED,
                "cluster_uid": UID,
                "sha256": sha256(text.encode()).hexdigest(),
            },
        }
    ]


SCENES: dict[str, Scene] = {
    "kubeadm's ConfigMap": Scene(
        at_api(lambda fake: fake.put(test_api_object_change.URL, test_api_object_change.ITEM)),
        lambda node: (
            [test_api_object_change.STEP] if _text(node) == test_api_object_change.BEFORE else []
        ),
        _text,
        ("kubeadm_config",),
    ),
    "probe": Scene(
        at_api(lambda fake: fake.put("/api/v1/nodes/n1", test_job_probe.NODE)),
        lambda node: [test_job_probe.STEP],
        lambda node: test_job_probe.left(node.fake),
        ("probe",),
    ),
    "rejected pods": Scene(
        at_api(_pods), _clean, lambda node: test_delete_rejected_pods.left(node.fake), ("clean_up",)
    ),
    "workload": Scene(
        at_api(lambda fake: fake.put(workload.PATH, workload.ITEM)),
        _patch,
        lambda node: workload_resources.text_of(node.fake.objects[workload.PATH]),
        ("patch_workload",),
    ),
    "drain": Scene(
        _cluster,
        _drain,
        lambda node: [node.fake.cordon(), node.fake.left(), node.fake.left("w2")],
        ("drain",),
    ),
    "uncordon": Scene(
        _cordoned,
        _uncordon,
        lambda node: [node.fake.cordon(), node.fake.cordon("w2")],
        ("uncordon",),
    ),
}


# --- the same on an API server of 1.14, in the shapes that its API documentation and 1.18's
# recorded answers have

WRITTEN = "2019-06-01T09:00:00Z"
CONDITIONS = [
    {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": "",
        "lastHeartbeatTime": WRITTEN,
        "lastTransitionTime": WRITTEN,
    }
    for kind, status, reason in (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    )
]


def of_1_14(path: str, item: dict[str, Any]) -> dict[str, Any]:
    """Return an object as an API server of 1.14 returns it.

    Every object names its own path and has no managedFields. A Node tells all its conditions and
    has labels of both names. Quantities are strings.
    """
    item = json.loads(json.dumps(item))
    item["metadata"].update(selfLink=path, creationTimestamp=WRITTEN)
    if "/nodes/" in path:
        name = path.rpartition("/")[2]
        labels = {
            "beta.kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name,
        }
        item["metadata"].setdefault("labels", {}).update(
            {**labels, "kubernetes.io/os": "linux", "node-role.kubernetes.io/master": ""}
        )
        item["metadata"].setdefault("annotations", {}).update({"node.alpha.kubernetes.io/ttl": "0"})
        item["spec"].update(podCIDR="10.244.0.0/24")
        item["status"].update(
            conditions=CONDITIONS,
            capacity={"cpu": "2", "memory": "24684084Ki", "pods": "110"},
            volumesInUse=[],
        )
    return item


def age(fake: Any) -> Any:
    """Remove what 1.14 lacks: Leases of nodes, EndpointSlices, and policy and evictions of v1."""
    answer = fake.answer

    def old(method: str, path: str, query: dict[str, str], sent: Any) -> tuple[int, Any]:
        if path.startswith(
            ("/apis/coordination.k8s.io/v1/", "/apis/discovery.k8s.io", "/apis/policy/v1/")
        ):
            return 404, {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "message": "the server could not find the requested resource",
                "reason": "NotFound",
                "details": {},
                "code": 404,
            }
        if path == "/version":
            return 200, {"major": "1", "minor": "14+", "gitVersion": "v1.14.10-eks"}
        code, item = answer(method, path, query, sent)
        if isinstance(item, dict) and "items" in item:
            item = {
                **item,
                "kind": "List",
                "apiVersion": "v1",
                "metadata": {"selfLink": path, "resourceVersion": str(fake.version)},
            }
        return code, item

    fake.answer = old
    for path in list(fake.objects):
        if "/leases/" in path:
            del fake.objects[path]
        else:
            fake.objects[path] = of_1_14(path, fake.objects[path])
    return fake


def aged(scene: Scene) -> Scene:
    """Yield that node and its objects on 1.14."""

    @contextlib.contextmanager
    def make(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
        with pytest.MonkeyPatch.context() as during:
            during.setattr(fake_drain, "Cluster", lambda: CLUSTER("14", "v1beta1"))
            with scene.make(path, monkeypatch) as made:
                age(made.fake)
                yield made

    return dataclasses.replace(scene, make=make)


CLUSTER = fake_drain.Cluster
OLD = {f"{name} of 1.14": aged(scene) for name, scene in SCENES.items()}
