# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Levels raised for a limited time.

The service that puts them back is there first, and gone last.
"""

import base64
import calendar
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.capture import (
    klog_level,
    level_by_restart,
    level_window,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.changes import (
    durable_files,
    journal_entry,
    node_lock,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    registry,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    journal as node_journal,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    level_target,
    lock,
    storage,
    verbosity_expiry,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import command, detached
from tests.unit.support.fake_verbosity import KUBELET, NEXT, RUN, SCHEDULER, Killed, Levels

MANAGER = "level:kube-controller-manager"
UNIT = f"kubemend-levels-{RUN}.service"
PROGRAM = b"print('put back')\n"
LOST = klog_level.LevelError("it does not answer")


class Ended(Exception):
    """Slept for longer than a test waits."""


class Host(Levels):
    """Beside the levels: systemd, and a clock that only sleeping moves."""

    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(base / "kubemend", monkeypatch)
        self.units = base / "system"
        self.units.mkdir()
        self.state = "ActiveState=active"
        self.commands: list[list[str]] = []
        self.boot, self.uptime, self.naps = "boot-1", 5000.0, 100
        self.slept: list[float] = []
        self.at_sleep = lambda: None
        monkeypatch.setattr(level_window, "UNITS", str(self.units))
        monkeypatch.setattr(level_window, "STARTS", 0)
        monkeypatch.setattr(command, "run", self._run)
        self.init = 7  # when the init of this node started
        monkeypatch.setattr(storage, "clock", lambda: [self.boot, self.uptime])
        monkeypatch.setattr(verbosity_expiry.step_record, "ticks", lambda pid: {1: self.init}[pid])
        monkeypatch.setattr(level_window.time, "sleep", self._sleep)
        node_lock.acquire(RUN, {}, 600, root=self.root)

    def _run(self, argv: list[str], *dummy: Any, **more: Any) -> str:
        self.commands.append(argv)
        if argv[1] == "start":
            # it has begun its work, and says so as expire() does
            if self.state == "ActiveState=active":
                (
                    Path(self.root)
                    / "levels"
                    / f"{argv[2][len('kubemend-levels-') : -len('.service')]}.armed"
                ).touch()
            raise command.Silent("it said nothing")
        return self.state

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.uptime += seconds
        self.at_sleep()
        if len(self.slept) >= self.naps:
            raise Ended

    def params(self, *targets: tuple[str, int], run_id: str = RUN, **more: Any) -> dict[str, Any]:
        wanted = [
            {"real": real, "former": former, "level": 4}
            for real, former in targets or ((SCHEDULER, 2), (KUBELET, 0))
        ]
        return {
            "state": "raised",
            "run_id": run_id,
            "root": self.root,
            "targets": wanted,
            "seconds": 60,
            "lock": {"seconds": 300},
            "program": base64.b64encode(PROGRAM).decode("ascii"),
            **more,
        }

    def armed(self, run_id: str = RUN) -> list[bool]:
        """Give the unit, the link that enables it, the program, and its time."""
        unit = f"kubemend-levels-{run_id}.service"
        return [
            path.exists()
            for path in (
                self.units / unit,
                self.units / "multi-user.target.wants" / unit,
                Path(self.root) / "levels" / f"{run_id}.py",
                Path(self.root) / "levels" / f"{run_id}.json",
            )
        ]

    def until(self) -> dict[str, Any]:
        return json.loads((Path(self.root) / "levels" / f"{RUN}.json").read_text())


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


def states(answer: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["real"], one["state"]) for one in answer["targets"]]


def test_the_service_is_there_before_the_first_level_is_raised(host: Host) -> None:
    seen: list[Any] = []
    host.at_put = lambda real: seen.append((host.armed(), host.until(), list(host.commands)))
    answer = level_window.raise_levels(host.params())
    assert answer == {
        "targets": [
            {"real": SCHEDULER, "state": "raised", "reason": ""},
            {"real": KUBELET, "state": "raised", "reason": ""},
        ],
        "error": None,
    }
    armed, until, commands = seen[0]
    assert armed == [True] * 4
    assert commands == [["systemctl", "start", UNIT]]
    # should we be killed now
    assert until == {
        "boot": "boot-1/7",
        "uptime": 5000.0 + 60 + level_window.budget([{}, {}]),
        "complete": False,
    }
    assert host.until() == {"boot": "boot-1/7", "uptime": 5060.0, "complete": True}
    assert host.armed() == [True] * 4
    text = (host.units / UNIT).read_text()
    program = f"{host.root}/levels/{RUN}.py"
    assert f"-I -S {program}\n" in text
    assert "WantedBy=multi-user.target" in text
    assert "Restart=on-failure" in text
    assert Path(program).read_bytes() == PROGRAM
    assert str(Path(host.units / "multi-user.target.wants" / UNIT).readlink()) == str(
        host.units / UNIT
    )
    assert not any("daemon-reload" in argv or "enable" in argv for argv in host.commands)
    assert lock.read(host.root)["remaining"] == 300


@pytest.mark.parametrize(
    "state", ["ActiveState=inactive", "ActiveState=failed", "ActiveState=activating", ""]
)
def test_without_the_service_nothing_is_raised(host: Host, state: str) -> None:
    host.state = state
    answer = level_window.raise_levels(host.params())
    assert states(answer) == [(SCHEDULER, "refused"), (KUBELET, "refused")]
    assert "does not start" in answer["error"]
    assert UNIT in answer["error"]
    assert answer["targets"][0]["reason"] == answer["error"]
    assert not host.asked
    assert host.armed() == [False] * 4
    assert host.results() == []


def test_systemctl_that_fails_is_no_service_either(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(argv: list[str], *dummy: Any) -> str:
        raise command.CommandError("systemctl was not found")

    monkeypatch.setattr(command, "run", fails)
    answer = level_window.raise_levels(host.params())
    assert "systemctl was not found" in answer["error"]
    assert not host.asked
    assert host.armed() == [False] * 4


def test_where_the_service_cannot_be_written_nothing_is_raised(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(level_window, "UNITS", "/proc/nowhere")
    answer = level_window.raise_levels(host.params())
    assert "cannot be written to /proc/nowhere" in answer["error"]
    assert host.root not in answer["error"]
    assert not host.asked
    assert not (Path(host.root) / "levels").exists()  # nor is half of it left


@pytest.mark.parametrize(
    "lose",
    [
        lambda host: node_lock.release(RUN, host.root),
        lambda host: node_lock.acquire(NEXT, {}, 60, take=RUN, root=host.root),
    ],
)
def test_without_the_lock_nothing_is_raised(host: Host, lose: Any) -> None:
    lose(host)
    answer = level_window.raise_levels(host.params())
    assert answer["error"]
    assert not host.asked
    assert host.armed() == [False] * 4
    assert not host.commands


def test_a_lock_that_has_run_out_is_none(host: Host) -> None:
    host.uptime += 601
    answer = level_window.raise_levels(host.params())
    assert "has run out" in answer["error"]
    assert not host.asked
    assert host.armed() == [False] * 4


def test_a_lock_that_is_gone_on_the_way_ends_the_raising(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    raise_one = level_window._raise_one

    def last(*what: Any) -> Any:
        answer = raise_one(*what)
        node_lock.release(RUN, host.root)
        return answer

    monkeypatch.setattr(level_window, "_raise_one", last)
    answer = level_window.raise_levels(host.params())
    assert states(answer) == [(SCHEDULER, "raised"), (KUBELET, "refused")]
    assert "does not hold the lock" in answer["targets"][1]["reason"]
    assert host.raised() == [SCHEDULER]
    assert host.armed() == [True] * 4
    assert "does not hold the lock" in answer["error"]


def test_all_refused_leave_no_service(host: Host) -> None:
    host.answers.update({SCHEDULER: (404, ""), KUBELET: (403, "Forbidden")})
    answer = level_window.raise_levels(host.params())
    assert states(answer) == [(SCHEDULER, "refused"), (KUBELET, "refused")]
    assert "HTTP 403 Forbidden" in answer["targets"][1]["reason"]
    assert host.armed() == [False] * 4
    assert host.commands[-1] == ["systemctl", "stop", "--no-block", UNIT]
    assert host.results() == ["not_done"] * 2


def test_one_refused_keeps_no_other_from_being_raised(host: Host) -> None:
    host.answers[SCHEDULER] = 404, ""
    assert states(level_window.raise_levels(host.params())) == [
        (SCHEDULER, "refused"),
        (KUBELET, "raised"),
    ]
    assert host.armed() == [True] * 4
    assert host.raised() == [KUBELET]


def test_what_was_perhaps_raised_keeps_its_service(host: Host) -> None:
    """The answer was lost: the level may have been set, and the controller may never come back."""
    host.answers[SCHEDULER] = LOST
    assert states(level_window.raise_levels(host.params((SCHEDULER, 2)))) == [(SCHEDULER, "unsure")]
    assert host.armed() == [True] * 4
    assert host.results() == [None]
    del host.answers[SCHEDULER]
    assert states(level_window.restore(host.params())) == [(SCHEDULER, "restored")]
    assert host.results() == ["not_done"]
    assert list(host.puts())[-1] == (SCHEDULER, 2)
    assert host.armed() == [False] * 4


def test_a_disk_that_fills_up_keeps_what_was_raised_and_its_service(host: Host) -> None:
    host.answers[KUBELET] = OSError(28, "No space left on device")
    assert states(level_window.raise_levels(host.params())) == [
        (SCHEDULER, "raised"),
        (KUBELET, "unsure"),
    ]
    assert host.armed() == [True] * 4
    assert host.results() == ["committed", None]


def test_a_failure_on_the_way_keeps_what_was_raised_and_its_service(host: Host) -> None:
    host.answers[KUBELET] = RuntimeError("nobody knows")
    answer = level_window.raise_levels(host.params())
    assert states(answer) == [(SCHEDULER, "raised"), (KUBELET, "unsure")]
    assert "RuntimeError: nobody knows" in answer["error"]
    assert host.armed() == [True] * 4
    assert host.until()["complete"] is False
    del host.answers[KUBELET]
    assert [state for dummy, state in states(level_window.restore(host.params()))] == [
        "restored"
    ] * 2
    assert host.armed() == [False] * 4


def test_what_another_run_raised_is_refused_and_named(host: Host) -> None:
    level_window.raise_levels(host.params((SCHEDULER, 2)))
    node_lock.release(RUN, host.root)
    node_lock.acquire(NEXT, {}, 60, root=host.root)
    answer = level_window.raise_levels(host.params(run_id=NEXT))
    assert states(answer) == [(SCHEDULER, "refused"), (KUBELET, "raised")]
    reason = answer["targets"][0]["reason"]
    assert f"kube-scheduler was raised by run {RUN} and not put back yet" in reason
    assert f"kubemend_run_id={RUN}" in reason
    assert list(host.puts()).count((SCHEDULER, 4)) == 1
    # each its own
    assert states(level_window.restore(host.params(run_id=NEXT))) == [(KUBELET, "restored")]
    assert host.raised() == [SCHEDULER]
    assert host.armed() == [True] * 4
    assert host.armed(NEXT) == [False] * 4


def test_putting_back_is_idempotent_and_needs_no_lock(host: Host) -> None:
    level_window.raise_levels(host.params())
    node_lock.release(RUN, host.root)
    node_lock.acquire(NEXT, {}, 60, root=host.root)
    answer = level_window.restore({"run_id": RUN, "root": host.root})
    assert states(answer) == [(SCHEDULER, "restored"), (KUBELET, "restored")]
    assert answer["error"] is None
    assert (host.levels[SCHEDULER], host.levels[KUBELET]) == (2, 0)
    assert host.armed() == [False] * 4
    assert host.commands[-1] == ["systemctl", "stop", "--no-block", UNIT]
    asked = len(host.asked)
    assert level_window.restore({"run_id": RUN, "root": host.root}) == {
        "targets": [],
        "error": None,
    }
    assert len(host.asked) == asked


def test_what_is_back_and_cannot_be_recorded_is_back(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: the level itself is down, and the service stays until the journal says so."""
    level_window.raise_levels(host.params((SCHEDULER, 2)))
    begin = journal_entry.begin

    def full(*dummy: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal_entry, "begin", full)
    (one,) = level_window.restore(host.params())["targets"]
    assert (one["state"], host.levels[SCHEDULER]) == ("restored", 2)
    assert "the level of kube-scheduler is back, but" in one["reason"]
    assert f"{host.root}/journal/{RUN}" in one["reason"]
    assert "space" in one["reason"]
    assert host.armed() == [True] * 4
    assert host.raised() == [SCHEDULER]
    monkeypatch.setattr(journal_entry, "begin", begin)
    assert level_window.restore(host.params())["targets"][0]["reason"] == ""
    assert host.armed() == [False] * 4


