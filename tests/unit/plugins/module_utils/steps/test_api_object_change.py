# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A text of the API changed as a file is.

It is compared, journalled, refused, interrupted, ended, or reverted.
"""

import base64
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import journal_entry
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    pending_changes,
    revert_plan,
    step_record,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state.storage import ChangeError
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    api_object_change,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    files as revert_files,
)
from tests.unit.support.fake_api import SYSTEM, UID, Api, made
from tests.unit.support.fake_file_change import NEXT, RUN, sha

URL = SYSTEM + "/configmaps/kubeadm-config"
BEFORE = (
    '# a comment\r\nscheduler:\n  extraArgs: {leader-elect: "false"}\n# password: planted \u00e9'
)
AFTER = BEFORE.replace("false", "true")
AT = BEFORE.index("false")
NAME = "ConfigMap kube-system/kubeadm-config"
WANTED = {
    "kind": "kubeadm_config",
    "path": NAME,
    "real": "configmap:kube-system/kubeadm-config#ClusterConfiguration",
    "sha256": sha(BEFORE.encode()),
    "splices": [
        [AT, AT + 5, base64.b64encode(b"false").decode(), base64.b64encode(b"true").decode()]
    ],
    "cluster_uid": UID,
}
ITEM = {
    "kind": "ConfigMap",
    "apiVersion": "v1",
    "metadata": {"name": "kubeadm-config", "labels": {"a": "b"}},
    "data": {"ClusterConfiguration": BEFORE, "ClusterStatus": "theirs\n"},
}
STEP = {
    "id": "01-m1-kubeadm-config",
    "host": "m1",
    "code": ["KM110"],
    "remedy": "kubeadm_config",
    "target": NAME,
    "change": WANTED,
    "expect": {},
}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> "Iterator[Api]":
    with made(monkeypatch) as one:
        one.put(URL, ITEM)
        yield one


class Node:
    """The journal of the node that asks."""

    def __init__(self, root: Path, fake: Api) -> None:
        self.root, self.fake = str(root / "kubemend"), fake

    def work(self, run_id: str = RUN, **more: Any) -> "dict[str, Any]":
        step = dict(STEP, **more.pop("step", {}))
        return step_executor.run(
            dict(
                {"run_id": run_id, "step": step, "lock": None, "check": False, "root": self.root},
                **more,
            )
        )

    def recover(self) -> "dict[str, Any]":
        return self.work(NEXT, step={"id": "01-m1-recover", "remedy": "recover", "change": None})

    def step(self, run_id: str = NEXT, **more: Any) -> journal_entry.StepContext:
        return journal_entry.StepContext(run_id, "revert", "revert", "asked for", self.root, **more)

    def text(self) -> str:
        return self.fake.objects[URL]["data"]["ClusterConfiguration"]

    def ends(self) -> "list[Any]":
        return [item["end"] and item["end"]["result"] for item in journal.read_run(RUN, self.root)]


@pytest.fixture
def node(tmp_path: Path, fake: Api) -> Node:
    return Node(tmp_path, fake)


def test_done_once(node: Node, fake: Api) -> None:
    first, again = node.work(), node.work()
    assert (first["state"], first["reason"], first["changed"], again["state"]) == (
        "done",
        "",
        True,
        "done",
    )
    assert node.text() == AFTER
    assert fake.seen.count("PUT " + URL) == 1
    held = copy.deepcopy(fake.objects[URL])
    held["metadata"].pop("resourceVersion")
    data = dict(ITEM["data"], ClusterConfiguration=AFTER)  # type: ignore[arg-type]
    assert held == dict(ITEM, data=data)
    (item,) = journal.read_run(RUN, node.root)
    assert item["intent"]["via"]["cluster_uid"] == UID
    assert item["intent"]["why"] == "KM110"
    assert item["intent"]["path"] == NAME
    assert journal.former_bytes(item, node.root) == BEFORE.encode()
    assert node.ends() == ["committed"]
    assert "planted" not in str(first)
    assert step_record.unproven(node.root) == []
    assert pending_changes.pending(node.root) == []


def test_a_second_run_finds_another_text(node: Node, fake: Api) -> None:
    node.work()
    assert node.work(NEXT)["state"] == "refused"
    assert fake.seen.count("PUT " + URL) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sha256": "0" * 64}, "no longer what evidence said"),
        ({"sha256": None}, "the sha256 that it should have is missing"),
        ({"cluster_uid": "another"}, "another cluster"),
        ({"real": WANTED["real"] + "x"}, "it is gone"),
        ({"real": "configmap:x"}, "names no text"),
        (
            {"splices": [[0, 1, base64.b64encode(b"x").decode(), ""]]},
            "not those that were to be replaced",
        ),
    ],
)
def test_refused(node: Node, fake: Api, change: "dict[str, Any]", said: str) -> None:
    answer = node.work(step={"change": dict(WANTED, **change)})
    assert answer["state"] == "refused", answer
    assert said in answer["reason"], answer
    assert not answer["changed"], answer
    assert node.text() == BEFORE
    assert journal.read_run(RUN, node.root) == []
    assert step_record.unproven(node.root) == []


def test_refused_without_the_lock_and_without_an_api(node: Node, fake: Api) -> None:
    assert "lock" in node.work(lock={"seconds": 5})["reason"]
    fake.up = False
    answer = node.work()
    assert answer["state"] == "refused"
    assert "the API does not answer" in answer["reason"]
    assert node.text() == BEFORE


def test_somebody_writes_between_reading_and_writing(node: Node, fake: Api) -> None:
    def meanwhile(method: str, path: str) -> None:
        if method == "PUT":
            fake.before = lambda *dummy: None
            data = dict(ITEM["data"], ClusterStatus="newer")  # type: ignore[arg-type]
            fake.put(URL, dict(ITEM, data=data))

    fake.before = meanwhile
    answer = node.work()
    assert answer["state"] == "refused"
    assert "something else changed it at this moment" in answer["reason"]
    assert not answer["changed"]
    assert node.text() == BEFORE
    assert fake.objects[URL]["data"]["ClusterStatus"] == "newer"
    assert node.ends() == ["not_done"]
    assert step_record.unproven(node.root) == []


def test_somebody_writes_right_after(node: Node, fake: Api) -> None:
    def meanwhile(method: str, path: str) -> None:
        if method == "GET" and path == URL and "PUT " + URL in fake.seen:
            fake.put(URL, dict(ITEM, data={"ClusterConfiguration": "theirs"}))

    fake.before = meanwhile
    answer = node.work()
    assert answer["state"] == "failed"
    assert "something else changed it at once" in answer["reason"]
    assert answer["changed"]


@pytest.mark.parametrize(
    ("wrong", "state", "held"),
    [("refuse", "not_done", BEFORE), ("lose", "not_done", BEFORE), ("drop", "committed", AFTER)],
)
def test_an_answer_that_does_not_come_leaves_it_open(
    node: Node, fake: Api, wrong: str, state: str, held: str
) -> None:
    fake.wrong["PUT"] = wrong
    answer = node.work()
    assert answer["state"] == "failed"
    assert "stays open" in answer["reason"]
    assert node.ends() == [None]
    assert [item["state"] for item in pending_changes.pending(node.root)] == [
        "after" if held == AFTER else "before"
    ]
    fake.wrong.clear()
    assert (
        "was interrupted"
        in node.work(NEXT, step={"change": dict(WANTED, sha256=sha(held.encode()))})["reason"]
        or held == AFTER
    )
    answer = node.recover()
    assert answer["state"] == "done"
    assert node.ends() == [state]
    assert node.text() == held
    assert step_record.unproven(node.root) == []
    assert pending_changes.pending(node.root) == []
    assert node.recover()["state"] == "done"


def test_interrupted_while_the_api_is_away_stays_open(node: Node, fake: Api) -> None:
    fake.wrong["PUT"] = "drop"
    node.work()
    fake.up = False
    (item,) = pending_changes.pending(node.root)
    assert item["state"] == "unknown"
    assert "run again when it does" in item["error"]
    answer = node.recover()
    assert answer["state"] == "failed"
    assert "still open" in answer["reason"]
    assert node.ends() == [None]
    assert len(step_record.unproven(node.root)) == 1
    fake.up, fake.wrong = True, {}
    assert node.recover()["state"] == "done"
    assert node.ends() == ["committed"]
    assert step_record.unproven(node.root) == []


def test_reverted(node: Node, fake: Api) -> None:
    node.work()
    (one,) = revert_plan.plan_revert(RUN, node.root)
    assert (one["state"], one["path"], one["sha256_former"], one["sha256_present"]) == (
        "restore",
        NAME,
        sha(BEFORE.encode()),
        sha(AFTER.encode()),
    )
    for result in ("restored", "already"):
        (done,) = revert_files.revert(RUN, node.step())
        assert (done["result"], done["changed"], node.text()) == (
            result,
            result == "restored",
            BEFORE,
        )
    assert fake.objects[URL]["data"]["ClusterStatus"] == "theirs\n"
    (done,) = revert_files.revert(NEXT, node.step("20261121T110000Z-aaaaaa"))
    assert (done["result"], node.text()) == ("restored", AFTER)


def test_revert_leaves_what_somebody_else_wrote(node: Node, fake: Api) -> None:
    node.work()
    fake.put(URL, dict(ITEM, data={"ClusterConfiguration": "theirs"}))
    (done,) = revert_files.revert(RUN, node.step())
    assert (done["result"], done["changed"], node.text()) == ("refused", False, "theirs")
    fake.up = False
    (done,) = revert_files.revert(RUN, node.step())
    assert done["result"] == "refused"
    assert "the API does not answer" in done["reason"]


def test_check_mode_and_no_change(node: Node, fake: Api) -> None:
    with pytest.raises(ChangeError):
        api_object_change.compare_and_swap(dict(WANTED, sha256="0" * 64), node.step(check=True), {})
    done = api_object_change.compare_and_swap(WANTED, node.step(check=True), {})
    assert done["changed"]
    assert done["entry"] is None
    assert node.text() == BEFORE
    assert not any(one.startswith("PUT") for one in fake.seen)
    done = api_object_change.compare_and_swap(dict(WANTED, splices=[]), node.step(), {})
    assert not done["changed"]
    assert journal.read_run(NEXT, node.root) == []
