# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service restarted for its limit.

A drop-in in a folder of the test, processes that really run, and a systemd that ends and begins
them.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import step_claim
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import devices
from ansible_collections.kubemend.remediation.plugins.module_utils.state import step_record
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    service_restart,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    service_limit,
    service_start,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    run as revert_run,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    command,
    procfs,
    systemd,
)
from tests.unit.plugins.module_utils.steps.handlers.test_service_limit import (
    APP,
    GROUP,
    NEXT,
    OURS,
    RUN,
    SLEEPS,
    Node,
)
from tests.unit.support import waiting
from tests.unit.support.facts import facts

OTHER = "b.service"


class Systemd(Node):
    """A node with app.service, whose process systemd restarts with what the drop-in says.

    comes_up: by whether the managed line is there, whether the service comes up
    """

    def __init__(self, path, monkeypatch, begun):
        super().__init__(path, monkeypatch, begun.pid)
        self.begun, self.asked, self.does, self.gives = [begun], [], True, None
        self.comes_up = {True: True, False: True}
        self.fragment = path / APP
        self.fragment.write_text("[Service]\n")
        os.utime(self.fragment, (1, 1))
        self.block.update(
            {
                "SubState": ["running"],
                "Result": ["success"],
                "Type": ["simple"],
                "KillMode": ["control-group"],
                "NeedDaemonReload": ["no"],
                "TimeoutStopUSec": ["1min 30s"],
                "FragmentPath": [str(self.fragment)],
                "MainPID": [str(begun.pid)],
            }
        )
        self.others = {OTHER: {"Id": [OTHER], "ActiveState": ["active"]}}
        self.held = set()
        monkeypatch.setattr(systemd, "show", self.show)
        monkeypatch.setattr(command, "complaint", self.complaint)
        monkeypatch.setattr(devices, "running", lambda *dummy: self.held)
        monkeypatch.setattr(devices, "names", sorted)
        for module, name, value in (
            (service_start, "STABLE", 0.2),
            (service_start, "PAUSE", 0.05),
            (service_restart, "SECONDS", 3),
            (service_limit, "SETTLED", 0.3),
        ):
            monkeypatch.setattr(module, name, value)

    def show(self, names, dummy_properties=(), dummy_seconds=5):
        blocks = dict(self.others, **{APP: dict(self.block)})
        return {name: blocks[name] for name in names if name in blocks}

    def complaint(self, argv, dummy_seconds):
        self.asked.append(argv[1])
        if argv[1] == "restart":
            if not self.does:
                return "Failed to restart app.service: Access denied"
            self.end()
            if self.comes_up[self.path.exists()]:
                self.begin()
        return ""

    def end(self):
        self.begun[-1].kill()
        self.begun[-1].wait()
        self.block.update(
            {
                "ActiveState": ["failed"],
                "SubState": ["failed"],
                "Result": ["exit-code"],
                "MainPID": ["0"],
            }
        )

    def begin(self):
        soft = self.gives or (50 if self.path.exists() else 20)
        self.begun.append(
            subprocess.Popen(
                [sys.executable, "-c", SLEEPS.replace("20", str(soft))], stdout=subprocess.PIPE
            )
        )
        self.begun[-1].stdout.readline()
        self.block.update(
            {
                "ActiveState": ["active"],
                "SubState": ["running"],
                "Result": ["success"],
                "MainPID": [str(self.begun[-1].pid)],
            }
        )

    def now(self):
        """Give the pid of the main process, and its soft limit."""
        pid = int(self.block["MainPID"][0])
        return pid, pid and service_limit.nofile(pid)[0]

    def restart(self, *allow, line="50", **more):
        step = self.step(line=line)
        step["guard"] = {"allow": ["service_restart", *allow]}
        step["change"]["restart"] = 50
        return self.do(step, **more)

    def interrupted(self):
        """Return what the next run makes of a step that was killed before it wrote its end."""
        return self.forget()


