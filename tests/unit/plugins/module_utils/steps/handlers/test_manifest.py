# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps of a component's file: verified, rolled back, refused, moved out."""

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    step_record,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    health_probe,
)
from tests.unit.support.fake_step import RIGHT, RUN, WRONG, Node, edit_states, made


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    with made(monkeypatch) as one:
        yield one


def test_done(node: Node) -> None:
    former = node.manifest.read_bytes()
    before = node.running()[0]
    answer = node.run()
    assert (answer["state"], answer["reason"], answer["changed"]) == ("done", "", True)
    assert node.manifest.read_bytes() == former.replace(WRONG, RIGHT)
    (one,) = node.running()
    assert one.identity != before.identity
    assert "--leader-elect=true" in one.argv
    seen = answer["seen"]
    assert (seen["pid"], seen["elect"], seen["healthz"], seen["configz"]) == (
        one.pid,
        True,
        200,
        200,
    )
    assert 0 < seen["proof_seconds"] < answer["seconds"] - 0.4
    assert answer["journal"] == f"{RUN}/001-01-m2-kube-scheduler-edit"
    (item,) = journal.read_run(RUN, str(node.root))
    assert item["end"]["result"] == "committed"
    assert item["intent"]["why"] == "KM101"
    assert edit_states(node) == ["proven"]
    assert step_record.unproven(str(node.root)) == []


@pytest.mark.parametrize(
    ("state", "said", "restarted"),
    [
        ("stuck", "the former process", False),
        ("crash", "the new process ended again", True),
        ("refuse", "the new process ended again", True),
        ("ignore", "leader election is off", True),
    ],
)
def test_not_proven_is_rolled_back(
    node: Node, monkeypatch: pytest.MonkeyPatch, state: str, said: str, restarted: bool
) -> None:
    former, before = node.manifest.read_bytes(), node.running()[0]
    (node.state / state).touch()
    answer = node.run(node.step(limit=120 if restarted else 1.5))
    assert answer["state"] == "rolled_back", answer
    assert said in answer["reason"], answer
    assert "runs as before" in answer["reason"], answer
    assert node.manifest.read_bytes() == former
    (one,) = node.running()
    assert "--leader-elect=false" in one.argv
    assert (one.identity != before.identity) is restarted
    assert [
        item["intent"]["reverts"] is None for item in journal.read_run(RUN, str(node.root))
    ] == [True, False]
    assert edit_states(node) == ["rolled_back"]


def test_component_down(node: Node) -> None:
    former = node.manifest.read_bytes()
    (node.state / "vanish").touch()
    answer = node.run(node.step(limit=1.5))
    assert answer["state"] == "failed", answer
    assert answer["reason"].startswith("component down: "), answer
    assert "/var/log/pods" in answer["reason"], answer
    assert node.manifest.read_bytes() == former
    assert node.running() == []
    assert edit_states(node) == ["failed"]
    assert step_record.failures(str(node.root))["kube-scheduler"]["reason"].startswith(
        "component down: "
    )


def test_the_kubelet_s_back_off_is_waited_for(node: Node) -> None:
    (node.state / "late").touch()
    answer = node.run(node.step(limit=1.5))
    assert answer["state"] == "done", answer
    assert answer["seen"]["proof_seconds"] > 2.5, answer


def test_somebody_else_writes_meanwhile(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    (node.state / "stuck").touch()
    wait = health_probe.wait

    def meanwhile(*given: Any, **more: Any) -> Any:
        assert RIGHT in node.manifest.read_bytes()
        node.manifest.write_bytes(node.manifest.read_bytes() + b"# mine\n")
        return wait(*given, **more)

    monkeypatch.setattr(health_probe, "wait", meanwhile)
    answer = node.run(node.step(limit=1.5))
    assert answer["state"] == "failed"
    assert "former bytes were not put back" in answer["reason"]
    assert "no longer what" in answer["reason"]
    assert node.manifest.read_bytes().endswith(b"# mine\n")


def _gone(node: Node, step: dict[str, Any]) -> None:
    (node.state / "image").unlink()


def _mute(node: Node, step: dict[str, Any]) -> None:
    (node.state / "mute").touch()


def _sick(node: Node, step: dict[str, Any]) -> None:
    (node.state / "sick").touch()


def _other(node: Node, step: dict[str, Any]) -> None:
    (node.folder / "kube-scheduler.yaml.bak").write_bytes(node.manifest.read_bytes())


def _restarted(node: Node, step: dict[str, Any]) -> None:
    former = node.running()[0]
    os.kill(former.pid, signal.SIGKILL)
    node.wait_restarted(former)


def _reused(node: Node, step: dict[str, Any]) -> None:
    step["expect"]["started_at"] -= 60


def _silent(node: Node, step: dict[str, Any]) -> None:
    step["guard"]["api_servers"] = ["127.0.0.1:1"]


def _edited(node: Node, step: dict[str, Any]) -> None:
    step["change"]["sha256"] = "0" * 64


def _words(node: Node, step: dict[str, Any]) -> None:
    step["expect"]["words"] = [
        "kube-scheduler",
        f"--port={node.port}",
        "--secure-port=0",
        "--leader-elect=false",
        "--v=9",
    ]


def _etcd(node: Node, step: dict[str, Any]) -> None:
    step["expect"]["component"] = "etcd"


def _foreign(node: Node, step: dict[str, Any]) -> None:
    step["remedy"] = "reboot"


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (_gone, "is gone from the runtime of m2"),
        (_mute, "container runtime of m2 does not answer"),
        (_sick, "kubelet of m2 is not healthy"),
        (_other, "kube-scheduler.yaml.bak on m2 may hold"),
        (_silent, "no API server answers from m2"),
        (_edited, "no longer what evidence said"),
        (_words, "--v is '9' in the manifest and not set"),
        (_etcd, "etcd of m2 is not edited"),
        (_foreign, "is not done on a node"),
    ],
)
def test_refused_before_the_write(node: Node, broken: Any, said: str) -> None:
    former, step = node.manifest.read_bytes(), node.step()
    broken(node, step)
    answer = node.run(step)
    assert answer["state"] == "refused", answer
    assert said in answer["reason"], answer
    assert answer["changed"] is False, answer
    assert node.manifest.read_bytes() == former
    assert journal.read_run(RUN, str(node.root)) == []
    assert step_record.unproven(str(node.root)) == []


