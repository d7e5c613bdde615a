# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of a node, run within a time."""

import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    command,
)
from tests.unit.support.fake_collector import FakeCollector, hang, run_collectors


@pytest.mark.parametrize("way", [-3.15e7, 3.15e7])
def test_a_clock_that_is_set_meanwhile_moves_no_limit(monkeypatch, way):
    """Neither does what answers look late, nor is what hangs waited for until the year is over."""
    true, calls = time.time, []

    def stepped():
        calls.append(1)
        return true() + way * len(calls)

    monkeypatch.setattr(time, "time", stepped)
    assert command.run(["echo", "x"], 120) == "x\n"
    begin = time.monotonic()
    with pytest.raises(command.Late, match="did not end"):
        command.run(["sleep", "6000"], 0.3)
    assert run_collectors(FakeCollector("slow", hang, timeout=0.3))["slow"]["status"] == "timeout"
    assert time.monotonic() - begin < 100


@pytest.mark.parametrize(
    ("script", "complaint"), [("echo no >&2; echo more >&2", "no"), ("true", "")]
)
def test_what_a_silent_program_complains_of(script, complaint):
    with pytest.raises(command.Silent) as silent:
        command.run(["sh", "-c", script], 60)
    assert silent.value.complaint == complaint


def test_commands_that_run_together():
    begin = time.monotonic()
    answers = command.run_together(
        [["sh", "-c", "sleep 1; echo one"], ["sh", "-c", "sleep 1; echo two"], ["true"]], 120
    )
    assert [text for text, _error in answers] == ["one\n", "two\n", ""]
    assert [type(error) for _text, error in answers] == [type(None), type(None), command.Silent]
    assert time.monotonic() - begin < 2
    ((text, error),) = command.run_together([["sleep", "6000"]], 0.2)
    assert (text, type(error)) == ("", command.Late)


@pytest.fixture
def steps():
    """Return the steps that are done, of three that each take a while."""
    done = []

    def work():
        for number in range(3):
            time.sleep(0.1)
            done.append(number)
            yield True

    command.waits.use(work())
    yield done
    command.waits.use(())


def test_a_wait_is_used_for_other_steps(steps):
    assert command.run(["sh", "-c", "sleep 1; echo x"], 120) == "x\n"
    assert steps == [0, 1, 2]


def test_steps_go_on_in_the_next_wait_and_not_beyond_the_limit(steps):
    with pytest.raises(command.Late):
        command.run(["sleep", "6000"], 0.01)
    assert steps == [0]
    assert command.run(["sh", "-c", "sleep 1; echo x"], 120) == "x\n"
    assert steps == [0, 1, 2]


@pytest.mark.parametrize("python", ["3.6", "3.8"])
def test_what_a_command_gets(monkeypatch, tmp_path, python):
    """Where Python cannot spawn, it forks: the command sees no difference."""
    if python == "3.6":
        monkeypatch.setattr(command, "_spawn", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SECRET", "x")
    program, text = tmp_path / "program", tmp_path / "text"
    program.write_text('#!/bin/sh\necho "$0 $1 $LC_ALL $SECRET."; cat\n')
    text.write_text("echo no program\n")
    program.chmod(0o755)
    assert command.run(["program", "word"], 120) == f"{program} word C .\n"
    assert command.complaint(["sh", "-c", "echo no >&2; exit 3"], 120) == "no"
    assert command.run(["echo", "of the usual folders"], 120) == "of the usual folders\n"
    for missing in ("/nowhere/program", "no-such-program", str(text), str(tmp_path)):
        with pytest.raises(command.Silent) as silent:
            command.run([missing], 120)
        assert silent.value.complaint == ""


class Ready:
    """A poll object that has something to read at once."""

    def poll(self, _milliseconds):
        return [(1, 1)]


def test_what_has_come_is_not_kept_waiting_for_other_steps(steps):
    assert command._has_more(Ready(), time.monotonic() + 60)
    assert steps == []


def test_commands_of_which_one_cannot_be_started(monkeypatch):
    true = command.start

    def start(argv):
        if argv == ["refused"]:
            raise OSError(11, "Resource temporarily unavailable")
        return true(argv)

    monkeypatch.setattr(command, "start", start)
    refused, other = command.run_together([["refused"], ["echo", "x"]], 60)
    assert refused[0] == ""
    assert isinstance(refused[1], OSError)
    assert other == ("x\n", None)


def test_a_program_is_looked_for_in_the_folders_in_their_order(tmp_path):
    assert command._program("sh", f"/nowhere::{tmp_path}:/bin") == "/bin/sh"
    assert command._program("./sh", "/bin") == "./sh"
    assert command._program("no-such-program", "/bin") is None