@pytest.fixture
def node(tmp_path, monkeypatch):
    begun = subprocess.Popen([sys.executable, "-c", SLEEPS], stdout=subprocess.PIPE)
    begun.stdout.readline()
    made = Systemd(tmp_path, monkeypatch, begun)
    yield made
    for one in made.begun:
        one.kill()
        one.wait()
        one.stdout.close()


def untouched(node):
    return not node.folder.exists() and node.asked == [] and node.now() == (node.pid, 20)


def test_written_restarted_and_the_new_process_has_it(node):
    answer = node.restart()
    pid, soft = node.now()
    assert (answer["state"], answer["reason"], answer["changed"], soft) == (
        "done",
        "",
        True,
        50,
    )
    assert pid != node.pid
    assert node.path.read_bytes() == OURS % 50
    assert node.asked == [
        "daemon-reload",
        "reset-failed",
        "restart",
    ]
    assert answer["seen"] == {"pid": pid, "ticks": procfs.ticks(pid), "line": "50"}


def test_a_file_that_says_it_already_is_loaded(node):
    node.folder.mkdir()
    node.path.write_bytes(OURS % 50)
    node.block["NeedDaemonReload"] = ["yes"]
    assert node.restart(line=None)["state"] == "done"
    assert node.now()[1] == 50


def test_our_own_file_is_nobody_elses_change(node):
    """Written by a run before, and loaded by somebody's daemon-reload since."""
    node.folder.mkdir()
    node.path.write_bytes(OURS % 50)
    os.utime(node.path, (2**31, 2**31))
    node.block["DropInPaths"] = [str(node.path)]
    assert node.restart(line=None)["state"] == "done"
    assert node.now()[1] == 50


def test_in_check_mode_it_only_looks(node):
    assert node.restart(check=True)["state"] == "skipped"
    assert untouched(node)
    node.block["Type"] = ["oneshot"]
    assert node.restart(check=True)["state"] == "refused"
    assert untouched(node)


def test_one_that_does_not_come_up_is_started_as_it_was(node):
    node.comes_up[True] = False
    answer = node.restart()
    assert answer["state"] == "rolled_back"
    assert "is not well: it is failed" in answer["reason"]
    assert node.now()[1] == 20
    assert not node.path.exists()
    assert node.asked[-3:] == [
        "daemon-reload",
        "reset-failed",
        "restart",
    ]


def test_one_that_does_not_come_up_at_all_is_told_as_down(node):
    node.comes_up = {True: False, False: False}
    answer = node.restart()
    assert answer["state"] == "failed"
    assert answer["reason"].startswith("component down: app.service of w1")
    assert "journalctl -u app.service" in answer["reason"]
    assert not node.path.exists()


def test_a_limit_that_systemd_does_not_give_is_taken_back(node):
    node.gives = 30
    answer = node.restart()
    assert answer["state"] == "rolled_back"
    assert "may have 30 files open, not 50" in answer["reason"]
    assert not node.path.exists()


def test_a_limit_that_nobody_can_read_is_no_proof(node, monkeypatch):
    monkeypatch.setattr(service_restart.procfs, "rlimit", lambda *_more: None)
    answer = node.restart()
    assert answer["state"] == "rolled_back"
    assert "may have open cannot be read" in answer["reason"]
    assert not node.path.exists()


@pytest.mark.parametrize("name", ["etcd.service", "dbus.service"])
def test_what_hangs_on_it_is_asked_before_whether_it_is_there(node, name):
    with pytest.raises(service_restart.PreconditionFailed, match="more than a service hangs on it"):
        service_restart.check(name, "w1", ["service_restart"], str(node.path), [])


def test_a_restart_that_systemd_refuses_leaves_the_former_process(node):
    node.does = False
    answer = node.restart()
    assert answer["state"] == "rolled_back"
    assert (
        f"the former process (pid {node.pid:d}) still runs; Failed to restart" in answer["reason"]
    )
    assert node.now() == (node.pid, 20)
    assert not node.path.exists()
    assert node.asked[-1] == "daemon-reload"


