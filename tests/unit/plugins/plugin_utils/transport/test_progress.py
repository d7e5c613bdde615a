# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The progress of a query of many hosts: what is said, how often, and by which worker."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import progress
from tests.unit.conftest import Operator

SHORT = 0.05
SENTENCE = re.compile(
    r"kubemend: (\d+) of 5 hosts read(?:, (\d+) gave no evidence)?; waiting for (.*?), (\d+) s so"
    r" far(?:; (\d+) not asked yet)?"
)


def asked(folder: Path, *events: tuple[str, str]) -> None:
    progress._begin(folder)
    for event, host in events:
        progress._note(folder, event, host)


def aged(folder: Path, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(folder / progress.SHOWN, (moment, moment))


def test_the_last_event_of_a_host_counts(tmp_path: Path) -> None:
    asked(
        tmp_path, ("asked", "m1"), ("asked", "w 1"), ("ok", "m1"), ("asked", "m2"), ("error", "m2")
    )
    found = progress.count(tmp_path)
    assert (found.read, found.failed, list(found.waiting)) == (1, 1, ["w 1"])
    asked(tmp_path, ("asked", "m2"))
    found = progress.count(tmp_path)
    assert (found.failed, sorted(found.waiting)) == (0, ["m2", "w 1"])


def test_the_files_go_when_all_hosts_are_read(tmp_path: Path) -> None:
    asked(tmp_path, ("ok", "m1"))
    (tmp_path / "m1.json").touch()
    progress.remove(tmp_path)
    progress.remove(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["m1.json"]


def test_a_torn_line_costs_that_line(tmp_path: Path) -> None:
    asked(tmp_path, ("ok", "m1"))
    with (tmp_path / progress.EVENTS).open("a", encoding="utf-8") as file:
        file.write("\n17 \nnever asked w1\n")
    assert progress.count(tmp_path).read == 1
    assert not progress.count(tmp_path).waiting


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (progress.Count(2, 0, {"w1": 12.4}), "2 of 9 hosts read; waiting for w1, 12 s so far;"),
        (progress.Count(2, 3, {}), "2 of 9 hosts read, 3 gave no evidence; 4 not asked yet"),
        (progress.Count(8, 0, {"w1": 31.0}), "8 of 9 hosts read; waiting for w1, 31 s so far"),
        (progress.Count(0, 0, dict.fromkeys(("w1", "w2", "w3", "w4"), 1)), "w1-w4 (4 hosts)"),
    ],
)
def test_the_sentence_has_what_is_read_failed_waited_for_and_left(
    state: progress.Count, text: str
) -> None:
    assert text in progress.sentence(state, 9)
    assert ("not asked" in progress.sentence(state, 9)) is (
        state.read + state.failed + len(state.waiting) < 9
    )


def test_a_worker_that_waits_tells_the_progress_of_all_and_notes_its_end(tmp_path: Path) -> None:
    told: list[str] = []
    asked(tmp_path, ("asked", "m1"), ("ok", "m1"))
    with progress.shown(tmp_path, "w1", 3, told.append, SHORT) as ends:
        end = time.monotonic() + 20
        while not told and time.monotonic() < end:
            time.sleep(SHORT)
        ends.append("ok")
    assert told[0].startswith("kubemend: 1 of 3 hosts read; waiting for w1")
    assert progress.count(tmp_path) == progress.Count(2, 0, {})
    count = len(told)
    time.sleep(3 * SHORT)
    assert len(told) == count


def interrupted(folder: Path, ended: list[str]) -> None:
    with progress.shown(folder, "w1", 1, pytest.fail) as ends:
        ends.extend(ended)
        raise KeyboardInterrupt


