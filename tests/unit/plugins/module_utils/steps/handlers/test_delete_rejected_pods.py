# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rejected pods deleted: only where no Job would get another try, each kept first.

A pod that is not as the evidence has it stays.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    step_record,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    delete_rejected_pods,
)
from tests.unit.support.facts import facts
from tests.unit.support.fake_api import UID, Api, made
from tests.unit.support.fake_file_change import RUN

PODS, JOBS = "/api/v1/namespaces/n/pods/", "/apis/batch/v1/namespaces/n/jobs/"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> "Iterator[Api]":
    monkeypatch.setattr(delete_rejected_pods, "GONE", 1)
    with made(monkeypatch) as one:
        yield one


def put(
    fake: Api,
    name: str,
    owner: "dict[str, Any] | None" = None,
    uid: "str | None" = None,
    **status: Any,
) -> None:
    meta = {
        "namespace": "n",
        "name": name,
        "uid": uid or "u-" + name,
        "ownerReferences": [dict(owner, controller=True)] if owner else [],
    }
    fake.put(
        PODS + name,
        {
            "metadata": meta,
            "status": dict({"phase": "Failed", "reason": "UnexpectedAdmissionError"}, **status),
        },
    )


def job(fake: Api, name: str, *conditions: str, uid: str = "u-j") -> "dict[str, Any]":
    fake.put(
        JOBS + name,
        {
            "metadata": {"uid": uid},
            "status": {"conditions": [{"type": one, "status": "True"} for one in conditions]},
        },
    )
    return {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": "u-j"}


def run(tmp_path: Path, *names: str) -> "dict[str, Any]":
    change = {
        "kind": "clean_up",
        "cluster_uid": UID,
        "pods": [{"namespace": "n", "name": name, "uid": "u-" + name} for name in names],
    }
    step = {
        "id": "02-m1-clean-up-w1",
        "host": "m1",
        "code": ["KM320"],
        "remedy": "clean_up",
        "target": "rejected pods of w1",
        "change": change,
    }
    return step_executor.run(
        {
            "run_id": RUN,
            "step": step,
            "lock": None,
            "check": False,
            "root": str(tmp_path / "kubemend"),
        }
    )


def left(fake: Api) -> "set[str]":
    return {path[len(PODS) :] for path in fake.objects if path.startswith(PODS)}


def test_what_may_go_goes_and_is_kept(tmp_path: Path, fake: Api) -> None:
    put(fake, "bare")
    put(fake, "failed", job(fake, "failed", "Failed"))
    put(fake, "complete", job(fake, "complete", "Complete"))
    put(fake, "orphan", {"apiVersion": "batch/v1", "kind": "Job", "name": "gone", "uid": "u-j"})
    put(fake, "anew", dict(job(fake, "anew", uid="another")))
    put(fake, "set", {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u-rs"})
    answer = run(tmp_path, "bare", "failed", "complete", "orphan", "anew", "set", "never-was")
    assert answer["state"] == "done", answer
    assert "6 pods deleted" in answer["reason"], answer
    assert answer["changed"], answer
    assert left(fake) == set()
    assert step_record.unproven(str(tmp_path / "kubemend")) == []
    kept = json.loads(
        (tmp_path / "kubemend" / "journal" / RUN / "pod-u-bare.json").read_text(encoding="utf-8")
    )
    assert kept["metadata"]["name"] == "bare"
    assert kept["status"]["reason"] == "UnexpectedAdmissionError"
    assert len(list((tmp_path / "kubemend" / "journal" / RUN).glob("pod-*"))) == 6


def test_what_must_stay_stays_and_says_why(tmp_path: Path, fake: Api) -> None:
    put(fake, "works", job(fake, "works"))
    put(fake, "runs", phase="Running", reason=None)
    put(fake, "evicted", reason="Evicted")
    put(fake, "other", uid="somebody-elses")
    answer = run(tmp_path, "works", "runs", "evicted", "other")
    assert answer["state"] == "done"
    assert "0 pods deleted" in answer["reason"]
    assert not answer["changed"]
    assert "n/works stays: its Job works has not ended" in answer["reason"]
    assert "n/runs stays: it is not a pod that a kubelet rejected" in answer["reason"]
    assert left(fake) == {"works", "runs", "evicted", "other"}


def test_many_that_stay_hide_none_that_somebody_must_look_at() -> None:
    done = delete_rejected_pods.Done()
    done.gone = ["n/a"]
    done.kept = {
        f"n/job-{number:02d}": (
            f"its Job j{number // 20:d} has not ended: without this pod it would get another try"
        )
        for number in range(60)
    }
    done.kept.update(
        {
            "n/v": "its owner is strange",
            "n/w": "its owner is strange",
            "n/x": "its owner is strange",
            "n/y": "it is none",
        }
    )
    done.stuck = {"n/z": "it was deleted and is not gone"}
    text = delete_rejected_pods.sentence(done)
    facts(
        text.partition("; n/job-00, ")[0],
        "1 pod",
        "n/z",
        "it was deleted and is not gone",
        "n/y",
        "it is none",
        "n/v, n/w, n/x",
        "its owner is strange",
    )
    assert len(re.findall(r"\b10 more\b[^;]*: its Job j\d has not ended", text)) == 3, text
    assert len(text) < 1000, text


@pytest.mark.parametrize(
    ("version", "kind", "group"),
    [
        ("batch.volcano.sh/v1alpha1", "Job", "batch.volcano.sh"),
        ("kubeflow.org/v1", "PyTorchJob", "kubeflow.org"),
        ("", "Job", "an unknown API"),
    ],
)
def test_pods_of_other_controllers_stay(
    tmp_path: Path, fake: Api, version: str, kind: str, group: str
) -> None:
    """Volcano's controller takes a deleted pod for an evicted one.

    It may then start the whole Job again.
    """
    put(fake, "theirs", {"apiVersion": version, "kind": kind, "name": "train", "uid": "u-t"})
    answer = run(tmp_path, "theirs")
    assert answer["state"] == "done"
    assert not answer["changed"]
    assert left(fake) == {"theirs"}
    assert f"its owner {kind}/train of {group} is not Kubernetes' own" in answer["reason"]


def test_a_pod_that_does_not_go_is_named_with_what_holds_it(tmp_path: Path, fake: Api) -> None:
    put(fake, "held")
    fake.objects[PODS + "held"]["metadata"]["finalizers"] = ["example.org/keep"]
    answer_of = fake.answer
    fake.answer = lambda method, *rest: (
        (200, {}) if method == "DELETE" else answer_of(method, *rest)
    )  # type: ignore[method-assign]
    answer = run(tmp_path, "held")
    assert answer["state"] == "failed"
    assert "is not gone after 1 s; example.org/keep holds it" in answer["reason"]


def test_another_cluster_is_left_alone(tmp_path: Path, fake: Api) -> None:
    put(fake, "bare")
    fake.objects["/api/v1/namespaces/kube-system"]["metadata"]["uid"] = "another"
    # nothing was deleted: nothing is open
    assert run(tmp_path, "bare")["state"] == "refused"
    assert left(fake) == {"bare"}


def test_an_api_that_refuses_before_anything_was_deleted_leaves_no_open_step(
    tmp_path: Path, fake: Api
) -> None:
    put(fake, "first")
    answer_of = fake.answer
    fake.answer = lambda method, *rest: (
        (403, {}) if method == "DELETE" else answer_of(method, *rest)
    )  # type: ignore[method-assign]
    answer = run(tmp_path, "first")
    assert (answer["state"], answer["changed"]) == (
        "refused",
        False,
    ), answer
    assert "none was deleted" in answer["reason"], answer
    assert step_record.unproven(str(tmp_path / "kubemend")) == []
    assert left(fake) == {"first"}


def test_an_api_that_breaks_after_the_first_says_that_something_was_deleted(
    tmp_path: Path, fake: Api
) -> None:
    put(fake, "first")
    put(fake, "second")
    answer_of = fake.answer
    fake.answer = lambda method, path, *rest: (  # type: ignore[method-assign]
        (500, {}) if method == "DELETE" and "second" in path else answer_of(method, path, *rest)
    )
    answer = run(tmp_path, "first", "second")
    assert (answer["state"], answer["changed"]) == (
        "failed",
        True,
    ), answer
    assert "are in the journal" in answer["reason"], answer
    assert left(fake) == {"second"}


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        (
            "nothing was changed: the lock of run X has run out",
            (
                "nothing more was deleted: the lock of run X has run out; those that were deleted"
                " are in"
            ),
        ),
        (
            "nothing more was deleted, because the journal is full",
            "nothing more was deleted, because the journal is full; those that were deleted are in",
        ),
    ],
)
def test_a_lock_or_a_journal_that_fails_after_the_first_does_not_say_that_nothing_was_changed(
    tmp_path: Path, fake: Api, monkeypatch: pytest.MonkeyPatch, sentence: str, said: str
) -> None:
    put(fake, "first")
    put(fake, "second")
    keep = delete_rejected_pods._keep

    def refuse(item: Any, step: Any) -> None:
        if item["metadata"]["name"] == "second":
            raise storage.ChangeError(sentence)
        keep(item, step)

    monkeypatch.setattr(delete_rejected_pods, "_keep", refuse)
    answer = run(tmp_path, "first", "second")
    assert (answer["state"], answer["changed"]) == ("failed", True), answer
    assert answer["reason"].startswith(said), answer
    assert left(fake) == {"second"}
    assert [one["ended_so"] for one in step_record.unproven(str(tmp_path / "kubemend"))] == [
        answer["reason"]
    ]


def test_nor_is_anything_left_open_where_they_fail_before_the_first(
    tmp_path: Path, fake: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(fake, "first")

    def refuse(item: Any, step: Any) -> None:
        raise storage.ChangeError("nothing was changed: the lock of run X on this node has run out")

    monkeypatch.setattr(delete_rejected_pods, "_keep", refuse)
    answer = run(tmp_path, "first")
    assert (answer["state"], answer["changed"], answer["reason"]) == (
        "refused",
        False,
        "nothing was changed: the lock of run X on this node has run out",
    )
    assert step_record.unproven(str(tmp_path / "kubemend")) == []
    assert left(fake) == {"first"}