def test_one_that_is_up_without_a_main_process_is_not_well(node, monkeypatch):
    def exits(argv, seconds):
        told = node.complaint(argv, seconds)
        if argv[1] == "restart" and node.path.exists():
            node.end()
            node.block.update(
                {"ActiveState": ["active"], "SubState": ["exited"], "Result": ["success"]}
            )
        return told

    monkeypatch.setattr(command, "complaint", exits)
    answer = node.restart()
    assert answer["state"] == "rolled_back"
    assert "it is active (exited, result success)" in answer["reason"]
    assert node.now()[1] == 20


def test_what_else_our_file_held_is_there_again(node):
    node.folder.mkdir()
    node.path.write_bytes(OURS % 30)
    node.comes_up[True] = False
    assert node.restart()["state"] == "failed"
    assert node.path.read_bytes() == OURS % 30


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (
            {"ActiveState": ["inactive"], "MainPID": ["0"]},
            "it has no main process that runs (inactive)",
        ),
        ({"MainPID": ["0"]}, "no main process"),
        ({"ActiveState": ["deactivating"]}, "it has no main process that runs (deactivating)"),
        ({"RefuseManualStop": ["yes"]}, "refuses to be stopped"),
        ({"RefuseManualStart": ["yes"]}, "refuses to be stopped"),
        ({"Type": ["oneshot"]}, "Type=oneshot"),
        (
            {"TimeoutStopUSec": ["5min"]},
            "than the 180 s that are waited for here (TimeoutStopUSec=5min)",
        ),
        ({"TimeoutStopUSec": ["infinity"]}, "(TimeoutStopUSec=infinity)"),
        ({"TimeoutStopUSec": [""]}, "(TimeoutStopUSec=)"),
        ({"RequisiteOf": [OTHER]}, "would be stopped with it"),
        ({"PropagatesStopTo": [OTHER]}, "would be stopped with it"),
        ({"RequiredBy": ["multi-user.target b.service"]}, "b.service would be stopped with it"),
        ({"BoundBy": [OTHER]}, "b.service would be stopped with it"),
        ({"ConsistsOf": [OTHER]}, "b.service would be stopped with it"),
    ],
)
def test_what_forbids_a_restart(node, block, said):
    node.block.update(block)
    before = node.now()
    answer = node.restart()
    assert answer["state"] == "refused"
    assert said in answer["reason"]
    assert "without service_restart in kubemend_allow its limit is written" in answer["reason"]
    assert not node.folder.exists()
    assert node.asked == []
    assert node.now() == before


def test_those_that_follow_it_and_do_not_run_are_no_hindrance(node):
    node.block["RequiredBy"] = [f"multi-user.target {OTHER}"]
    node.others[OTHER]["ActiveState"] = ["inactive"]
    assert node.restart()["state"] == "done"


def test_nobody_says_who_follows_it(node, monkeypatch):
    node.block["BoundBy"] = [OTHER]

    def silent(names, *dummy):
        if OTHER in names:
            raise command.CommandError("it took 5 s")
        return node.show(names)

    monkeypatch.setattr(systemd, "show", silent)
    assert "does not say which units would be stopped with it" in node.restart()["reason"]
    assert untouched(node)


def member(node, pid):
    folder = node.proc / str(pid)
    folder.mkdir()
    (folder / "cgroup").write_text(f"0::{GROUP}\n")


def test_a_program_is_not_ended_by_its_own_restart(node):
    member(node, os.getpid())
    assert "this program runs in it" in node.restart()["reason"]
    assert untouched(node)
    node.block["KillMode"] = ["process"]
    assert node.restart(run_id=NEXT)["state"] == "done"


@pytest.mark.parametrize(
    ("mode", "state"),
    [("control-group", "refused"), ("mixed", "refused"), ("process", "done"), ("none", "done")],
)
def test_containers_that_would_end_with_it(node, tmp_path, mode, state):
    shim = tmp_path / "containerd-shim-runc-v2"
    shim.symlink_to("/bin/sleep")
    with subprocess.Popen([str(shim), "600"]) as held:
        # Popen comes back a moment before
        assert waiting.until(
            lambda: Path(f"/proc/{held.pid:d}/comm").read_text().startswith("containerd-shim")
        )
        member(node, held.pid)
        node.block["KillMode"] = [mode]
        answer = node.restart()
        held.kill()
    assert answer["state"] == state
    assert (
        state == "done"
        or f"containers would end with it (KillMode={mode}): containerd-shim" in answer["reason"]
    )