@pytest.mark.parametrize("ended", [[], ["unreachable"]])
def test_an_end_without_an_answer_is_no_answer(tmp_path: Path, ended: list[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path, ended)
    assert progress.count(tmp_path) == progress.Count(0, 1, {})


def test_only_one_worker_tells_in_an_interval(tmp_path: Path) -> None:
    told: list[str] = []
    over = threading.Event()
    asked(tmp_path, ("asked", "w1"))

    def tell() -> None:
        progress._tell_once(tmp_path, 1, told.append, 10, over)

    tell()
    assert not told  # the first interval begins with the first host
    aged(tmp_path, 11)
    with (tmp_path / progress.SHOWN).open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        tell()
    assert not told  # another worker is about to
    tell()
    tell()
    assert len(told) == 1
    aged(tmp_path, 11)
    over.set()
    tell()
    assert len(told) == 1  # this one has its answer


def test_a_clock_that_was_set_back_costs_one_interval(tmp_path: Path) -> None:
    asked(tmp_path)
    aged(tmp_path, -3600)
    assert progress._remaining(tmp_path, 10) == 10
    aged(tmp_path, 3600)
    assert progress._remaining(tmp_path, 10) == 0


def test_a_folder_that_cannot_be_written_costs_the_progress_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with progress.shown(tmp_path / "file" / "evidence", "w1", 1, pytest.fail, SHORT):
        time.sleep(3 * SHORT)


def test_the_thread_leaves_signals_to_the_worker(tmp_path: Path) -> None:
    masks: list[set[signal.Signals]] = []

    def tell(_text: str) -> None:
        masks.append(set(signal.pthread_sigmask(signal.SIG_BLOCK, [])))

    with progress.shown(tmp_path, "w1", 1, tell, SHORT):
        end = time.monotonic() + 20
        while not masks and time.monotonic() < end:
            time.sleep(SHORT)
    assert signal.SIGALRM in masks[0]
    assert signal.SIGALRM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


PLAY = """
- hosts: all
  gather_facts: false
  connection: local
  tasks:
    - kubemend.remediation.node_evidence_info:
        evidence_dir: "{{ folder }}"
        collectors: [installer]
        timeout: 120
        terminal: "{{ shows }}"
"""


@pytest.fixture(name="slow")
def _slow(operator: Operator) -> Operator:
    """Return an operator whose hosts w1 and w2 wait for a file, with two forks."""
    python = operator.write(
        "slow/python3",
        f"#!/bin/sh\nuntil [ -e {operator.folder}/go ]; do sleep 0.2; done\n"
        f'exec {sys.executable} "$@"\n',
    )
    python.chmod(0o755)
    operator.write("play.yml", PLAY)
    quick = f"ansible_python_interpreter={sys.executable}"
    late = f"ansible_python_interpreter={python}"
    operator.write("hosts.ini", f"m1 {quick}\nw1 {late}\nw2 {late}\nw3 {quick}\nw4 {quick}\n")
    return operator


@pytest.mark.parametrize("callback", ["ansible.builtin.default", "ansible.builtin.minimal"])
def test_an_operator_sees_at_once_which_hosts_are_waited_for(slow: Operator, callback: str) -> None:
    process = slow.start(
        str(slow.folder / "play.yml"),
        *("-f", "2", "-e", f"folder={slow.folder / 'evidence'}", "-e", "{shows: true}"),
        inventory="hosts.ini",
        env={"ANSIBLE_STDOUT_CALLBACK": callback},
    )
    told = ""
    while not (found := SENTENCE.search(told)) and (line := process.stderr.readline()):
        told = f"{told} {line.strip()}"
    # The hosts answer only now: a sentence that a pipe keeps back never comes.
    slow.write("go", "")
    stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stdout + stderr
    assert found, stdout + stderr
    read, failed, waiting, seconds, remaining = found.groups()
    assert (failed, waiting) == (None, "w1, w2")
    assert int(seconds) >= progress.INTERVAL - 1
    assert int(read) + 2 + int(remaining or 0) == 5
    # It is no evidence.
    assert re.search(r"\bw[12](?:\]| \|)", stdout)
    assert sorted(path.name for path in (slow.folder / "evidence").glob("[!.]*")) == [
        *("m1.json", "w1.json", "w2.json", "w3.json", "w4.json")
    ]


def test_who_wants_no_terminal_sees_no_progress(slow: Operator) -> None:
    threading.Timer(progress.INTERVAL + 4, slow.write, ("go", "")).start()
    done = slow.run(
        str(slow.folder / "play.yml"),
        *("-f", "2", "-e", f"folder={slow.folder / 'evidence'}", "-e", "{shows: false}"),
        inventory="hosts.ini",
    )
    assert done.rc == 0, done.output
    assert "hosts read" not in done.output
    assert not list((slow.folder / "evidence").glob(".progress*"))
