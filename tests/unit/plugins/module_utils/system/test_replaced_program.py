# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that run, against the file at their path: real processes of copies of a program."""

import os
import shutil
import subprocess
import sys
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import replaced_program


@pytest.fixture
def running(tmp_path):
    """Return the path of a program that runs, and its process."""
    path = tmp_path / "sleeper"
    shutil.copy2("/bin/sleep", path)
    process = subprocess.Popen([str(path), "60"])
    for _dummy in range(100):
        if os.path.realpath(f"/proc/{process.pid}/exe") == str(path):
            break
        time.sleep(0.02)
    yield path, process.pid
    process.kill()
    process.wait()


def test_the_same_program(running):
    path, pid = running
    row = replaced_program.replaced("kubelet", pid)
    assert (row["path"], row["replaced"], row["missing"]) == (str(path), False, False)
    assert (row["running"], row["disk"]) == ("", "")
    assert row["started_at"] > time.time() - 60


def test_a_program_of_another_file(running):
    path, pid = running
    other = path.with_name("new")
    other.write_bytes(path.read_bytes() + b"x")
    other.replace(path)
    row = replaced_program.replaced("kubelet", pid)
    assert (row["path"], row["replaced"], row["missing"]) == (str(path), True, False)


def test_a_program_that_is_gone(running):
    path, pid = running
    path.unlink()
    row = replaced_program.replaced("kubelet", pid)
    assert (row["path"], row["replaced"], row["missing"]) == (str(path), True, True)


def test_versions_of_both_are_asked_where_they_differ(running, monkeypatch):
    path, pid = running
    monkeypatch.setattr(replaced_program, "NAMES", (path.name,))
    other = path.with_name("new")
    other.write_text("#!/bin/sh\necho Kubernetes v1.99.0\necho more\n")
    other.chmod(0o755)
    other.replace(path)
    row = replaced_program.replaced("kubelet", pid)
    assert "sleep" in row["running"]
    assert row["disk"] == "Kubernetes v1.99.0"


def test_a_program_of_a_container_lies_below_its_root(tmp_path, monkeypatch):
    program = tmp_path / "7/root/hyper/kubelet"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    os.link(program, tmp_path / "7/exe")
    monkeypatch.setattr(replaced_program.procfs, "link", lambda *_words: "/hyper/kubelet")
    row = replaced_program.replaced("kubelet", 7, proc=str(tmp_path))
    assert (row["path"], row["replaced"], row["missing"]) == ("/hyper/kubelet", False, False)
    program.unlink()
    row = replaced_program.replaced("kubelet", 7, proc=str(tmp_path))
    assert (row["replaced"], row["missing"], row["disk"]) == (True, True, "")


@pytest.mark.parametrize(("is_of_host", "said"), [(True, "Kubernetes v1.99.0"), (False, "")])
def test_only_a_program_with_the_root_of_the_host_is_asked(tmp_path, monkeypatch, is_of_host, said):
    """The path of one in a container may lead to another program of the host."""
    proc, program = tmp_path / "proc", tmp_path / "kubelet"
    (proc / "7").mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ntouch {program}.started\necho Kubernetes v1.99.0\n")
    program.chmod(0o755)
    root = proc / "7/root"
    root.symlink_to("/") if is_of_host else root.mkdir()
    link = str(program) + replaced_program.DELETED
    monkeypatch.setattr(replaced_program.procfs, "link", lambda *_words: link)
    row = replaced_program.replaced("kubelet", 7, proc=str(proc))
    assert (row["replaced"], row["missing"]) == (True, not is_of_host)
    assert (row["disk"], program.with_name("kubelet.started").exists()) == (said, is_of_host)


def test_a_program_of_another_name_is_never_started(running):
    path, pid = running
    other = path.with_name("new")
    other.write_text(f"#!/bin/sh\ntouch {path}.started\n")
    other.chmod(0o755)
    other.replace(path)
    row = replaced_program.replaced("kubelet", pid)
    assert (row["replaced"], row["disk"]) == (True, "")
    assert not path.with_name("sleeper.started").exists()


@pytest.mark.parametrize(
    ("own", "other", "same"),
    [
        ((1, 2, 100, 5.5), (1, 2, 100, 5.5), True),
        ((1, 2, 100, 5.5), (1, 3, 100, 5.5), True),  # an overlay, after a change of its mode
        ((1, 2, 100, 5.5), (1, 3, 101, 5.5), False),
        ((1, 2, 100, 5.5), (1, 3, 100, 6.5), False),
    ],
)
def test_the_states_of_one_program(own, other, same):
    def state(device, inode, size, mtime):
        return os.stat_result((0o755, inode, device, 1, 0, 0, size, mtime, mtime, mtime))

    assert replaced_program._same(state(*own), state(*other)) is same


def test_a_process_that_is_gone():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    row = replaced_program.replaced("kubelet", process.pid)
    assert (row["path"], row["replaced"], row["missing"]) == (None, None, False)


def test_a_program_that_says_nothing_or_does_not_end(tmp_path):
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexit 3\n")
    silent.chmod(0o755)
    assert replaced_program.version(str(silent), 2) == ""
    endless = tmp_path / "endless"
    endless.write_text("#!/bin/sh\nexec sleep 60\n")
    endless.chmod(0o755)
    assert replaced_program.version(str(endless), 0.2) == ""
    assert replaced_program.version(str(tmp_path / "none"), 1) == ""
