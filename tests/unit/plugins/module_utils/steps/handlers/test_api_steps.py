# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps whose effect lies in the API: a workload's resources, its rollout and its way back.

The API server is a stand-in.
"""

import copy
import json
import threading
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import journal_entry
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    workload_resources,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    revert_plan,
    step_record,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    api_steps,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    files as revert_files,
)
from tests.unit.support.fake_api import UID, Api, made
from tests.unit.support.fake_file_change import NEXT, RUN
from tests.unit.support.workload import ITEM, PATH, WANTED

AFTER = [
    [
        "containers",
        "app",
        {
            "limits": {"cpu": "2", "memory": "1Gi", "example.com/gpu": "1"},
            "requests": {"cpu": "2", "memory": "1Gi"},
        },
    ],
    [
        "initContainers",
        "prepare",
        {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "2", "memory": "1Gi"}},
    ],
]


def held(fake: Api) -> "list[Any]":
    return list(json.loads(workload_resources.text_of(fake.objects[PATH])))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> "Iterator[Api]":
    monkeypatch.setattr(api_steps, "ROLLOUT_SECONDS", 1)
    with made(monkeypatch, Api()) as api:
        api.put(PATH, ITEM)
        yield api


def run(
    tmp_path: Path, run_id: str = RUN, remedy: str = "patch_workload", **more: Any
) -> "dict[str, Any]":
    change = dict(
        {
            "kind": "patch_workload",
            "path": "Deployment shop/db",
            "real": journal.WORKLOAD + PATH,
            "resources": WANTED,
            "cluster_uid": UID,
            "sha256": sha256(workload_resources.text_of(ITEM).encode()).hexdigest(),
        },
        **more,
    )
    step = {
        "id": "01-patch",
        "host": "m1",
        "code": ["KM313"],
        "remedy": remedy,
        "target": "Deployment shop/db",
        "change": change,
    }
    return step_executor.work(
        {
            "run_id": run_id,
            "step": step,
            "lock": None,
            "check": False,
            "root": str(tmp_path / "kubemend"),
        }
    )


def test_a_rollout_that_takes_its_time(
    tmp_path: Path, fake: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_steps, "ROLLOUT_SECONDS", 120)
    fake.put(PATH, dict(ITEM, status=dict(ITEM["status"], readyReplicas=1)))

    def ready() -> None:
        fake.objects[PATH]["status"] = ITEM["status"]

    threading.Timer(1.5, ready).start()
    begin = time.monotonic()
    assert run(tmp_path)["state"] == "done"
    assert time.monotonic() - begin > 1


def test_given_and_proven_by_the_rollout(tmp_path: Path, fake: Api) -> None:
    answer = run(tmp_path)
    assert (answer["state"], answer["reason"], answer["changed"]) == ("done", "", True)
    assert held(fake) == AFTER
    now = copy.deepcopy(fake.objects[PATH])
    workload_resources.put(now, workload_resources.text_of(ITEM))
    now["metadata"].pop("resourceVersion")
    assert now == ITEM  # nothing else of it changed
    assert run(tmp_path, NEXT)["state"] == "refused"
    assert step_record.unproven(str(tmp_path / "kubemend")) == []


def test_a_revert_takes_it_back(tmp_path: Path, fake: Api) -> None:
    run(tmp_path)
    root = str(tmp_path / "kubemend")
    assert [one["state"] for one in revert_plan.plan_revert(RUN, root)] == ["restore"]
    assert [
        one["result"]
        for one in revert_files.revert(
            RUN, journal_entry.StepContext(NEXT, "revert", "revert", "asked for", root)
        )
    ] == ["restored"]
    assert workload_resources.text_of(fake.objects[PATH]) == workload_resources.text_of(ITEM)


def test_a_rollout_that_does_not_end_is_taken_back(tmp_path: Path, fake: Api) -> None:
    fake.put(PATH, dict(ITEM, status=dict(ITEM["status"], updatedReplicas=1)))
    answer = run(tmp_path)
    assert answer["state"] == "rolled_back"
    assert "1 of 2 pods recreated" in answer["reason"]
    assert "it has its former resources again" in answer["reason"]
    assert workload_resources.text_of(fake.objects[PATH]) == workload_resources.text_of(ITEM)
    assert step_record.unproven(str(tmp_path / "kubemend")) == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"sha256": "0" * 64}, "no longer what evidence said"),
        ({"resources": {"containers": {"gone": {"cpu": "1"}}}}, "it has no container gone"),
        ({"real": journal.WORKLOAD + PATH + "x"}, "it is gone"),
        ({"cluster_uid": "another"}, "another cluster"),
    ],
)
def test_refused(tmp_path: Path, fake: Api, more: "dict[str, Any]", said: str) -> None:
    answer = run(tmp_path, **more)
    assert answer["state"] == "refused", answer
    assert said in answer["reason"], answer
    assert workload_resources.text_of(fake.objects[PATH]) == workload_resources.text_of(ITEM), (
        answer
    )
