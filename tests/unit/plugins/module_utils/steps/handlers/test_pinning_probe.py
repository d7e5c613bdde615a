# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The static pod that shows that a node pins.

What counts as alone, and that it goes again whatever came of it.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import journal_entry
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    step_record,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    preconditions,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.base import Step
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    pinning_probe,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    runtime_tool,
)
from tests.unit.support.facts import facts

RUN, POD, IMAGE = (
    "20261122T101010Z-abcdef",
    "0e1d5b5e-0000-4000-8000-000000000001",
    "registry.k8s.io/pause:3.10",
)
OWN = {
    "pod_uid": POD,
    "container_id": "c1",
    "cpus": "1",
    "pod": "kube-system/kubemend-pinned-w1",
    "name": "pinned",
}


def state(default="0,2-3", entries=None):
    return json.dumps(
        {
            "policyName": "static",
            "defaultCpuSet": default,
            "entries": {POD: {"pinned": "1"}} if entries is None else entries,
            "checksum": 1,
        }
    )


@pytest.mark.parametrize(
    ("text", "own", "count", "given", "why"),
    [
        (state(), OWN, 1, "1", None),
        (state(entries={"c1": "1"}), OWN, 1, "1", None),  # 1.17 and older
        (state("0,3", {POD: {"pinned": "1-2"}}), {**OWN, "cpus": "1-2"}, 2, "1-2", None),
        (state(), {**OWN, "cpus": "0-3"}, 1, None, "its cgroup 0-3"),
        (state(), {**OWN, "cpus": None}, 1, None, "its cgroup None"),
        (state("0-3"), OWN, 1, None, "[1] are everybody's"),
        (state(), OWN, 2, None, "of which none are everybody's"),
        (state(entries={}), OWN, 1, None, "no entry for it"),
        ("{", OWN, 1, None, "cannot be read"),
        (None, OWN, 1, None, "cannot be read"),
        ("[]", OWN, 1, None, "cannot be read"),
        (state("x"), OWN, 1, None, "cannot be read"),
        (state(entries={POD: "1"}), OWN, 1, None, "cannot be read"),
    ],
)
def test_what_counts_as_alone(text, own, count, given, why):
    found, reason = pinning_probe.alone(text, own, count)
    assert found == given
    assert reason is None if why is None else why in reason


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ([[0, 0, 0, 0], [1, 1, 0, 0]], 1),
        ([[0, 0, 0, 0], [1, 0, 0, 0], [2, 0, 1, 1], [3, 0, 1, 1]], 2),
        ([], 1),
    ],
)
def test_threads_of_a_core(rows, count):
    assert pinning_probe.threads(rows) == count


def test_the_pod_is_guaranteed_and_fetches_nothing():
    (container,) = json.loads(pinning_probe.manifest(IMAGE, 2))["spec"]["containers"]
    assert (
        container["resources"]["requests"]
        == container["resources"]["limits"]
        == {
            "cpu": "2",
            "memory": "32Mi",
        }
    )
    assert (container["image"], container["imagePullPolicy"]) == (IMAGE, "Never")


def test_the_pod_may_do_nothing():
    pod = json.loads(pinning_probe.manifest(IMAGE, 1))
    assert (pod["metadata"]["name"], pod["metadata"]["namespace"]) == (
        "kubemend-pinned",
        "kube-system",
    )
    assert pod["spec"]["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    told = [
        pod["spec"][key]
        for key in (
            "automountServiceAccountToken",
            "enableServiceLinks",
            "hostNetwork",
            "terminationGracePeriodSeconds",
        )
    ]
    assert told == [False, False, True, 1]


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        ([OWN], OWN),
        ([{**OWN, "name": "other"}], None),
        ([{**OWN, "pod": "shop/kubemend-pinned-w1"}], None),
        ([{**OWN, "pod": None}, OWN], OWN),
        (None, None),
    ],
)
def test_which_container_is_ours(monkeypatch: pytest.MonkeyPatch, listed: Any, found: Any) -> None:
    monkeypatch.setattr(pinning_probe.pinning, "collect", lambda context: {"containers": listed})
    assert pinning_probe._container({}) == found