@pytest.mark.parametrize(
    ("config", "argv", "spared"),
    [
        (None, [], False),
        ("{}", [], False),
        ('{"live-restore": true}', [], True),
        ('{"live-restore": "true"}', [], False),
        ("[]", [], False),
        ("{", [], False),
        ('{"live-restore": true}', ["--live-restore=false"], False),
        (None, ["--live-restore"], True),
        (None, ["--live-restore=true"], True),
    ],
)
def test_docker_spares_containers_only_with_live_restore(
    tmp_path, monkeypatch, config, argv, spared
):
    path = tmp_path / "daemon.json"
    if config is not None:
        path.write_text(config)
    monkeypatch.setattr(service_restart, "DOCKER_CONFIG", str(path))
    monkeypatch.setattr(procfs, "started_at", lambda pid: 2.0**31)
    monkeypatch.setattr(procfs, "argv", lambda pid: ["dockerd", *argv])
    assert (service_restart._lost_by_docker("docker.service", 5) is None) == spared
    assert service_restart._lost_by_docker(APP, 5) is None


def test_devices_of_running_pods_are_not_risked_by_the_reload(node):
    node.held = {"uid-1"}
    answer = node.restart()
    assert answer["state"] == "refused"
    assert "pods with devices run on w1 (uid-1)" in answer["reason"]
    assert untouched(node)
    assert node.restart("kubelet_restart", run_id=NEXT)["state"] == "done"


def test_somebody_elses_changes_are_not_loaded(node):
    os.utime(node.fragment)
    os.utime(node.fragment, (2**31, 2**31))
    answer = node.restart()
    assert answer["state"] == "refused"
    assert f"{node.fragment} is newer than the process" in answer["reason"]
    assert untouched(node)
    assert node.restart("pending_changes", run_id=NEXT)["state"] == "done"


def test_a_unit_that_somebody_changed_is_not_loaded(node):
    node.block["NeedDaemonReload"] = ["yes"]
    assert "its unit was changed and not loaded" in node.restart()["reason"]
    assert untouched(node)


@pytest.mark.parametrize("line", ["50", None])
@pytest.mark.parametrize("again", [False, True])
def test_killed_before_systemd_was_asked(node, monkeypatch, line, again):
    """Restart no service that began again by itself meanwhile, with the limit systemd knows."""
    with monkeypatch.context() as patched:
        patched.setattr(
            service_limit, "_restarted", lambda step, record: (step_record.PROVEN, None, {})
        )
        node.restart(line=line)
    if again:
        node.end()
        node.gives = 20
        node.begin()
    answer, now = node.interrupted(), node.now()
    assert answer["state"] == "done"
    assert "was not restarted" in answer["reason"]
    assert step_record.unproven(node.root) == []
    assert now[1] == 20
    assert (now[0] != node.pid) == again
    assert node.path.exists() == (line is not None)
    assert node.asked == []


def test_killed_before_systemd_began(node):
    node.does = False
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(service_restart, "wait", lambda *_more: (1, None))
        node.restart()
    answer = node.interrupted()
    assert answer["state"] == "done"
    assert "was not restarted: what is written counts from its next start" in answer["reason"]
    assert node.now() == (node.pid, 20)
    assert node.path.exists()
    assert step_record.unproven(node.root) == []


def test_nothing_is_restarted_that_no_later_run_would_know_of(node, monkeypatch):
    monkeypatch.setattr(step_claim, "tell", lambda *_more: None)
    answer = node.restart()
    assert answer["state"] == "rolled_back"
    assert "because that cannot be recorded" in answer["reason"]
    assert node.now() == (node.pid, 20)
    assert not node.path.exists()
    assert "restart" not in node.asked


