# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Job that proves a cure: how many pods it got, and that nothing of it is left."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError
from ansible_collections.kubemend.remediation.plugins.module_utils.state import step_record
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    job_probe,
    pinning_probe,
)
from tests.unit.support.fake_api import SYSTEM, UID, Api, made
from tests.unit.support.fake_file_change import NEXT, RUN

STEP = {
    "id": "02-m1-probe",
    "host": "m1",
    "code": ["KM113"],
    "remedy": "probe",
    "target": "Job",
    "change": {"kind": "probe", "cluster_uid": UID},
}
NODE = {
    "metadata": {"labels": {"kubernetes.io/hostname": "n1"}},
    "spec": {},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "images": [{"names": ["registry.k8s.io/pause@sha256:00", "registry.k8s.io/pause:3.2"]}],
    },
}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> "Iterator[Api]":
    monkeypatch.setattr(job_probe, "PATIENCE", 0.2)
    monkeypatch.setattr(job_probe, "GONE", 1)
    with made(monkeypatch) as one:
        yield one


def run(tmp_path: Path, run_id: str = RUN, **more: Any) -> "dict[str, Any]":
    params = {
        "run_id": run_id,
        "step": dict(STEP, **more),
        "lock": None,
        "check": False,
        "root": str(tmp_path / "kubemend"),
    }
    return step_executor.run(params)


def left(fake: Api) -> "list[str]":
    return [path for path in fake.objects if "/jobs/" in path or "/pods/" in path]


@pytest.mark.parametrize(
    ("pods", "state", "said"),
    [
        (1, "done", ""),
        (0, "failed", "the Job got no pod"),
        (2, "failed", "got 2 pods instead of one (pod-0, pod-1)"),
    ],
)
def test_pods_are_counted_and_removed(
    tmp_path: Path, fake: Api, pods: int, state: str, said: str
) -> None:
    fake.pods = pods
    answer = run(tmp_path)
    assert answer["state"] == state, answer
    assert said in answer["reason"], answer
    assert answer["changed"], answer
    assert left(fake) == []
    assert step_record.unproven(str(tmp_path / "kubemend")) == []
    assert sum(one.startswith("POST") for one in fake.seen) == 1
    assert run(tmp_path)["state"] == state
    assert sum(one.startswith("POST") for one in fake.seen) == 1


@pytest.mark.parametrize(
    ("change", "node", "image"),
    [
        ({}, "n1", "registry.k8s.io/pause:3.2"),
        ({"spec": {"unschedulable": True}}, None, "registry.k8s.io/pause:3.9"),
        (
            {"spec": {"taints": [{"key": "node.kubernetes.io/out-of-service"}]}},
            None,
            "registry.k8s.io/pause:3.9",
        ),
        (
            {"spec": {"taints": [{"key": "node-role.kubernetes.io/master"}]}},
            "n1",
            "registry.k8s.io/pause:3.2",
        ),
        (
            {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
            None,
            "registry.k8s.io/pause:3.9",
        ),
    ],
)
def test_no_image_is_pulled_and_no_fenced_node_is_used(
    tmp_path: Path, fake: Api, change: "dict[str, Any]", node: "str | None", image: str
) -> None:
    jobs: list[Any] = []
    fake.put("/api/v1/nodes/n1", dict(NODE, **change))  # type: ignore[arg-type]
    create = fake.create

    def keep(path: str, sent: Any) -> Any:
        jobs.append(sent)
        return create(path, sent)

    fake.create = keep  # type: ignore[method-assign]
    assert run(tmp_path)["state"] == "done"
    pod = jobs[0]["spec"]["template"]["spec"]
    assert (pod.get("nodeSelector") or {}).get("kubernetes.io/hostname") == node
    assert pod["containers"][0]["image"] == image
    assert pod["containers"][0]["imagePullPolicy"] == "Never"


def test_what_an_interrupted_probe_left_is_removed(tmp_path: Path, fake: Api) -> None:
    fake.wrong["DELETE"] = "refuse"
    answer = run(tmp_path)
    assert answer["state"] == "failed"
    assert "KM902" in answer["reason"]
    assert len(left(fake)) == 2
    (record,) = step_record.unproven(str(tmp_path / "kubemend"))
    assert record["remedy"] == "probe"
    recover = {"id": "01-m1-recover", "remedy": "recover", "change": None}
    answer = run(tmp_path, NEXT, **recover)
    assert answer["state"] == "failed"
    assert len(step_record.unproven(str(tmp_path / "kubemend"))) == 1
    fake.wrong.clear()
    answer = run(tmp_path, "20261121T110000Z-aaaaaa", **recover)
    assert answer["state"] == "done"
    assert "nothing of the probe is left" in answer["reason"]
    assert left(fake) == []
    assert step_record.unproven(str(tmp_path / "kubemend")) == []


def test_a_pinned_pod_of_ours_is_no_pod_of_the_probe(tmp_path: Path, fake: Api) -> None:
    """Its file lies on another node still.

    Its kubelet would bring it back as often as it is deleted.
    """
    meta = json.loads(pinning_probe.manifest("pause", 2).decode())["metadata"]
    fake.put(
        SYSTEM + "/pods/kubemend-pinned-w1",
        {"metadata": dict(meta, name="kubemend-pinned-w1", uid="mirror")},
    )
    assert run(tmp_path)["state"] == "done"
    assert left(fake) == [SYSTEM + "/pods/kubemend-pinned-w1"]


def test_refused_for_another_cluster(tmp_path: Path, fake: Api) -> None:
    fake.objects[SYSTEM]["metadata"]["uid"] = "another"
    answer = run(tmp_path)
    assert "another cluster" in answer["reason"]
    assert not any(one.startswith("POST") for one in fake.seen)


def test_a_job_that_cannot_be_removed_by_name_keeps_nothing_else_from_being_swept(
    fake: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[int] = []

    def observed(api: Any, job: Any, made: "list[Any]") -> None:
        made.append({"name": "x", "uid": "u"})

    def refused(*dummy: Any) -> None:
        raise ApiError("error", "DELETE: HTTP 500", 500)

    monkeypatch.setattr(job_probe, "_observed", observed)
    monkeypatch.setattr(job_probe, "_job", lambda *dummy: {})
    monkeypatch.setattr(job_probe, "_place", lambda *dummy: (None, None))
    monkeypatch.setattr(job_probe, "_delete", refused)
    monkeypatch.setattr(job_probe, "sweep", lambda api: swept.append(1))
    with pytest.raises(ApiError, match="HTTP 500"):
        job_probe.probe(None, RUN)
    assert len(swept) == 2  # before it and after it