class Node:
    """A kubelet that starts what lies in its folder, and stops what does not."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.static, self.state = (
            str(folder / "k"),
            folder / "manifests",
            folder / "cpu_manager_state",
        )
        self.file, self.healthy, self.images, self.pins, self.stuck = (
            self.static / pinning_probe.FILE,
            True,
            [IMAGE, "x:1"],
            True,
            False,
        )
        monkeypatch.setattr(pinning_probe, "EVERY", 0)
        monkeypatch.setattr(pinning_probe, "RUNS", 0.05)
        monkeypatch.setattr(pinning_probe, "GONE", 0.05)
        monkeypatch.setattr(
            pinning_probe.kubelet_restart,
            "look",
            lambda host: SimpleNamespace(
                healthy=self.healthy, evidence={"static_pod_path": str(self.static)}
            ),
        )
        monkeypatch.setattr(
            pinning_probe.runtime_tool, "find", lambda evidence: SimpleNamespace(images=self.names)
        )
        monkeypatch.setattr(pinning_probe, "_container", lambda evidence: self.container())

    def names(self) -> list[str]:
        if self.images is None:
            raise runtime_tool.RuntimeDown("no answer")
        return self.images

    def container(self):
        if not self.file.exists():
            return OWN if self.stuck else None
        try:
            self.image = json.loads(self.file.read_text())["spec"]["containers"][0]["image"]
        # something else wrote it: a kubelet starts nothing of what it cannot read
        except ValueError:
            return None
        self.state.write_text(state() if self.pins else state("0-3", {}))
        return OWN

    def do(self, whole_cores: bool = False) -> tuple[str, str]:
        wanted = {
            "id": "04-pinned",
            "remedy": "pinned_pod",
            "change": {
                "path": str(self.file),
                "whole_cores": whole_cores,
                "state": str(self.state),
            },
        }
        context = journal_entry.StepContext(RUN, "04-pinned", "pinned", "KM301", self.root)
        found, why, _seen = pinning_probe.ProbePinning().run(Step(context, wanted, "w1"))
        return found, why or ""


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


def test_shown_and_gone_again(node: Node) -> None:
    state, reason = node.do()
    assert state == "proven"
    facts(reason, "CPUs 1")
    assert not node.static.exists()
    assert step_record.unproven(node.root) == []
    assert node.do()[0] == "failed"  # the same step once more: a connection that was made twice


def test_of_several_images_the_newest(node: Node) -> None:
    node.images = [IMAGE, "registry.k8s.io/pause:3.9", "registry.k8s.io/pause:3.1"]
    assert node.do()[0] == "proven"
    assert node.image == "registry.k8s.io/pause:3.9"


def test_where_whole_cores_are_given_one_thread_proves_nothing(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        pinning_probe.pinning,
        "topology",
        lambda: [[0, 0, 0, 0], [1, 0, 0, 0], [2, 1, 0, 0], [3, 1, 0, 0]],
    )
    assert "gives it 1 of which none are everybody's" in node.do(whole_cores=True)[1]


def test_a_node_that_does_not_pin_fails_and_keeps_nothing(node: Node) -> None:
    node.pins = False
    found, why = node.do()
    assert found == "failed"
    assert "no CPU is given to a pod alone on w1: the CPU manager's state has no entry" in why
    assert not node.file.exists()


def test_a_pod_that_stays_is_said(node: Node) -> None:
    node.stuck = True
    found, why = node.do()
    assert found == "failed"
    assert "its pod is not gone" in why
    assert "no CPU is given" not in why


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"healthy": False}, "is not healthy"),
        ({"images": ["x:1"]}, "has no image of a container that only waits"),
        ({"images": None}, "does not report its images"),
        ({"static": Path("/other")}, "starts no static pods from"),
    ],
)
def test_refused_before_anything_is_written(node: Node, change: dict[str, Any], why: str) -> None:
    vars(node).update(change)
    found, said = node.do()
    assert found == "not_done"
    assert why in said
    assert not node.file.exists()
    assert step_record.read(RUN, "04-pinned", node.root) is None


def test_somebody_elses_file_is_left(node: Node) -> None:
    node.static.mkdir()
    node.file.write_text("mine")
    found, why = node.do()
    assert found == "not_done"
    assert "is there already on w1" in why
    assert node.file.read_text() == "mine"


def test_a_kubelet_without_a_folder_of_static_pods(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        pinning_probe.kubelet_restart,
        "look",
        lambda host: SimpleNamespace(healthy=True, evidence={"static_pod_path": None}),
    )
    assert "starts no static pods from" in node.do()[1]


def test_killed_and_something_else_lies_there_now(node: Node) -> None:
    """The folder that was made for it stays for what others put there.

    A file that is not kubemend's is named.
    """
    node.static.mkdir()
    node.file.write_bytes(pinning_probe.manifest(IMAGE, 1))
    (node.static / "other.yaml").write_text("{}")
    record = {"host": "w1", "path": str(node.file), "made": True}
    step = journal_entry.StepContext(RUN, "r", "recover", "KM902", node.root)
    assert pinning_probe.ProbePinning().recover(record, step) == (
        "not_done",
        "its test pod is gone",
    )
    assert (node.static / "other.yaml").exists()
    node.file.mkdir()
    found, why = pinning_probe.ProbePinning().recover(record, step)
    # it stays open: the run after this one tries again
    assert found is None
    assert "is still there" in why
    assert node.file.exists()


@pytest.mark.parametrize("made", [True, False])
def test_killed_while_it_ran(node: Node, made: bool) -> None:
    node.static.mkdir()
    node.file.write_bytes(pinning_probe.manifest(IMAGE, 1))
    record = {"host": "w1", "path": str(node.file), "made": made}
    assert pinning_probe.ProbePinning().recover(
        record, journal_entry.StepContext(RUN, "r", "recover", "KM902", node.root)
    ) == (
        "not_done",
        "its test pod is gone",
    )
    assert not node.file.exists()
    assert node.static.exists() is not made


def test_nothing_is_known_of_the_kubelet_then(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(host: str) -> None:
        raise preconditions.PreconditionFailed("nothing was changed")

    node.static.mkdir()
    node.file.write_text("{}")
    monkeypatch.setattr(pinning_probe.kubelet_restart, "look", refuse)
    found, why = pinning_probe.ProbePinning().recover(
        {"host": "w1", "path": str(node.file)},
        journal_entry.StepContext(RUN, "r", "recover", "KM902", node.root),
    )
    assert found == "failed"
    assert "nothing was changed" in why
    assert "goes once the kubelet runs" in why
    assert not node.file.exists()


@pytest.mark.parametrize("broken", ["create_file", "move_out"])
def test_a_pod_whose_file_lies_there_still_is_taken_away_by_the_next_run(
    node: Node, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """A disk fails while the file is made or taken away.

    The kubelet runs the pod all the same, and no other program would end it.
    """
    whole = getattr(pinning_probe.file_change, broken)

    def failing(*args: Any, **more: Any) -> None:
        if broken == "create_file":
            whole(*args, **more)
        raise storage.ChangeError("the disk failed", changed=broken == "create_file")

    with monkeypatch.context() as patched:
        patched.setattr(pinning_probe.file_change, broken, failing)
        found, why = node.do()
        assert found == "failed"
        assert "the disk failed" in why
        assert "KM902" in why
        assert node.file.exists()
    (record,) = step_record.unproven(node.root)
    assert pinning_probe.ProbePinning().recover(
        record, journal_entry.StepContext(RUN, "r", "recover", "KM902", node.root)
    ) == (
        "not_done",
        "its test pod is gone",
    )
    assert not node.file.exists()
