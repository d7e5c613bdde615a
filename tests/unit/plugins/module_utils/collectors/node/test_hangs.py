# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that wait in the kernel, mounts that do not answer, and zombies."""

import errno
import json
import os
import signal
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.base import Context
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import hangs

LINE = "36 35 0:61 / %s rw,relatime shared:1 - %s %s rw"


@pytest.fixture
def proc(tmp_path):
    def process(pid, state="S", parent=1, start=100, switches=5, wchan="0", name="a (b) c"):
        folder = tmp_path / str(pid)
        folder.mkdir(exist_ok=True)
        fields = [state, str(parent), *["0"] * 17, str(start), "0"]
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}\n")
        (folder / "status").write_text(f"Name:\ta\nvoluntary_ctxt_switches:\t{switches}\n")
        (folder / "wchan").write_text(wchan)
        (folder / "comm").write_text(name + "\n")
        (folder / "cgroup").write_text("0::/system.slice/x.service\n")
        return tmp_path

    return process


def test_a_wait_is_the_same_one_while_nothing_was_switched(proc):
    folder = str(proc(7, "D", wchan="rpc_wait_bit_killable"))
    before = hangs._wait(7, folder)
    assert before == hangs._wait(7, folder)
    proc(7, "D", switches=6, wchan="rpc_wait_bit_killable")
    assert hangs._wait(7, folder) != before
    proc(7, "S")
    assert hangs._wait(7, folder) is None
    assert hangs._wait(8, folder) is None
    task = hangs._task(7, before, folder)
    assert task == {
        "pid": 7,
        "name": "a (b) c",
        "wchan": "rpc_wait_bit_killable",
        "pod_uid": None,
    }


def test_zombies_of_one_parent(proc):
    folder = str(proc(2, name="init"))
    for pid in range(100, 100 + hangs.MANY_ZOMBIES):
        proc(pid, "Z", parent=2)
    proc(50, "Z", parent=3)
    assert hangs.zombies(hangs._states(folder), folder) == [
        {"pid": 2, "name": "init", "zombies": hangs.MANY_ZOMBIES}
    ]


def test_remote_mounts_are_asked_and_others_are_not(tmp_path):
    table = "\n".join(
        [
            LINE % (str(tmp_path), "nfs4", "server:/a\\040b"),
            LINE % ("/none", "fuse.sshfs", "me@host:/"),
            LINE % ("/", "ext4", "/dev/sda1"),
            "short",
        ]
    )
    assert hangs.mounts(table) == [
        {
            "point": str(tmp_path),
            "type": "nfs4",
            "source": "server:/a b",
            "answers": True,
            "error": None,
        },
        {
            "point": "/none",
            "type": "fuse.sshfs",
            "source": "me@host:/",
            "answers": True,
            "error": "ENOENT",
        },
    ]


@pytest.mark.parametrize(
    ("number", "reply"),
    [(errno.ENOTCONN, "ENOTCONN"), (errno.ESTALE, "ESTALE"), (99999, "?"), (None, "?")],
)
def test_a_mount_without_its_program_answers_with_an_error(monkeypatch, number, reply):
    def statvfs(_point):
        raise OSError(number, "an error")

    monkeypatch.setattr(os, "statvfs", statvfs)
    assert hangs.answering(["/dead"], 5) == {"/dead": reply}
    assert [(row["answers"], row["error"]) for row in hangs.mounts(LINE % ("/a", "fuse", "x"))] == [
        (True, reply)
    ]


def test_a_mount_that_does_not_answer_costs_its_time_only(monkeypatch):
    monkeypatch.setattr(os, "statvfs", lambda point: time.sleep(30 if point == "/dead" else 0))
    begin = time.monotonic()
    assert hangs.answering(["/dead", "/well"], 0.5) == {"/dead": None, "/well": ""}
    assert time.monotonic() - begin < 10


def test_who_asks_a_dead_mount_holds_nothing_open(monkeypatch):
    monkeypatch.setattr(os, "statvfs", lambda point: time.sleep(30))
    read, write = os.pipe()
    assert hangs.answering(["/dead"], 0.1) == {"/dead": None}
    os.close(write)
    os.set_blocking(read, False)
    assert os.read(read, 1) == b""  # its end: no child holds the other one
    os.close(read)


def test_who_asks_a_dead_mount_ends_by_itself(monkeypatch):
    asked = []
    monkeypatch.setattr(os, "statvfs", lambda point: time.sleep(30))
    monkeypatch.setattr(os, "waitpid", lambda pid, options: asked.append(pid))
    hangs.answering(["/dead"], 0.1)
    monkeypatch.undo()
    assert os.waitpid(asked[0], 0)[1] == signal.SIGALRM


def test_mounts_are_bounded(monkeypatch):
    monkeypatch.setattr(hangs, "MAX_MOUNTS", 2)
    table = "\n".join(LINE % (f"/none{number}", "nfs", "s:/") for number in range(5))
    assert len(hangs.mounts(table)) == 2


def test_this_machine_answers(monkeypatch):
    monkeypatch.setattr(hangs, "PAUSE_SECONDS", 0)
    data = hangs.collect(Context({}, {}, {}))
    json.dumps(data)
    assert set(data) == {"tasks", "mounts", "devices", "zombies"}


@pytest.mark.parametrize("spent", [0.0, 0.4, 9.0])
def test_a_silent_mount_takes_the_time_of_the_pauses(monkeypatch, spent):
    clock, slept = [100.0], []

    def sleep(seconds):
        slept.append(seconds)
        clock[0] += seconds

    def asked(_mountinfo):
        clock[0] += spent
        return []

    monkeypatch.setattr(hangs.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(hangs.time, "sleep", sleep)
    monkeypatch.setattr(hangs, "mounts", asked)
    monkeypatch.setattr(hangs, "_states", lambda: {7: ("D", 1)})
    monkeypatch.setattr(hangs, "_wait", lambda pid: (1, 2, "folio_wait_bit_common"))
    hangs.collect(Context({}, {}, {}, 200.0))
    pauses = hangs.PAUSE_SECONDS * (hangs.LOOKS - 1)
    assert sum(slept) == pytest.approx(max(0.0, pauses - spent))
    assert clock[0] - 100.0 == pytest.approx(max(spent, pauses))


@pytest.mark.parametrize("waits", [True, False])
def test_devices_are_compared_only_while_a_process_waits(monkeypatch, waits):
    silent = [{"name": "vda"}]
    monkeypatch.setattr(hangs, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(hangs, "_states", lambda: {7: ("D", 1)} if waits else {})
    monkeypatch.setattr(hangs, "_wait", lambda pid: (1, 2, "folio_wait_bit_common"))
    monkeypatch.setattr(hangs.block_devices, "states", lambda: {"vda": (False, 1, ("9",))})
    monkeypatch.setattr(hangs.block_devices, "silent", lambda *looks: silent)
    data = hangs.collect(Context({}, {}, {}))
    assert data["devices"] == (silent if waits else [])


@pytest.mark.parametrize(
    ("line", "is_remote"),
    [
        (LINE % ("/a", "nfs4", "s:/"), True),
        (LINE % ("/a", "fuse", "x"), True),
        (LINE % ("/a", "ext4", "/dev/sda1"), False),
        ("1 2 - nfs4 s:/", False),
        ("1 2 3 4 /a rw nfs4", False),
        ("", False),
    ],
)
def test_which_mounts_are_remote(line, is_remote):
    assert hangs.is_remote_line(line) is is_remote
