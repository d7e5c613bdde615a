# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The managers' state reset on its node.

Guarded, proven by what the kubelet writes, back where it does not; systemd and the kubelet are
stand-ins.
"""

import base64
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import (
    journal_entry,
    node_lock,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import devices
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    revert_plan,
    step_record,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    kubelet_restart,
    preconditions,
    registry,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.base import Step
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    cpu_manager_reset,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    run as revert_run,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import command
from tests.unit.support.facts import facts
from tests.unit.support.waiting import Clock

RUN, NEXT = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f"
FIRST = 5_000_000  # no process of this machine has such a number
WORD = "--cpu-manager-policy=none"


class Node:
    """A kubelet that ends over a state of another policy than its own.

    It writes its own state where there is none.
    """

    def __init__(
        self,
        path: Path,
        monkeypatch: pytest.MonkeyPatch,
        policy: str = "static",
        state: str = "none",
    ) -> None:
        self.path, self.root, self.policy = path, str(path / "kubemend"), policy
        (path / "units").mkdir()
        self.dropin, self.env = path / "units" / "zz.conf", path / "run" / "reset.env"
        self.state, self.memory = path / "cpu_manager_state", path / "memory_manager_state"
        self.state.write_text(json.dumps({"policyName": state}))
        self.memory.write_text(json.dumps({"policyName": "None"}))
        self.pid, self.argv, self.commands, self.broken, self.hung, self.ends = (
            0,
            [],
            [],
            False,
            False,
            0.0,
        )
        self.unit: dict[str, Any] = {
            "name": "kubelet.service",
            "environment_files": [],
            "need_daemon_reload": False,
        }
        ticks = step_record.ticks
        monkeypatch.setattr(
            step_record,
            "ticks",
            lambda pid: ticks(pid) if pid < FIRST else pid * 10 if pid == self.pid else None,
        )
        self.clock = Clock()
        for module in (kubelet_restart, cpu_manager_reset):
            monkeypatch.setattr(module, "time", self.clock)
        monkeypatch.setattr(kubelet_restart, "Kubelet", self._look)
        monkeypatch.setattr(kubelet_restart, "_systemctl", self._systemctl)
        for module, names in (
            (kubelet_restart, {"STABLE": 0.05, "PAUSE": 0.01, "SECONDS": 0.4}),
            (cpu_manager_reset, {"PAUSE": 0.01, "STOPPING": 0.3, "WRITTEN": 0.3}),
        ):
            for name, value in names.items():
                monkeypatch.setattr(module, name, value)
        monkeypatch.setattr(preconditions, "answering", lambda *dummy: None)
        monkeypatch.setattr(devices, "running", set)

    def _look(self) -> Any:
        if self.ends and self.clock.time() > self.ends:
            self.pid, self.ends = 0, 0.0
        process = (
            {"pid": self.pid, "started_at": self.clock.time() if self.ends else 1000.0}
            if self.pid
            else None
        )
        evidence = {
            "unit": self.unit,
            "process": process,
            "config": None,
            "config_dropins": [],
            "healthz": {"status": 200 if self.pid else None, "error": "refused"},
        }
        return SimpleNamespace(
            evidence=evidence,
            pid=self.pid or None,
            ticks=self.pid * 10 or None,
            argv=list(self.argv),
            healthy=bool(self.pid),
            identity=(self.pid, self.pid * 10) if self.pid else None,
        )

    def _systemctl(self, *words: str) -> None:
        self.commands.append(words[0])
        if words[0] == "stop" and not self.hung:
            self.pid = 0
        if words[0] == "restart":
            self.start()

    def start(self) -> None:
        told = "none" if self.dropin.exists() and self.env.exists() else self.policy
        held = json.loads(self.state.read_text())["policyName"] if self.state.exists() else told
        if (self.broken and told == self.policy) or held != told:
            self.pid = 0
            return
        self.pid = (self.pid or FIRST + len(self.commands)) + 1
        self.argv = ["kubelet"] + ([WORD] if told != self.policy else [])
        for path, policy in ((self.state, told), (self.memory, "None")):
            path.write_text(
                json.dumps(
                    {"policyName": policy, "default": path.stat().st_size if path.exists() else 0}
                )
            )

    def lend(self) -> dict[str, Any]:
        files = [
            {
                "kind": "create",
                "path": str(path),
                "data": base64.b64encode(b"x\n").decode(),
                "mode": mode,
            }
            for path, mode in ((self.env, "0600"), (self.dropin, "0644"))
        ]
        return {
            "id": "01-start",
            "host": "w1",
            "remedy": "start_former",
            "target": "t",
            "change": {"kind": "files", "path": str(self.dropin), "files": files, "reload": True},
            "expect": {"words": [WORD]},
            "guard": {"allow": []},
        }

    def reset(self) -> dict[str, Any]:
        return {
            "id": "03-reset",
            "host": "w1",
            "remedy": "reset_state",
            "target": "t",
            "guard": {"allow": []},
            "change": {
                "kind": "reset",
                "path": str(self.state),
                "states": [str(self.state), str(self.memory)],
                "reload": True,
                "files": [{"path": str(self.dropin)}, {"path": str(self.env)}],
            },
            "expect": {"policies": {str(self.state): self.policy, str(self.memory): "None"}},
        }

    def do(self, wanted: Any, run_id: str = RUN, **params: Any) -> tuple[str, str]:
        context = journal_entry.StepContext(run_id, wanted["id"], "reset", "KM301", self.root)
        state, why, _dummy = registry.handler_of(wanted["remedy"]).run(
            Step(context, wanted, "w1", params)
        )
        return state, why or ""

    def forget(self, name: str) -> dict[str, Any]:
        """Return a recovery of a step whose program was killed before it wrote the end."""
        path = Path(self.root) / "journal" / RUN / f"proof-{name}.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "state": "awaited", "by": {}}))
        return {
            "run_id": NEXT,
            "root": self.root,
            "lock": None,
            "step": {"id": "recover", "host": "w1", "remedy": "recover", "expect": {}},
        }

    def lent(self) -> bool:
        return self.dropin.exists() and self.env.exists()

    def policies(self) -> list[Any]:
        return [
            json.loads(path.read_text())["policyName"] if path.exists() else None
            for path in (self.state, self.memory)
        ]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    made = Node(tmp_path, monkeypatch)
    made.start()
    assert not made.pid  # its state keeps it down
    return made


def test_lent_its_former_policy_and_then_reset(node: Node) -> None:
    former = node.state.read_bytes()
    assert node.do(node.lend()) == ("proven", "")
    assert WORD in node.argv
    assert node.lent()
    assert node.state.read_bytes() != former
    assert node.do(node.reset()) == ("proven", "")
    assert node.argv == ["kubelet"]
    assert not node.lent()
    assert node.policies() == ["static", "None"]
    kept = [
        item["intent"]["path"]
        for item in journal.read_run(RUN, node.root)
        if item["intent"]["sha256_after"] is None
    ]
    assert kept == [str(one) for one in (node.state, node.memory, node.dropin, node.env)]


def test_no_revert_puts_a_state_back(node: Node) -> None:
    node.do(node.lend())
    node.do(node.reset())
    now = [path.read_bytes() for path in (node.state, node.memory)]
    assert {one["state"] for one in revert_plan.plan_revert(RUN, node.root)} == {"kept"}
    done = revert_run.reverted({"run_id": NEXT, "reverts": RUN, "root": node.root, "lock": None})
    assert {one["result"] for one in done["paths"]} == {"kept"}
    assert done["error"] is None
    assert "pods ran since" in done["paths"][-1]["reason"]
    assert [path.read_bytes() for path in (node.state, node.memory)] == now
    assert not node.lent()


def test_without_a_drain_nothing_has_to_be_lent(node: Node) -> None:
    assert node.do(node.reset()) == ("proven", "")
    assert node.policies() == ["static", "None"]


def test_what_is_lent_and_does_not_help_goes_again(node: Node) -> None:
    node.state.write_text('{"policyName": "dynamic"}')
    state, why = node.do(node.lend())
    assert state == "rolled_back"
    assert "does not run under the policy of its state either" in why
    assert not node.lent()
    assert node.pid == 0
    assert node.commands == ["daemon-reload", "restart", "daemon-reload"]
    assert node.policies()[0] == "dynamic"


def test_a_new_configuration_that_does_not_start_either(node: Node) -> None:
    node.do(node.lend())
    node.broken = True
    state, why = node.do(node.reset())
    assert state == "rolled_back"
    assert (
        "it runs with its former configuration and what it was lent for the drain and a new state"
        in why
    )
    assert node.lent()
    assert WORD in node.argv
    assert node.policies() == ["none", "None"]


def test_a_kubelet_that_comes_up_by_nothing_is_said_to_be_down(node: Node) -> None:
    node.broken = True
    state, why = node.do(node.reset())
    assert state == "failed"
    assert why.startswith("component down: ")
    assert "journalctl -u kubelet on w1" in why
    assert not node.lent()


def test_a_kubelet_that_does_not_write_what_it_is_told(node: Node) -> None:
    wanted = node.reset()
    wanted["expect"]["policies"][str(node.memory)] = "Static"
    state, why = node.do(wanted)
    assert state == "rolled_back"
    assert "memory_manager_state is of the policy None, not Static" in why
    assert node.pid


def test_a_kubelet_that_does_not_stop_keeps_its_state(node: Node) -> None:
    node.do(node.lend())
    node.hung, before = True, node.state.read_bytes()
    state, why = node.do(node.reset())
    assert state == "failed"
    assert "did not end" in why
    assert node.lent()
    assert node.state.read_bytes()[:20] == before[:20]
    assert node.pid


def edited(node: Node) -> "tuple[Path, dict[str, Any]]":
    """Return a configuration and a reset that sets another policy in it.

    The file is the kubelet's own, which the stand-in reads at its start.
    """
    config, wanted = node.path / "config.yaml", node.reset()
    config.write_text("cpuManagerPolicy: static\n")
    data = config.read_bytes()
    begin = data.index(b"static")
    encoded = [
        begin,
        begin + 6,
        base64.b64encode(b"static").decode(),
        base64.b64encode(b"none").decode(),
    ]
    wanted["change"]["edits"] = [
        {
            "kind": "splice",
            "path": str(config),
            "sha256": storage.digest(data),
            "splices": [encoded],
        }
    ]
    wanted["expect"]["policies"][str(node.state)] = "none"
    return config, wanted


def test_with_another_policy_in_its_own_file(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    config, wanted = edited(node)
    start = node.start

    def reads() -> None:
        node.policy = config.read_text().split()[1]
        start()

    monkeypatch.setattr(node, "start", reads)
    assert node.do(wanted) == ("proven", "")
    assert config.read_text() == "cpuManagerPolicy: none\n"
    assert node.policies() == ["none", "None"]
    (kept,) = [one for one in revert_plan.plan_revert(RUN, node.root) if one["path"] == str(config)]
    assert kept["state"] == "kept"
    assert "with a reset of their own" in kept["reason"]


def test_another_policy_under_which_it_does_not_come_up_is_taken_back(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, wanted = edited(node)
    start = node.start

    def reads() -> None:
        node.broken = "none" in config.read_text()
        start()

    monkeypatch.setattr(node, "start", reads)
    state, why = node.do(wanted)
    assert state == "rolled_back"
    assert "it runs with its former configuration and a new state" in why
    assert config.read_text() == "cpuManagerPolicy: static\n"
    assert node.policies() == ["static", "None"]


def test_a_file_that_was_edited_meanwhile_stays_and_the_kubelet_starts(node: Node) -> None:
    config, wanted = edited(node)
    config.write_text("cpuManagerPolicy: static # mine\n")
    state, why = node.do(wanted)
    assert state == "rolled_back"
    assert "no longer what evidence said" in why
    assert config.read_text() == "cpuManagerPolicy: static # mine\n"
    assert node.pid


@pytest.mark.parametrize("remedy", ["lend", "reset"])
@pytest.mark.parametrize(
    ("change", "word"),
    [
        (
            lambda node, patch: node.unit.update(name="k3s.service"),
            "is not that of kubelet.service",
        ),
        (lambda node, patch: node.unit.update(unit_file_state="masked"), "masked"),
        (
            lambda node, patch: patch.setattr(devices, "running", lambda: {"uid-1"}),
            "pods with devices run on w1 (uid-1)",
        ),
        (lambda node, patch: patch.setattr(kubelet_restart, "demand_start", _refuse), "swap is on"),
        (lambda node, patch: patch.setattr(preconditions, "answering", _refuse), "swap is on"),
    ],
)
def test_what_forbids_it_changes_nothing(
    node: Node, monkeypatch: pytest.MonkeyPatch, remedy: str, change: Any, word: str
) -> None:
    change(node, monkeypatch)
    before = node.state.read_bytes()
    state, why = node.do(getattr(node, remedy)())
    assert state == "not_done"
    assert word in why
    assert node.commands == []
    assert not node.lent()
    assert node.state.read_bytes() == before


def _refuse(*dummy: Any) -> None:
    raise preconditions.PreconditionFailed("swap is on")


def test_one_that_runs_by_those_words_already_is_good_as_it_is(node: Node) -> None:
    node.do(node.lend())
    commands = list(node.commands)
    assert node.do(node.lend(), NEXT) == ("proven", "it runs so already")
    assert node.commands == commands
    assert node.lent()


def test_what_was_lent_is_taken_back_and_nothing_restarts(node: Node) -> None:
    node.do(node.lend())
    wanted = {**node.lend(), "id": "01-unlend", "remedy": "unlend"}
    commands, pid = list(node.commands), node.pid
    state, reason = node.do(wanted, NEXT)
    assert state == "proven"
    facts(reason, "next start", "without", WORD)
    assert not node.lent()
    assert node.commands == [*commands, "daemon-reload"]
    assert node.pid == pid


def test_a_kubelet_that_runs_is_lent_nothing_and_somebodys_change_is_not_loaded(node: Node) -> None:
    node.state.unlink()
    node.start()
    assert "the evidence is old" in node.do(node.lend())[1]
    node.unit["environment_files"] = [{"path": "/e", "mtime": 2000.0}]
    state, why = node.do(node.reset())
    assert state == "not_done"
    assert "/e is newer than the process" in why
    assert node.commands == []


@pytest.mark.parametrize(
    ("killed_at", "policies", "lent", "told"),
    [
        ("write", ["none", "None"], False, "its drop-in is gone again"),
        ("start", ["none", "None"], True, "it runs under the policy of its state"),
    ],
)
def test_killed_while_it_was_lent(
    node: Node, killed_at: str, policies: Any, lent: bool, told: str
) -> None:
    node.do(node.lend())
    if killed_at == "write":
        node.pid = 0
    answer = step_executor.work(node.forget("01-start"))
    assert answer["state"] == "done"
    assert told in answer["reason"]
    assert node.lent() is lent
    assert node.policies() == policies
    assert step_record.unproven(node.root) == []


@pytest.mark.parametrize("running", [True, False])
def test_killed_while_it_was_reset_the_kubelet_is_not_left_stopped(
    node: Node, running: bool
) -> None:
    node.do(node.reset())
    if not running:
        node.pid = 0
    answer = step_executor.work(node.forget("03-reset"))
    assert answer["state"] == "done"
    assert node.pid
    assert ("runs again" in answer["reason"]) is not running
    assert step_record.unproven(node.root) == []
    node.broken = True
    node.pid = 0
    answer = step_executor.work(node.forget("03-reset"))
    assert answer["state"] == "failed"
    assert "did not start again" in answer["reason"]


def test_the_same_step_is_not_begun_twice(node: Node) -> None:
    assert node.do(node.reset())[0] == "proven"
    state, reason = node.do(node.reset())
    assert state == "failed"
    facts(reason, "begun before")
    params = {
        "run_id": RUN,
        "root": node.root,
        "lock": None,
        "check": False,
        "step": {**node.reset(), "code": ["KM301"]},
    }
    assert step_executor.work(params)["state"] == "done"  # the answer of the first


def test_under_the_lock_of_its_run_only(node: Node) -> None:
    node_lock.acquire(NEXT, {}, 900, root=node.root)
    params = {
        "run_id": RUN,
        "root": node.root,
        "lock": {"controller": None, "seconds": 60},
        "check": False,
        "step": {**node.reset(), "code": ["KM301"]},
    }
    before = node.state.read_bytes()
    assert step_executor.work(params)["state"] == "refused"
    assert node.commands == []
    assert node.state.read_bytes() == before


def test_check_mode_changes_nothing(node: Node) -> None:
    params = {
        "run_id": RUN,
        "root": node.root,
        "lock": None,
        "check": True,
        "step": {**node.reset(), "code": ["KM301"]},
    }
    assert step_executor.work(params)["state"] == "skipped"
    assert node.commands == []
    assert not Path(node.root).exists()


def test_a_lent_kubelet_that_was_not_healthy_in_time_does_not_run_on_by_words_that_nobody_knows(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the evidence would have lent arguments as its own, and the fault as repaired."""
    look = node._look

    def silent() -> Any:
        found = look()
        found.healthy = False
        return found

    monkeypatch.setattr(kubelet_restart, "Kubelet", silent)
    assert (
        node.do(node.lend())[0] == "rolled_back" and not node.lent() and WORD not in node.argv
    ) or not node.pid
    assert node.commands == ["daemon-reload", "restart", "daemon-reload", "restart"]