def test_the_service_does_not_stop_itself(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    level_window.raise_levels(host.params())
    text = level_window.files.text
    monkeypatch.setattr(
        level_window.files,
        "text",
        lambda path: f"0::/system.slice/{UNIT}\n" if path == "/proc/self/cgroup" else text(path),
    )
    level_window.restore(host.params())
    assert host.armed() == [False] * 4
    assert not any("stop" in argv for argv in host.commands)


def test_what_cannot_be_put_back_keeps_its_service(host: Host) -> None:
    level_window.raise_levels(host.params())
    host.answers[SCHEDULER] = 500, "no"
    answer = level_window.restore(host.params())
    assert states(answer) == [(SCHEDULER, "failed"), (KUBELET, "restored")]
    assert "HTTP 500 no" in answer["targets"][0]["reason"]
    assert host.raised() == [SCHEDULER]
    assert host.armed() == [True] * 4
    del host.answers[SCHEDULER]
    assert states(level_window.restore(host.params())) == [(SCHEDULER, "restored")]
    assert host.armed() == [False] * 4


def test_somebody_faster_is_not_undone(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    level_window.raise_levels(host.params((SCHEDULER, 2)))
    left, first = level_window._left, []

    def stale(step: Any) -> Any:
        if not first:
            first.extend(left(step))
            host.down(NEXT)
            return first
        return left(step)

    monkeypatch.setattr(level_window, "_left", stale)
    node_lock.release(RUN, host.root)
    asked = len(host.asked)
    # the other's
    assert level_window.restore(host.params())["targets"] == []
    assert len(host.asked) == asked + 1


def test_run_answers_through_a_process_of_its_own(host: Host) -> None:
    assert states(level_window.run(host.params())) == [(SCHEDULER, "raised"), (KUBELET, "raised")]
    assert host.raised() == [SCHEDULER, KUBELET]
    assert not host.asked
    assert states(level_window.run(host.params(state="restored"))) == [
        (SCHEDULER, "restored"),
        (KUBELET, "restored"),
    ]
    assert not host.raised()


def test_run_of_one_that_is_killed_says_so(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detached, "run", lambda *dummy: None)
    answer = level_window.run(host.params())
    assert answer["targets"] == []
    assert "put back in time" in answer["error"]


def test_probing_changes_nothing(host: Host) -> None:
    host.answers[SCHEDULER] = 404, ""
    host.answers[MANAGER] = LOST
    answer = level_window.run(
        host.params((SCHEDULER, 2), (MANAGER, 0), (KUBELET, 0), state="probed")
    )
    assert states(answer) == [(SCHEDULER, "absent"), (MANAGER, "refused"), (KUBELET, "offered")]
    assert "without profiling" in answer["targets"][0]["reason"]
    assert "does not answer" in answer["targets"][1]["reason"]
    assert not list(host.puts())
    assert host.results() == []
    assert host.armed() == [False] * 4


# What the service runs.


def test_nothing_is_restarted_after_one_that_did_not_come_back(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def raise_one(dummy_step: Any, target: Any, dummy_params: Any) -> "tuple[str, str]":
        seen.append(target["component"])
        return "unsure", "it did not come back"

    monkeypatch.setattr(level_by_restart, "raise_one", raise_one)
    params = host.params((MANAGER, 0), (SCHEDULER, 2), (KUBELET, 0))
    params["targets"] = [
        (
            dict(one, component=one["real"], step={"remedy": "edit_manifest"})
            if one["real"] != KUBELET
            else one
        )
        for one in params["targets"]
    ]
    answer = level_window.raise_levels(params)
    assert states(answer) == [
        (MANAGER, "unsure"),
        (SCHEDULER, "refused"),
        (KUBELET, "raised"),
    ]
    assert seen == [MANAGER]
    assert (
        "nothing more is restarted, because level:kube-controller-manager did not come back"
        in answer["targets"][1]["reason"]
    )


def test_nothing_is_restarted_without_the_service_or_after_another_hosts(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(level_by_restart, "raise_one", lambda *dummy: pytest.fail("it was"))
    params = host.params((SCHEDULER, 2))
    params["targets"][0].update(component="kube-scheduler", step={"remedy": "edit_manifest"})
    assert (
        "what was restarted on m1"
        in level_window.raise_levels(
            dict(params, halt="nothing more, because of what was restarted on m1")
        )["targets"][0]["reason"]
    )
    monkeypatch.setattr(level_window, "_is_armed", lambda step: False)
    assert (
        "everything was put back meanwhile"
        in level_window.raise_levels(params)["targets"][0]["reason"]
    )


def expire(host: Host) -> dict[str, Any]:
    return level_window.expire({"run_id": RUN, "root": host.root})


def test_the_service_waits_until_the_time_is_over(host: Host) -> None:
    level_window.raise_levels(host.params())
    host.at_sleep = lambda: (
        host.uptime >= 5060 or (len(host.raised()) == 2 or pytest.fail("too early"))
    )
    assert expire(host) == {}
    assert sum(host.slept) == 60
    assert host.slept[-1] <= level_window.AGAIN
    assert (host.levels[SCHEDULER], host.levels[KUBELET]) == (2, 0)
    assert host.armed() == [False] * 4


def test_after_another_boot_it_waits_for_nothing(host: Host) -> None:
    level_window.raise_levels(host.params())
    host.boot, host.uptime = "boot-2", 12.0
    assert expire(host) == {}
    assert host.slept == []
    assert not host.raised()
    assert host.armed() == [False] * 4


def test_a_node_that_is_a_container_was_started_again_when_its_init_is_another(host: Host) -> None:
    level_window.raise_levels(host.params())
    host.init = 8
    assert expire(host) == {}
    assert host.slept == []
    assert not host.raised()


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{}",
        "[]",
        '{"boot": "boot-1/7", "complete": true}',
        '{"boot": "boot-1/7", "uptime": "x", "complete": true}',
    ],
)
def test_where_nobody_can_tell_the_time_it_waits_for_nothing(
    host: Host, text: "str | None"
) -> None:
    level_window.raise_levels(host.params())
    path = Path(host.root) / "levels" / f"{RUN}.json"
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    assert expire(host) == {}
    assert host.slept == []
    assert not host.raised()


def test_it_ends_early_when_nothing_is_left(host: Host) -> None:
    level_window.raise_levels(host.params())
    host.at_sleep = lambda: level_window.restore(host.params())
    assert expire(host) == {}
    assert len(host.slept) == 1


def test_it_does_not_end_before_all_is_raised(host: Host) -> None:
    """It is started before the first level is raised, and finds nothing then."""
    with pytest.raises(Killed):  # noqa: PT012 - set before the call that it kills
        host.at_put = lambda real: killed()
        level_window.raise_levels(host.params())
    assert host.until()["complete"] is False
    with journal.opened(host.root, RUN) as fd:
        for name in os.listdir(fd):  # noqa: PTH208 - an open directory
            os.unlink(name, dir_fd=fd)
    assert expire(host) == {}
    assert sum(host.slept) == pytest.approx(60 + level_window.budget([{}, {}]))


def killed() -> None:
    raise Killed


def test_killed_while_raising_it_is_put_back_by_the_service(host: Host) -> None:
    host.killed = True
    with pytest.raises(Killed):
        level_window.raise_levels(host.params())
    host.killed = False
    assert host.levels[SCHEDULER] == 4
    assert host.results() == [None]
    assert expire(host) == {}
    assert host.levels[SCHEDULER] == 2
    assert host.results() == ["not_done"]
    assert host.armed() == [False] * 4


def test_what_fails_is_tried_again_until_it_succeeds(host: Host) -> None:
    level_window.raise_levels(host.params())
    host.answers[KUBELET] = LOST
    host.boot = "boot-2"
    host.at_sleep = lambda: host.answers.pop(KUBELET) if len(host.slept) == 3 else None
    assert expire(host) == {}
    assert host.slept == [level_window.AGAIN] * 3
    assert host.levels[KUBELET] == 0
    assert not host.raised()


def test_it_survives_that_another_process_changes_the_node(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    level_window.raise_levels(host.params())
    host.boot, exclusive = "boot-2", durable_files.exclusive

    def another(*dummy: Any) -> None:
        raise storage.ChangeError("another process changes this node")

    monkeypatch.setattr(durable_files, "exclusive", another)
    host.at_sleep = lambda: monkeypatch.setattr(durable_files, "exclusive", exclusive)
    assert expire(host) == {}
    assert len(host.slept) == 1
    assert not host.raised()


def test_it_goes_on_for_as_long_as_it_takes(host: Host) -> None:
    level_window.raise_levels(host.params())
    host.boot, host.naps, host.answers[KUBELET] = "boot-2", 30, LOST
    with pytest.raises(Ended):
        expire(host)
    assert host.raised() == [KUBELET]
    assert host.armed() == [True] * 4


# What evidence says of it, and the repair of KM903.


@pytest.mark.parametrize(
    ("boot", "later", "overdue"),
    [
        ("boot-1", 0, False),
        ("boot-1", 60, False),
        ("boot-1", 180, False),
        ("boot-1", 181, True),
        ("boot-2", -4990, False),
        ("boot-2", -4880, False),
        ("boot-2", -4879, True),
        ("boot-2", 0, True),
    ],
)
def test_evidence_names_what_is_raised_and_what_is_overdue(
    host: Host, monkeypatch: pytest.MonkeyPatch, boot: str, later: float, overdue: bool
) -> None:
    level_window.raise_levels(host.params((SCHEDULER, 2)))
    monkeypatch.setattr(node_journal, "ROOT", host.root)
    monkeypatch.setattr(level_target.raised, "__defaults__", (host.root,))
    host.boot, host.uptime = boot, 5000.0 + later
    begin = time.time()
    (one,) = node_journal.collect(registry.Context({}, [], {}))["levels"]
    assert one == {
        "run_id": RUN,
        "entry": "001-raise",
        "path": "log level of kube-scheduler",
        "real": SCHEDULER,
        "level": "4",
        "former": "2",
        "at": one["at"],
        "overdue": overdue,
        "restart": False,
        "by_hand": None,
        "until": one["until"],
    }
    left = max(0, 60 - later) if boot == "boot-1" else 0
    assert (
        begin + left - 2
        < calendar.timegm(time.strptime(one["until"], "%Y-%m-%dT%H:%M:%SZ"))
        < time.time() + left + 2
    )
    level_window.restore(host.params())
    assert node_journal.collect(registry.Context({}, [], {}))["levels"] == []


def test_evidence_of_a_node_whose_levels_were_never_raised(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_journal, "ROOT", host.root)
    assert node_journal.collect(registry.Context({}, [], {}))["levels"] == []


def repair(host: Host, **more: Any) -> dict[str, Any]:
    node_lock.release(RUN, host.root)
    node_lock.acquire(NEXT, {}, 60, root=host.root)
    step = {
        "id": "01-m1-restore-levels",
        "host": "m1",
        "remedy": "restore_levels",
        "code": "KM903",
        "change": None,
        "expect": None,
    }
    return step_executor.work(
        {
            "run_id": NEXT,
            "step": step,
            "root": host.root,
            "host": "m1",
            "lock": {"seconds": 60},
            "check": False,
            **more,
        }
    )


def test_the_repair_puts_back_what_a_run_left(host: Host) -> None:
    level_window.raise_levels(host.params())
    assert step_executor.budget({"remedy": "restore_levels"}) > 2 * level_window.EACH
    answer = repair(host)
    assert (answer["state"], answer["changed"], answer["reason"]) == ("done", True, ""), answer
    assert not host.raised()
    assert host.armed() == [False] * 4
    answer = repair(host)
    assert (answer["state"], answer["changed"]) == ("done", False)


def test_the_repair_says_what_it_could_not_put_back(host: Host) -> None:
    level_window.raise_levels(host.params())
    host.answers[KUBELET] = LOST
    answer = repair(host)
    assert (answer["state"], answer["changed"]) == ("failed", True)
    assert "does not answer" in answer["reason"]
    assert host.raised() == [KUBELET]
    assert host.armed() == [True] * 4


def test_what_a_run_left_that_was_killed_before_it_raised_anything_goes(tmp_path, monkeypatch):
    units, folder = tmp_path / "units", tmp_path / "root" / "levels"
    folder.mkdir(parents=True)
    units.mkdir()
    monkeypatch.setattr(level_window, "UNITS", str(units))
    monkeypatch.setattr(command, "run", lambda argv, *dummy: "")
    ours, dead, busy = (
        "20261121T090000Z-aaaaaa",
        "20261121T080000Z-bbbbbb",
        "20261121T070000Z-cccccc",
    )
    for run_id in (ours, dead, busy):
        for name in (run_id + ".py", f".{run_id}.json.tmp"):
            (folder / name).write_text("")
        (units / (f"kubemend-levels-{run_id}.service")).write_text("")
    (units / "kubelet.service").write_text("")
    monkeypatch.setattr(level_window, "_anything", lambda step: step.run_id == busy)
    level_window.sweep(ours, str(tmp_path / "root"))
    assert not [path for path in (*folder.iterdir(), *units.iterdir()) if dead in path.name]
    assert (
        len(
            [
                path
                for path in (*folder.iterdir(), *units.iterdir())
                if ours in path.name or busy in path.name
            ]
        )
        == 5
    )
    assert not (folder / (f".{busy}.json.tmp")).exists()
    assert (units / "kubelet.service").exists()


def test_a_record_that_cannot_be_read_may_be_a_level_that_is_up(tmp_path, monkeypatch):
    """So nothing says that all is put back, and the service that does it stays."""
    run_id = "20261121T080000Z-bbbbbb"
    folder = tmp_path / level_window.journal.FOLDER / run_id
    folder.mkdir(parents=True, mode=0o700)
    record = folder / (level_window.raised_levels.PREFIX + "kubelet.json")
    record.write_text("{")
    service = tmp_path / "levels" / (run_id + ".py")
    service.parent.mkdir()
    service.write_text("")
    monkeypatch.setattr(level_window, "UNITS", str(tmp_path / "units"))
    monkeypatch.setattr(command, "run", lambda argv, *dummy: "")
    assert level_window.raised_levels.unread(run_id, str(tmp_path))
    assert level_window.raised_levels.records(run_id, str(tmp_path)) == []
    answer = level_window.restore({"run_id": run_id, "root": str(tmp_path), "state": "restored"})
    assert answer["targets"] == []
    assert "is not known" in answer["error"]
    assert f"kubemend-levels-{run_id}.service" in answer["error"]
    assert service.exists()
    record.unlink()
    assert level_window.raised_levels.unread(run_id, str(tmp_path)) is None
    assert (
        level_window.restore({"run_id": run_id, "root": str(tmp_path), "state": "restored"})[
            "error"
        ]
        is None
    )
    assert not service.exists()
