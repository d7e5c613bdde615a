# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages between the runner and its workers, however a pipe cuts them."""

import marshal
import os
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import channels

MESSAGES = [("plan", {"a": "reads"}, ["a"]), ("record", b"x" * 100000), ("ended",)]


@pytest.mark.parametrize("size", [1, 3, 4, 5, 65536, 10**6])
def test_messages_come_whole_however_they_are_cut(size):
    content = b"".join(channels.message(*one) for one in MESSAGES)
    taken, found = channels.Messages(), []
    for start in range(0, len(content), size):
        found += taken.add(content[start : start + size])
    assert found == MESSAGES
    assert not taken.buffer


def test_a_message_that_is_too_long_is_refused_at_its_length():
    content = channels.message("began") + (channels.MAX_MESSAGE + 1).to_bytes(4, "little")
    with pytest.raises(channels.Broken) as caught:
        channels.Messages().add(content)
    assert caught.value.messages == [("began",)]
    assert caught.value.outcome is channels.Job.flooded


def test_what_is_no_message_is_refused():
    with pytest.raises(channels.Broken) as caught:
        channels.Messages().add((4).to_bytes(4, "little") + b"\0abc")
    assert caught.value.outcome is channels.Job.lost


def test_a_worker_that_takes_nothing_holds_nothing_up():
    read, write = os.pipe()
    worker = channels.Worker(0, 0, write, [])
    try:
        worker.tell("a", "x" * 10**6, True)
        assert worker.outbox
        os.close(read)
        worker.push()
        assert worker.outbox == b""
    finally:
        os.close(write)


@pytest.mark.parametrize("body", [b"", b"abc", marshal.dumps(1)])
def test_an_answer_that_is_none_is_lost(body):
    job = channels.Job("a", "reads", 0.0, 5.0)
    assert job.answered(body)["status"] == job.lost()["status"] == "error"
    assert job.answered(body)["error"] == job.lost()["error"]
    assert job.answered(body)["source"] == "reads"


@pytest.fixture
def idle():
    read, write = os.pipe()
    yield channels.Worker(0, read, write, [])
    os.close(read)
    os.close(write)


def test_what_waits_for_an_inbox_is_not_copied_each_time(idle):
    outbox = idle.outbox
    idle.tell("a", "x" * 10**6, True)
    assert idle.outbox is outbox
    assert outbox


def test_the_kernel_tells_how_long_a_process_ran_or_waited_for_a_processor():
    before, end = channels.runnable("self"), time.process_time() + 0.3
    while time.process_time() < end:
        pass
    running, waiting = channels.runnable("self")
    assert running - before[0] >= 0.25
    assert waiting >= before[1]
    assert channels.runnable("none") == (0.0, 0.0)


@pytest.mark.parametrize(("runnable", "blocked"), [(0.0, 5.0), (4.0, 1.0), (-1.0, 5.0)])
def test_who_computes_or_waits_for_a_processor_is_not_blocked(monkeypatch, idle, runnable, blocked):
    for count in ((7.0 + runnable, 3.0), (7.0, 3.0 + runnable)):
        monkeypatch.setattr(channels, "runnable", lambda pid, count=count: count)
        idle.job = channels.Job("a", "reads", 10.0, 20.0, (7.0, 3.0))
        assert idle.blocked_by(15.0) == blocked
        assert idle.is_computing(15.0) is (count[0] == 11.0)
