# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SIGUSR2 to real processes of this machine.

Only the process that was named gets it, and only if it catches the signal.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.capture import (
    klog_level,
    scheduler_dump,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.changes import node_lock
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    step_record,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    component_process,
    procfs,
)
from tests.unit.support.waiting import until

RUN, OTHER = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f"
HEARS = (
    "import signal, sys, time; signal.signal(signal.SIGUSR2, lambda *_: open(sys.argv[1] +"
    " '/heard', 'w').close()); open(sys.argv[1] + '/up', 'w')\n"
)
DEAF = "import sys, time; open(sys.argv[1] + '/up', 'w')\n"
DIES = (
    "import os, signal, sys; signal.signal(signal.SIGUSR2, lambda *_: os._exit(2));"
    " open(sys.argv[1] + '/up', 'w')\n"
)
SLEEP = "while True: time.sleep(0.05)"


class Scheduler:
    """A child of the test that plays kube-scheduler."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch
        self.root = str(folder / "kubemend")
        self.children: list[subprocess.Popen[bytes]] = []

    def start(self, body: str, word: str = "kube-scheduler") -> "dict[str, Any]":
        """Give the process as the evidence names it."""
        child = subprocess.Popen(
            [word, "-c", body + "import time\n" + SLEEP, str(self.folder)],
            executable=sys.executable,
        )
        self.children.append(child)
        up = self.folder / "up"
        assert until(up.exists)
        up.unlink()  # the next one says it too
        argv = procfs.argv(child.pid)
        self.monkeypatch.setattr(
            component_process,
            "instances",
            lambda component: [
                component_process.Instance(
                    one.pid, step_record.ticks(one.pid), procfs.argv(one.pid), {"pod_uid": "u"}
                )
                for one in self.children
                if one.poll() is None
            ],
        )
        return {"pid": child.pid, "started_at": procfs.started_at(child.pid), "argv": argv}

    def ask(self, known: "dict[str, Any]", run_id: str = RUN) -> "dict[str, Any]":
        return scheduler_dump.run(
            {"state": "dumped", "run_id": run_id, "root": self.root, "process": known, "alive": 0.5}
        )

    def heard(self) -> bool:
        return until((self.folder / "heard").exists)


class World:
    """The Nodes of the API, and what the scheduler says of its cache."""

    def __init__(self) -> None:
        self.nodes, self.error = ["m1", "w1"], ""
        self.metrics = (
            'scheduler_scheduler_cache_size{type="assumed_pods"} 0'
            ' scheduler_scheduler_cache_size{type="nodes"} 2'
        )

    def items(self, path: str, accept: str) -> "list[dict[str, Any]]":
        assert path == "/api/v1/nodes"
        if self.error:
            raise ApiError("denied", self.error)
        return [{"metadata": {"name": name}} for name in self.nodes]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()

    @contextlib.contextmanager
    def reached(via: Any, seconds: float) -> Any:
        yield made, {}

    monkeypatch.setattr(scheduler_dump, "reached", reached)
    monkeypatch.setattr(klog_level.Levels, "metrics", lambda self, component, names: made.metrics)
    return made


@pytest.fixture
def scheduler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: World
) -> "Iterator[Scheduler]":
    made = Scheduler(tmp_path, monkeypatch)
    node_lock.acquire(RUN, {}, 600, root=made.root)
    yield made
    for child in made.children:
        child.kill()
        child.wait()


@pytest.mark.parametrize("descriptors", [True, False])
def test_it_is_sent_to_the_process_that_leads_which_goes_on(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, descriptors: bool
) -> None:
    if not descriptors:  # Python 3.8 and older know none of a process
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    known = scheduler.start(HEARS)
    assert scheduler.ask(known) == {"sent": True, "reason": ""}
    assert scheduler.heard()
    assert scheduler.children[0].poll() is None


@pytest.mark.parametrize(
    ("metrics", "error", "why"),
    [
        (
            'scheduler_scheduler_cache_size{type="nodes"} 3',
            "",
            "its cache has 3 nodes and the API has 2",
        ),
        (
            'scheduler_cache_size{type="nodes"} 1.2e+01',
            "",
            "its cache has 12 nodes and the API has 2",
        ),
        ('scheduler_cache_size{type="pods"} 2', "", "its metrics do not show"),
        ("", "", "its metrics do not show"),
        (
            'scheduler_cache_size{type="nodes"} 2',
            "nodes is forbidden",
            "cannot be determined (nodes is forbidden)",
        ),
    ],
)
def test_nothing_is_sent_where_the_cache_may_have_a_node_that_is_gone(
    scheduler: Scheduler, world: World, metrics: str, error: str, why: str
) -> None:
    """Seen on v1.18.4: its dump of such a node ends it by a nil pointer."""
    known = scheduler.start(HEARS)
    world.metrics, world.error = metrics, error
    told = scheduler.ask(known)
    assert not told["sent"]
    assert why in told["reason"]
    assert not (scheduler.folder / "heard").exists()
    assert scheduler.children[0].poll() is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"pid": 1}, "does not run any more"),
        ({"started_at": 5.0}, "another process"),
        ({"argv": ["kube-scheduler", "--v=2"]}, "another process"),
    ],
)
def test_nothing_is_sent_to_another_process(
    scheduler: Scheduler, change: "dict[str, Any]", why: str
) -> None:
    known = scheduler.start(HEARS)
    answer = scheduler.ask(dict(known, **change))
    assert answer["sent"] is False
    assert why in answer["reason"]
    assert not (scheduler.folder / "heard").exists()


def test_nothing_is_sent_to_a_program_of_another_name(scheduler: Scheduler) -> None:
    answer = scheduler.ask(scheduler.start(HEARS, word="/usr/bin/other-scheduler"))
    assert answer["sent"] is False
    assert "begins with /usr/bin/other-scheduler" in answer["reason"]


def test_nothing_is_sent_to_a_program_that_it_would_end(scheduler: Scheduler) -> None:
    answer = scheduler.ask(scheduler.start(DEAF))
    assert answer["sent"] is False
    assert "does not catch SIGUSR2" in answer["reason"]
    time.sleep(0.2)
    assert scheduler.children[0].poll() is None


def test_a_process_that_ended_at_it_is_named(scheduler: Scheduler) -> None:
    known = scheduler.start(DIES)
    answer = scheduler.ask(known)
    # a child that nobody has waited for still has its entry: it is gone for the kubelet, whose
    # children are reaped
    scheduler.children[0].wait()
    assert answer["sent"] is True
    assert scheduler.ask(known)["sent"] is False


def test_nothing_is_sent_without_the_lock(scheduler: Scheduler) -> None:
    known = scheduler.start(HEARS)
    answer = scheduler.ask(known, OTHER)
    assert answer["sent"] is False
    assert RUN in answer["reason"]
    assert not (scheduler.folder / "heard").exists()


def test_nothing_is_journalled(scheduler: Scheduler) -> None:
    scheduler.ask(scheduler.start(HEARS))
    assert not [
        run for run in journal.run_ids(scheduler.root) if journal.read_run(run, scheduler.root)
    ]


def ready(known: "dict[str, Any]") -> "dict[str, Any]":
    return scheduler_dump.run({"state": "ready", "run_id": RUN, "process": known})


def test_whether_its_level_can_be_raised(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, answers = scheduler.start(HEARS), [(406, ""), (404, "not found"), (403, "forbidden")]
    monkeypatch.setattr(klog_level.Levels, "_ask", lambda dummy, *what: answers.pop(0))
    found = [ready(known) for dummy in range(3)]
    assert [(one["process"], one["level"]) for one in found] == [
        ("ok", "offered"),
        ("ok", "absent"),
        ("ok", "refused"),
    ]
    assert "without profiling" in found[1]["reason"]
    assert next(one["path"] for one in found[0]["space"]["folders"]) == "/var/log/pods"
    assert not (scheduler.folder / "heard").exists()


def test_the_level_of_a_younger_one_beside_it_is_not_its(scheduler: Scheduler) -> None:
    known = scheduler.start(HEARS)
    scheduler.start(HEARS)
    monkey = [
        component_process.Instance(
            one.pid, step_record.ticks(one.pid), procfs.argv(one.pid), {"pod_uid": "u"}
        )
        for one in reversed(scheduler.children)
    ]
    scheduler.monkeypatch.setattr(component_process, "instances", lambda component: monkey)
    assert (ready(known)["process"], ready(known)["level"]) == ("ok", "refused")


def test_one_that_is_gone_is_not_ready(scheduler: Scheduler) -> None:
    known = scheduler.start(HEARS)
    scheduler.children[0].kill()
    scheduler.children[0].wait()
    answer = ready(known)
    assert answer["level"] == "refused"
    assert "does not run any more" in answer["process"]


@pytest.mark.parametrize(
    ("status", "caught"),
    [
        ("SigCgt:\tfffffffd7fc1feff\n", True),
        ("SigCgt:\t0000000000000800\n", True),
        ("SigCgt:\t0000000000000400\n", False),
        ("SigCgt:\tx\n", False),
        ("SigCgt:\n", False),
        ("", False),
        ("SigIgn:\t0000000000000800\n", False),
    ],
)
def test_what_catches_a_signal(status: str, caught: bool) -> None:
    assert scheduler_dump.catches(status, signal.SIGUSR2) is caught
    # of this very process, as the kernel tells it
    before = signal.signal(signal.SIGUSR2, lambda *_heard: None)
    try:
        assert scheduler_dump.catches(
            (Path("/proc") / str(os.getpid()) / "status").read_text(encoding="ascii"),
            signal.SIGUSR2,
        )
    finally:
        signal.signal(signal.SIGUSR2, before)