def test_a_reset_without_a_drain_is_for_a_kubelet_that_is_down(node: Node) -> None:
    node.do(node.lend())
    wanted = node.reset()
    wanted["expect"]["down"] = True
    state, why = node.do(wanted)
    assert state == "not_done"
    assert "was down, so that nothing was drained, and runs now" in why
    assert node.pid
    assert node.lent()


def test_a_unit_that_somebody_changed_is_not_loaded_unasked(node: Node) -> None:
    node.do(node.lend())
    node.unit["need_daemon_reload"] = True
    state, why = node.do(node.reset())
    assert state == "not_done"
    assert "systemctl daemon-reload" in why
    assert node.pid


@pytest.mark.parametrize(
    ("servers", "allow", "done"),
    [
        ([], [], True),
        (["10.0.0.1:6443"], [], False),
        (["10.0.0.1:6443"], ["single_control_plane"], True),
    ],
)
def test_a_control_plane_node_asks_for_another_one_at_the_last_moment(
    node: Node, monkeypatch: pytest.MonkeyPatch, servers: Any, allow: Any, done: bool
) -> None:
    node.do(node.lend())
    asked = []
    monkeypatch.setattr(preconditions, "own_servers", lambda everyone: servers)
    monkeypatch.setattr(preconditions, "usable", lambda params, dummy: asked.append(params) or [])
    state, why = node.do(
        {**node.reset(), "guard": {"allow": allow, "api_servers": ["10.0.0.1:6443"]}},
        kubeconfig="/root/mine.conf",
    )
    assert asked == ([{"kubeconfig": "/root/mine.conf"}] if servers and not allow else [])
    assert (state == "proven") is done
    assert done or "it is restarted only while another one serves" in why


