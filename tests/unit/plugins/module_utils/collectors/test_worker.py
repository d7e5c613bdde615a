# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The worker: what it begins when, and how it hears of records."""

import os

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import (
    channels,
    registry,
    worker,
)
from tests.unit.support import child_process
from tests.unit.support.fake_collector import FakeCollector


@pytest.fixture
def pipes():
    answers, inbox, slot = os.pipe(), os.pipe(), os.pipe()
    yield answers, inbox, slot
    for end in (*answers, *inbox, *slot):
        try:
            os.close(end)
        except OSError:
            continue


def _task(**values):
    usual = {
        "params": {},
        "data": {},
        "end": 0,
        "running": set(),
        "is_apart": False,
        "has_asked": False,
        "systemd": None,
    }
    return worker.Task(**{**usual, **values})


def _work(pipes, *collectors, **values):
    answers, inbox, slot = pipes
    ends = worker._Pipes(answers[1], inbox[0], [slot[1]])
    return worker._Work(_task(**values), list(collectors), [], ends)


def test_what_has_a_process_of_its_own_begins_first(pipes):
    work = _work(
        pipes,
        FakeCollector("local", None),
        FakeCollector("later", None, waits=True, needs=("local",)),
        FakeCollector("net", None, waits=True),
        FakeCollector("deep", None, tier=registry.DEEP),
    )
    order = []
    while work.waiting:
        collector = work._next()
        work.waiting.remove(collector)
        work._keep(collector.name, None)
        order.append(collector.name)
    assert order == ["net", "deep", "local", "later"]


def test_what_has_a_record_or_runs_is_not_begun_again(pipes):
    names = ("recorded", "running", "new")
    collectors = [FakeCollector(name, None) for name in names]
    work = _work(pipes, *collectors, data={"recorded": 1}, running={"running"})
    assert [collector.name for collector in work.waiting] == ["new"]


def test_records_come_whole_however_the_pipe_cuts_them(pipes):
    inbox = pipes[1]
    ends = worker._Pipes(pipes[0][1], inbox[0], [])
    assert ends.received(has_time=False) == []
    content = channels.message("a", "x" * 50000, True) + channels.message("b", None, False)
    os.write(inbox[1], content)
    assert ends.received(has_time=False) == [("a", "x" * 50000, True), ("b", None, False)]


def test_the_worker_ends_with_the_runner(pipes):
    inbox = pipes[1]

    def work():
        os.close(inbox[1])
        worker._Pipes(pipes[0][1], inbox[0], []).received(has_time=True)
        os._exit(7)

    pid = child_process.fork(work)
    os.close(inbox[1])
    assert os.waitpid(pid, 0) == (pid, 0)


def test_those_that_wait_are_those_that_ask_a_network():
    waiting = {collector.name for collector in registry.COLLECTORS if collector.waits}
    assert waiting == {
        "api_load",
        "api_server",
        "api_way",
        "certificates",
        "component_http",
        "etcd",
    }


def test_a_wait_is_used_to_import_what_comes_first_for_several_processes(pipes):
    imported = []

    class Imported(FakeCollector):
        __slots__ = ()

        def module(self):
            imported.append(self.name)
            if self.name == "broken":
                raise SyntaxError("no module")

    work = _work(
        pipes,
        Imported("broken", None),
        Imported("elsewhere", None, components=("etcd",), waits=True),
        Imported("folder", None, path="/"),
        Imported("net", None, waits=True),
        Imported("deep", None, tier=registry.DEEP),
        Imported("after", None),
    )
    assert list(work._imports()) == [True] * 4
    assert imported == ["net", "broken", "after"]
