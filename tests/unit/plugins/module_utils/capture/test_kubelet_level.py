# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet's level by a restart: guarded, proven by the new process, back where it is not.

Systemd and the kubelet are stand-ins.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import step_claim
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    registry,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import devices
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    journal as node_journal,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    pending_changes,
    step_record,
    verbosity_expiry,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state.storage import ChangeError
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    run as revert_run,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import files
from tests.unit.support.fake_kubelet_verbosity import FIRST, NEXT, RUN, Node, clean_node


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    yield from clean_node(tmp_path, monkeypatch)


def test_it_is_raised_and_taken_back(node: Node) -> None:
    before = node.env.read_bytes()
    assert node.raise_level() == ("proven", "")
    assert node.argv[-1] == "--v=4"
    assert node.env.read_bytes() == before.replace(b"--v=2", b"--v=4")
    assert node.commands == ["restart"]
    assert node.left() == ["kubelet"]
    assert node.record()["seen"] == {
        "pid": FIRST + 1,
        "ticks": (FIRST + 1) * 10,
    }
    done = node.revert()
    assert [(one["component"], one["proven"]) for one in done["components"]] == [
        ("kubelet", True)
    ], done
    assert done["error"] is None, done
    assert node.env.read_bytes() == before
    assert node.argv[-1] == "--v=2"
    assert node.left() == []
    assert node.revert("20261121T110000Z-777777")["components"] == []


def test_an_end_that_is_not_recorded_makes_no_failure_of_what_was_done(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = node.env.read_bytes()

    def full(*dummy: Any, **more: Any) -> None:
        raise ChangeError("how it ended was not recorded: no space")

    with monkeypatch.context() as patch:
        patch.setattr(step_claim, "end", full)
        state, why = node.raise_level()
        assert state == "proven"
        assert why.startswith("how it ended was not recorded: no space")
        assert node.argv[-1] == "--v=4"
        assert node.left() == ["kubelet"]
    step_claim.end(RUN, "raise-kubelet", step_record.PROVEN, root=node.root)
    monkeypatch.setattr(step_claim, "end", full)
    done = node.revert()
    assert [(one["path"], one["result"]) for one in done["paths"]] == [
        (str(node.env), "restored")
    ], done
    assert done["error"] is None, done
    (one,) = done["components"]
    assert one["proven"] is True
    assert one["reason"].startswith("how it ended was not recorded: no space")
    assert "KM902" in one["reason"]
    assert node.env.read_bytes() == before
    assert node.argv[-1] == "--v=2"


def test_files_of_our_own_go_with_their_folders(node: Node) -> None:
    (node.path / "two").mkdir()
    assert node.raise_level(node.beside()) == ("proven", "")
    assert node.commands == ["daemon-reload", "restart"]
    assert oct((node.path / "one" / "made").stat().st_mode)[-3:] == "600"
    assert oct((node.path / "two" / "made").stat().st_mode)[-3:] == "644"
    assert node.revert()["error"] is None
    assert node.commands == ["daemon-reload", "restart"] * 2
    assert not (node.path / "one" / "made").exists()
    assert not (node.path / "two" / "made").exists()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda node: node.unit.update(name="k3s.service"), "does not run as kubelet.service"),
        (lambda node: node.unit.update(active_state="failed"), "does not run"),
        (lambda node: setattr(node, "healthy", False), "is not healthy"),
        (lambda node: node.unit.update(need_daemon_reload=True), "pending_changes"),
        (
            lambda node: node.unit.update(environment_files=[{"path": "/e", "mtime": 2000.0}]),
            "/e is newer than the process",
        ),
    ],
)
def test_what_forbids_the_restart_changes_nothing(node: Node, change: Any, word: str) -> None:
    before, step = node.env.read_bytes(), node.step()
    change(node)
    state, why = node.raise_level(step)
    assert state == "not_done"
    assert word in why
    assert node.env.read_bytes() == before
    assert node.commands == []
    assert node.left() == []