def test_a_revert_of_a_reset_that_lent_nothing_touches_nothing(node: Node) -> None:
    assert node.do(node.reset())[0] == "proven"
    commands = list(node.commands)
    done = revert_run.reverted({"run_id": NEXT, "reverts": RUN, "root": node.root, "lock": None})
    assert done["error"] is None
    assert node.commands == commands
    assert {one["result"] for one in done["paths"]} == {"kept"}
    assert step_record.unproven(node.root) == []


def test_killed_before_its_state_was_moved(node: Node) -> None:
    wanted = node.reset()
    node.do(wanted)
    node.pid = 0
    node.state.write_text(json.dumps({"policyName": "none"}))
    answer = step_executor.work(node.forget("03-reset"))
    assert answer["state"] == "done"
    assert "that is judged again" in answer["reason"]
    assert step_record.unproven(node.root) == []


def test_systemctl_that_hangs(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*words: str) -> None:
        raise command.CommandError(f"systemctl {words[0]} did not end within 60 s")

    monkeypatch.setattr(kubelet_restart, "_systemctl", hang)
    assert node.do(node.lend())[0] == "failed"
    state, why = node.do(node.reset())
    assert state == "failed"
    assert "did not end within 60 s" in why
    assert node.policies() == ["none", "None"]


def test_one_that_is_about_to_end_is_not_taken_for_healthy(node: Node) -> None:
    """Over its state it answers healthz, and then ends."""
    node.pid, node.ends = FIRST, node.clock.time() + 0.3
    assert node.do(node.lend()) == ("proven", "")
    assert WORD in node.argv