@pytest.mark.parametrize("meanwhile", [_restarted, _reused])
def test_another_process_than_that_of_the_plan(node: Node, meanwhile: Any) -> None:
    """A step that restarts by a signal refuses another process.

    If the kubelet restarts the component from the manifest, it replaces what runs now, if anything.
    """
    config, former = node.config_step(), node.config.read_bytes()
    edit = node.step()
    meanwhile(node, config)
    answer = node.run(config)
    assert answer["state"] == "refused", answer
    assert "the evidence is old" in answer["reason"], answer
    assert node.config.read_bytes() == former, answer
    meanwhile(node, edit)
    assert node.run(edit)["state"] == "done"
    (now,) = node.running()
    assert "--leader-elect=true" in now.argv
    assert now.pid != edit["expect"]["pid"]


def test_no_kubelet(node: Node) -> None:
    step = node.step()
    os.kill(node._kubelet.pid, signal.SIGKILL)
    node._kubelet.wait()
    answer = node.run(step)
    assert answer["state"] == "refused"
    assert "kubelet" in answer["reason"]
    assert "repair it first" in answer["reason"]


def test_pending_changes_are_refused_or_allowed(node: Node) -> None:
    step = node.step()
    step["guard"]["allow"] = ["pending_changes"]
    _words(node, step)
    assert node.run(step)["state"] == "done"


def _starts(node: Node) -> int:
    """Return how often the kubelet has started the scheduler, by the logs of its container."""
    return len(list(node.state.rglob("kube-scheduler/*.log")))


def _with_config(node: Node) -> None:
    node.configure()


def test_a_configuration_file_and_a_signal(node: Node) -> None:
    _with_config(node)
    before = node.running()[0]
    answer = node.run(node.config_step())
    assert answer["state"] == "done", answer
    assert b"leaderElect: true" in node.config.read_bytes(), answer
    assert node.running()[0].identity != before.identity
    assert answer["seen"]["elect"] is True


def test_a_configuration_that_crashes_is_rolled_back_and_loaded_again(node: Node) -> None:
    _with_config(node)
    former, step, starts = node.config.read_bytes(), node.config_step(), _starts(node)
    (node.state / "ignore").touch()
    answer = node.run(step)
    assert answer["state"] == "rolled_back", answer
    assert "runs as before" in answer["reason"], answer
    assert node.config.read_bytes() == former
    # one process with the new file, and one that has the former file again
    assert _starts(node) == starts + 2


def test_a_configuration_that_is_newer_than_the_process(node: Node) -> None:
    _with_config(node)
    later = time.time() + 5
    os.utime(node.config, (later, later))
    answer = node.run(node.config_step())
    assert answer["state"] == "refused"
    assert f"{node.config} is newer than the process" in answer["reason"]
    # that very change is what a restart is for
    step = node.config_step(remedy="restart", change=None)
    step["expect"]["elect"] = False
    before = node.running()[0]
    answer = node.run(step)
    assert answer["state"] == "done", answer
    assert answer["changed"], answer
    assert node.running()[0].identity != before.identity, answer


def test_a_stray_manifest_is_moved_out(node: Node) -> None:
    stray, before = node.folder / "kube-scheduler.yaml.bak", node.running()[0]
    stray.write_bytes(node.manifest.read_bytes())
    step = node.step(remedy="move_out", target=str(stray))
    step["change"] = {
        "kind": "move_out",
        "path": str(stray),
        "sha256": step["change"]["sha256"],
        "splices": [],
    }
    step["expect"].update(restart=None, elect=False, flags={})
    answer = node.run(step)
    assert answer["state"] == "done", answer
    assert not stray.exists(), answer
    assert node.running()[0].identity == before.identity, answer