def test_one_that_somebody_stopped_since_stays_so(node):
    node.restart()
    node.end()
    node.block.update({"ActiveState": ["inactive"], "SubState": ["dead"], "Result": ["success"]})
    before = list(node.asked)
    answer = node.interrupted()
    assert "was stopped since, and stays so" in answer["reason"]
    assert node.asked == before
    assert step_record.unproven(node.root) == []


def test_one_that_runs_with_less_is_not_restarted_by_a_later_run(node):
    node.restart()
    node.end()
    node.gives = 30
    node.begin()
    before = list(node.asked)
    answer = node.interrupted()
    assert "may have 30 files open, not 50: the file counts from its next start" in answer["reason"]
    assert node.asked == before
    assert node.now()[1] == 30


def test_a_later_run_risks_no_devices_either(node):
    node.restart()
    node.end()
    node.comes_up[True], node.held = False, {"uid-1"}
    before = list(node.asked)
    answer = node.interrupted()
    assert answer["state"] == "failed"
    assert "pods with devices run on w1" in answer["reason"]
    assert node.asked == before
    # and the run after that tries again
    assert [one["step"] for one in step_record.unproven(node.root)] == ["01-raise"]


def test_one_that_takes_its_time_to_stop_is_not_said_to_run_as_before(node, monkeypatch):
    def stopping(argv, seconds):
        node.asked.append(argv[1])
        if argv[1] == "restart":
            node.block.update({"ActiveState": ["deactivating"], "SubState": ["stop-sigterm"]})
        return ""

    monkeypatch.setattr(command, "complaint", stopping)
    answer = node.restart()
    assert answer["state"] == "failed"
    assert "is stopping still: systemd starts it then with that" in answer["reason"]
    assert not node.path.exists()
    assert node.asked[-1] == "daemon-reload"
    assert node.asked.count("restart") == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1min 30s", 90),
        ("5s", 5),
        ("500ms", 0.5),
        ("1h 2min", 3720),
        ("1min 30.5s", 90.5),
        ("infinity", None),
        ("", None),
        ("5 apples", None),
        ("5", None),
    ],
)
def test_time_spans_as_systemd_prints_them(text, seconds):
    assert service_restart.seconds_of(text) == seconds


def test_a_limit_that_is_not_given_costs_no_second_restart(node):
    node.gives = 30
    assert node.restart()["state"] == "rolled_back"
    assert node.asked.count("restart") == 1
    assert node.now()[1] == 30


def test_a_dropin_that_is_read_after_our_file_is_seen_once_that_is_there(node, tmp_path):
    node.folder.mkdir()
    node.path.write_bytes(OURS % 50)
    other = tmp_path / "zz.conf"
    other.write_text("[Service]\nLimitNOFILE=30\n")
    os.utime(other, (1, 1))
    node.block["DropInPaths"] = [f"{node.path} {other}"]
    answer = node.restart(line=None)
    assert answer["state"] == "refused"
    assert "is read after our file and says LimitNOFILE=30" in answer["reason"]
    assert node.asked == []


def test_a_dropin_of_somebody_else_that_systemd_has_not_read_is_named(node, tmp_path, monkeypatch):
    node.folder.mkdir()
    node.path.write_bytes(OURS % 50)
    (node.folder / "50-x.conf").write_text("[Service]\nExecStart=\nExecStart=/bin/false\n")
    node.block["NeedDaemonReload"] = ["yes"]
    monkeypatch.setattr(service_restart, "FOLDERS", (str(tmp_path),))
    answer = node.restart(line=None)
    assert answer["state"] == "refused"
    assert "%s is not loaded yet" % (node.folder / "50-x.conf") in answer["reason"]
    assert node.asked == []


@pytest.mark.parametrize(
    ("name", "path", "argv"),
    [
        ("containerd.service", "containerd/config.toml", []),
        ("crio.service", "crio/crio.conf.d/10-x.conf", []),
        ("ssh.service", "ssh/sshd_config", []),
        ("sshd.service", "ssh/sshd_config.d/10-x.conf", []),
        ("ssh.service", "default/ssh", []),
        ("app@one.service", "app.conf", []),
        ("app.service", "other/place.yml", ["app", "--config={etc}/other/place.yml"]),
        ("app.service", "other/place.yml", ["app", "-c", "{etc}/other/place.yml"]),
    ],
)
def test_what_a_program_reads_as_a_rule(tmp_path, monkeypatch, name, path, argv):
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("x")
    monkeypatch.setattr(procfs, "argv", lambda pid: [word.format(etc=tmp_path) for word in argv])
    assert service_restart.configuration(name, 5, str(tmp_path)) == [str(file)]