def test_another_process_than_the_plans_is_left_alone(node: Node) -> None:
    step = node.step()
    node.pid += 7
    assert "the evidence is old" in node.raise_level(step)[1]
    assert node.commands == []


@pytest.mark.parametrize(
    ("held", "word"),
    [({"uid-1"}, "pods with devices run on w1 (uid-1)"), (None, "cannot be determined")],
)
def test_devices_forbid_it_unless_allowed(
    node: Node, monkeypatch: pytest.MonkeyPatch, held: Any, word: str
) -> None:
    monkeypatch.setattr(devices, "running", lambda: held)
    state, why = node.raise_level()
    assert state == "not_done"
    assert word in why
    assert "kubemend_allow=kubelet_restart" in why
    assert node.commands == []
    assert node.raise_level({**node.step(), "guard": {"allow": ["kubelet_restart"]}})[0] == "proven"
    done = node.revert()
    # a revert needs it too
    assert word in done["paths"][0]["reason"]
    assert node.left() == ["kubelet"]
    assert (
        node.revert("20261121T110000Z-777777", allow=["kubelet_restart"])["components"][0]["proven"]
        is True
    )


def test_a_check_of_the_way_back_asks_the_same_guard(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.raise_level()
    params = {"state": "listed", "run_id": NEXT, "reverts": RUN, "root": node.root, "host": "w1"}
    assert revert_run.run(params)["guards"] == [{"component": "kubelet", "refused": None}]
    monkeypatch.setattr(devices, "running", lambda: {"uid-1"})
    (one,) = revert_run.run(params)["guards"]
    assert "pods with devices run on w1 (uid-1)" in one["refused"]
    assert node.commands == ["restart"]
    assert node.left() == ["kubelet"]
    assert revert_run.run({**params, "allow": ["kubelet_restart"]})["guards"] == [
        {"component": "kubelet", "refused": None}
    ]
    assert len(revert_run.run({**params, "reverts": "last"})["guards"]) == 1
    assert revert_run.run({**params, "reverts": NEXT})["guards"] == []
    assert "guards" not in revert_run.run({"state": "listed", "root": node.root})


def test_a_process_that_is_not_as_it_should_be_is_taken_back(node: Node) -> None:
    before = node.env.read_bytes()
    node.more = ["--v=0"]
    step = node.step()
    node.argv = [*node.argv, "--v=0"]
    state, why = node.raise_level(step)
    assert state == "rolled_back"
    assert "runs at level 0, not 4" in why
    assert node.env.read_bytes() == before
    assert node.left() == []


def test_other_arguments_than_before_are_no_proof(node: Node) -> None:
    node.more = ["--new"]
    state, why = node.raise_level()
    assert state == "failed"
    assert "does not run with the former command line except for its level" in why
    assert "did not come back" in why


def test_a_kubelet_that_does_not_start_again(node: Node) -> None:
    node.deaf = True
    state, why = node.raise_level()
    assert state == "failed"
    assert "the former process" in why
    assert "look at journalctl -u kubelet on w1" in why
    assert b"--v=2" in node.env.read_bytes()


def test_systemctl_that_hangs(node: Node) -> None:
    node.fails = "restart"
    state, why = node.raise_level()
    assert state == "failed"
    assert "it could not be restarted (systemctl did not end within 60 s)" in why
    assert b"--v=2" in node.env.read_bytes()


def test_a_file_that_changed_meanwhile(node: Node) -> None:
    step = node.beside()
    node.env.write_text('KUBE_LOG_LEVEL="--v=3"\nOTHER=1\n')
    state, why = node.raise_level(step)
    assert state == "not_done"
    assert "no longer what evidence said" in why
    assert node.commands == []
    assert node.left() == []
    assert not (node.path / "one" / "made").exists()
    assert "--v=3" in node.env.read_text()


def test_a_swap_that_would_keep_it_from_starting(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = files.text
    monkeypatch.setattr(
        files,
        "text",
        lambda path, *more: (
            "Filename Type\n/swapfile file 1 0 -2\n" if path == "/proc/swaps" else text(path, *more)
        ),
    )
    state, why = node.raise_level()
    assert state == "not_done"
    assert "swap is on (/swapfile)" in why
    assert node.commands == []
    node.config = {"path": "/c", "text": "failSwapOn: false\n", "mtime": 1.0}
    assert node.raise_level({**node.step(), "id": "raise-kubelet-2"})[0] == "proven"
    node.revert()


def test_a_reload_of_ours_that_never_came_is_nobody_elses_change(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropin = node.path / "kubelet.service.d" / "zz-kubemend.conf"
    step = node.beside()
    step["change"]["files"][0]["path"] = str(dropin)
    assert node.raise_level(step) == ("proven", "")
    node.unit.update(drop_in_paths=["/proc/self/status", str(dropin)])
    dropin.unlink()  # taken away by one that was killed before it told systemd
    node.unit.update(need_daemon_reload=True)
    assert node.revert()["components"][0]["proven"] is True
    assert node.left() == []


def test_but_somebody_elses_is(node: Node) -> None:
    dropin = node.path / "kubelet.service.d" / "zz-kubemend.conf"
    step = node.beside()
    step["change"]["files"][0]["path"] = str(dropin)
    node.raise_level(step)
    node.unit.update(drop_in_paths=["/etc/gone.conf"], need_daemon_reload=True)
    done = node.revert()
    assert "pending_changes" in done["paths"][0]["reason"]
    assert node.left() == ["kubelet"]
    node.unit.update(need_daemon_reload=False)
    node.revert("20261121T110000Z-777777")


def test_no_reload_beside_devices_although_the_kubelet_is_stopped(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.raise_level(node.beside())
    node.pid = 0
    monkeypatch.setattr(devices, "running", lambda: {"uid-1"})
    done = node.revert()
    assert "pods with devices run" in done["paths"][0]["reason"]
    assert node.commands == [
        "daemon-reload",
        "restart",
    ]
    monkeypatch.setattr(devices, "running", set)
    node.revert("20261121T110000Z-777777")


def test_somebody_elses_change_is_not_taken_back(node: Node) -> None:
    node.raise_level()
    node.env.write_text('KUBE_LOG_LEVEL="--v=7"\nOTHER=1\n')
    done = node.revert()
    assert done["paths"][0]["result"] == "refused"
    assert "decide by hand" in done["paths"][0]["reason"]
    assert "--v=7" in node.env.read_text()
    assert node.commands == ["restart"]


def test_a_kubelet_that_is_stopped_is_not_started(node: Node) -> None:
    node.raise_level()
    node.pid = 0
    done = node.revert()
    assert (done["components"][0]["proven"], done["error"]) == (
        None,
        None,
    )
    assert "did not run at level 4" in done["components"][0]["reason"]
    assert b"--v=2" in node.env.read_bytes()
    assert node.commands == ["restart"]
    assert node.left() == []


def test_one_that_was_restarted_since_needs_nothing(node: Node) -> None:
    node.raise_level()
    node.env.write_text('KUBE_LOG_LEVEL="--v=2"\nOTHER=1\n')
    node._systemctl("restart")
    assert node.left() == []
    assert node.revert()["components"] == []


@pytest.mark.parametrize("loaded", [True, False])
def test_interrupted_it_is_taken_back(node: Node, loaded: bool) -> None:
    """The step is killed after the write, before or after the restart.

    The recovery puts back the file, and restarts what runs with it.
    """
    node.raise_level()
    if not loaded:
        node.pid, node.argv = FIRST, ["/usr/bin/kubelet", "--config=/c", "--v=2"]
    node.forget_proof()
    assert node.left() == ["kubelet"]
    assert [one["step"] for one in step_record.unproven(node.root)] == ["raise-kubelet"]
    done = step_executor.work(
        {
            "run_id": NEXT,
            "root": node.root,
            "lock": None,
            "step": {"id": "recover", "remedy": "recover", "host": "w1"},
        }
    )
    assert done["state"] == "done", done
    assert node.record()["state"] == "rolled_back"
    assert b"--v=2" in node.env.read_bytes()
    assert node.argv[-1] == "--v=2"
    assert node.commands == ["restart"] * (2 if loaded else 1)
    assert node.left() == []
    assert step_record.unproven(node.root) == []


def test_interrupted_where_it_may_not_restart_it_waits(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.raise_level()
    node.forget_proof()
    monkeypatch.setattr(devices, "running", lambda: {"uid-1"})
    done = step_executor.work(
        {
            "run_id": NEXT,
            "root": node.root,
            "lock": None,
            "step": {"id": "recover", "remedy": "recover", "host": "w1"},
        }
    )
    assert done["state"] == "failed"
    assert "pods with devices run" in done["reason"]
    assert [one["step"] for one in step_record.unproven(node.root)] == ["raise-kubelet"]
    assert b"--v=4" in node.env.read_bytes()


def test_a_revert_that_was_interrupted_is_finished(node: Node) -> None:
    node.raise_level()
    node.revert()
    node.forget_proof("revert-kubelet", NEXT)
    node.argv[-1] = "--v=4"
    assert pending_changes.pending(node.root) == []
    done = step_executor.work(
        {
            "run_id": "20261121T110000Z-777777",
            "root": node.root,
            "lock": None,
            "step": {"id": "recover", "remedy": "recover", "host": "w1"},
        }
    )
    assert done["state"] == "done"
    assert node.argv[-1] == "--v=2"
    assert step_record.unproven(node.root) == []


def levels(node: Node, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Tell what evidence says is still raised."""
    monkeypatch.setattr(node_journal, "ROOT", node.root)
    return [
        (one["overdue"], one["by_hand"])
        for one in node_journal.collect(registry.Context({}, [], {}))["levels"]
    ]


def test_repairing_runs_lift_what_their_operator_lifts(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.raise_level()
    monkeypatch.setattr(devices, "running", lambda: {"uid-1"})
    step = {"id": "restore", "remedy": "restore_levels", "host": "w1", "guard": {"allow": []}}
    assert (
        "kubelet_restart"
        in step_executor.work({"run_id": NEXT, "root": node.root, "lock": None, "step": step})[
            "reason"
        ]
    )
    done = step_executor.work(
        {
            "run_id": "20261121T110000Z-777777",
            "root": node.root,
            "lock": None,
            "step": {**step, "guard": {"allow": ["kubelet_restart"]}},
        }
    )
    assert done["state"] == "done"
    assert node.left() == []


@pytest.mark.parametrize(
    ("until", "overdue"),
    [
        (None, True),
        ({"boot": "b", "uptime": 900.0, "complete": True}, True),
        ({"boot": "b", "uptime": 945.0, "complete": True}, False),
        ({"boot": "other", "uptime": 5000.0, "complete": True}, True),
    ],
)
def test_evidence_names_it_and_whether_its_time_is_over(
    node: Node, monkeypatch: pytest.MonkeyPatch, until: Any, overdue: bool
) -> None:
    monkeypatch.setattr(node_journal, "ROOT", node.root)
    monkeypatch.setattr(verbosity_expiry, "boot", lambda: ("b", 1000.0))
    node.raise_level()
    if until:
        (Path(node.root) / "levels").mkdir()
        (Path(node.root) / "levels" / f"{RUN}.json").write_text(json.dumps(until))
    (one,) = node_journal._by_restart()
    assert one == {
        "path": "log level of kubelet",
        "real": "level:kubelet",
        "run_id": RUN,
        "level": "4",
        "former": "2",
        "at": one["at"],
        "entry": "proof-raise-kubelet",
        "restart": True,
        "overdue": overdue,
        "by_hand": None,
        "until": one["until"],
    }
    assert (one["until"] is None) is (until is None)
    node.revert()
    assert node_journal._by_restart() == []