def test_one_that_answers_and_is_not_to_be_seen_is_not_waited_for(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its healthz answers, and no process is found.

    The kubelet is in another PID namespace, or /proc is mounted with hidepid.
    """
    node.do(node.lend())
    look = node._look

    def hidden() -> Any:
        found = look()
        found.evidence["process"] = None
        return found

    monkeypatch.setattr(kubelet_restart, "Kubelet", hidden)
    assert cpu_manager_reset._settled("w1").healthy


def test_an_interrupted_reset_whose_kubelet_is_about_to_end(node: Node) -> None:
    """It answers while it reads the state that will end it: the reset has not been done."""
    wanted = node.reset()
    node.do(wanted)
    node.state.write_text(json.dumps({"policyName": "none"}))
    node.pid, node.ends = FIRST, node.clock.time() + 0.3
    answer = step_executor.work(node.forget("03-reset"))
    assert answer["state"] == "done"
    assert "was not moved yet" in answer["reason"]
    assert not node.pid


def test_a_drop_in_that_cannot_be_taken_back_now_is_taken_back_by_the_next_run(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If its commit fails, the journal's entry stays open, and so does the step.

    Otherwise the managed file would refuse the next start.
    """

    def full(*dummy: Any, **more: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as during:
        during.setattr(journal_entry.Entry, "commit", full)
        state, why = node.do(node.lend())
    assert state == "failed"
    assert "not taken back" in why
    assert "KM902" in why
    assert node.env.exists()
    assert step_record.read(RUN, "01-start", node.root)["state"] == step_record.AWAITED
    with monkeypatch.context() as during:  # neither can the next run: then the one after it does
        during.setattr(
            cpu_manager_reset, "_remove_arguments", lambda *dummy, **more: "No space left on device"
        )
        again = step_executor.work(node.forget("01-start"))
    assert again["state"] == "failed"
    assert "No space left" in again["reason"]
    assert step_record.read(RUN, "01-start", node.root)["state"] == step_record.AWAITED
    done = step_executor.work(node.forget("01-start"))
    assert done["state"] == "done", done
    assert "its drop-in is gone again" in done["reason"], done
    assert not node.env.exists(), done
    assert node.do(node.lend(), "20261121T110000Z-7a8b9c")[0] == "proven"