def test_its_own_configuration_that_somebody_changed_is_not_loaded(node, tmp_path, monkeypatch):
    file = tmp_path / "config.toml"
    file.write_text("x")
    os.utime(file, (2**31, 2**31))
    monkeypatch.setattr(service_restart, "configuration", lambda name, pid: [str(file)])
    assert f"{file} is newer than the process" in node.restart()["reason"]
    assert untouched(node)


def test_docker_with_a_file_that_it_has_not_read_does_not_spare(tmp_path, monkeypatch):
    path = tmp_path / "daemon.json"
    path.write_text('{"live-restore": true}')
    monkeypatch.setattr(service_restart, "DOCKER_CONFIG", "/nowhere")
    monkeypatch.setattr(procfs, "argv", lambda pid: ["dockerd", "--config-file", str(path)])
    for started, spared in ((2.0**31, True), (5.0, False), (None, False)):
        monkeypatch.setattr(procfs, "started_at", lambda pid, started=started: started)
        assert (service_restart._lost_by_docker("docker.service", 5) is None) == spared


def test_a_revert_says_what_the_new_process_keeps(node):
    node.restart()
    pid = node.now()[0]
    for by, allow in ((NEXT, []), ("20261121T110000Z-aaaaaa", ["revert_runtime"])):
        done = revert_run.reverted(
            {"run_id": by, "reverts": RUN, "root": node.root, "lock": None, "allow": allow}
        )
        assert done["error"] is None
        last = done["paths"][-1]
        assert last["result"] == "kept"
        facts(
            last["reason"],
            "[50, 60]",
            "systemctl daemon-reload",
            "systemctl restart app.service",
            "revert",
        )
    assert not node.path.exists()
    assert node.now() == (pid, 50)


def test_killed_while_it_comes_up(node):
    node.restart()
    answer = node.interrupted()
    assert answer["state"] == "done"
    assert f"runs with it (pid {node.now()[0]:d})" in answer["reason"]
    assert step_record.unproven(node.root) == []


def test_killed_while_it_does_not_come_up(node):
    node.restart()
    node.end()
    node.comes_up[True] = False
    answer = node.interrupted()
    assert "was restarted by a run that was interrupted, and is not well" in answer["reason"]
    assert not node.path.exists()
    assert node.now()[1] == 20
    assert (
        json.loads((Path(node.root) / "journal" / RUN / "proof-01-raise.json").read_text())["state"]
        == step_record.ROLLED_BACK
    )


def test_killed_on_its_way_back(node):
    node.restart()
    node.path.unlink()
    node.end()
    answer = node.interrupted()
    assert "and it runs with that" in answer["reason"]
    assert node.now()[1] == 20
    assert step_record.unproven(node.root) == []


def test_killed_at_the_end_of_its_way_back(node):
    node.comes_up[True] = False
    node.restart()
    answer = node.interrupted()
    assert (
        f"is as it was, and app.service runs with that (pid {node.now()[0]:d})" in answer["reason"]
    )
    assert node.now()[1] == 20


def test_a_process_that_ends_again_and_again_is_not_well(node, monkeypatch):
    def mortal(argv, seconds):
        told = node.complaint(argv, seconds)
        if argv[1] == "restart" and node.path.exists():
            os.kill(node.now()[0], signal.SIGKILL)
            node.block.update(
                {"ActiveState": ["activating"], "SubState": ["auto-restart"], "MainPID": ["0"]}
            )
        return told

    monkeypatch.setattr(command, "complaint", mortal)
    answer = node.restart()
    assert answer["state"] == "rolled_back"
    assert "it is activating (auto-restart" in answer["reason"]
    assert node.now()[1] == 20
