# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program in a private root: what it sees, that it changes nothing, and how it ends."""

import os
import signal
import time
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.capture import private_root
from tests.unit.support import child_process
from tests.unit.support.private_root import NEEDS_NAMESPACES, program

ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
pytestmark = NEEDS_NAMESPACES
MOUNTS = """22 1 0:20 / / rw - ext4 /dev/vda rw
23 22 0:21 / /proc rw - proc proc rw
24 22 0:22 / /usr rw - ext4 /dev/vdb rw
25 22 0:23 / /srv/a\\040b rw - ext4 /dev/vdc rw
26 22 0:24 / /var/lib/kubelet/pods/1 rw - tmpfs tmpfs rw
27 22 0:25 / /run/containerd/x rw - overlay overlay rw
28 22 0:26 / /home rw - nfs4 server:/ rw
"""


def said(plan, seconds=20):
    """Return what a program prints until it ends."""
    with private_root.Folder(plan.place), private_root.Program(plan) as running:
        running.read(seconds)
        assert running.has_ended
        return running.text.decode()


def processes(marker):
    """Return the processes whose command line has a word."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if marker.encode() in words:
            found.append(int(folder.name))
    return found


def test_it_has_its_own_processes_network_and_empty_folders(tmp_path, trial_folder):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "state").write_text("theirs")
    path = program(
        tmp_path,
        f"echo pid $$; ls -A /run {tmp_path}/hidden; tail -n +3 /proc/net/dev; ls /dev\n"
        "grep CapBnd /proc/self/status\n",
    )
    text = said(private_root.Plan([path], ENVIRONMENT, hidden=[str(tmp_path / "hidden")]))
    assert "pid 1\n" in text
    assert "state" not in text
    assert {line.split(":")[0].strip() for line in text.splitlines() if ":" in line} <= {
        "lo", "CapBnd", "/run", f"{tmp_path}/hidden", "sit0", "tunl0",
    }  # fmt: skip
    assert not {"vda", "mapper", "sda", "kmsg", "fuse"} & set(text.split())


def test_it_changes_nothing_of_the_node(tmp_path, trial_folder):
    (tmp_path / "kept").write_text("theirs")
    path = program(
        tmp_path,
        f"cd {tmp_path}; echo mine > kept; rm -f kept; echo new > new; mkdir /etc/kubemend-new\n"
        "echo x > /etc/hostname; hostname other; mount -t tmpfs none /etc; echo 7 >"
        " /proc/sys/kernel/panic; mkdir /sys/fs/cgroup/kubemend-new; echo done\n",
    )
    name, panic = os.uname()[1], Path("/proc/sys/kernel/panic").read_text()
    before = Path("/proc/self/mountinfo").read_text()
    assert "done" in said(private_root.Plan([path], ENVIRONMENT))
    assert (tmp_path / "kept").read_text() == "theirs"
    assert not (tmp_path / "new").exists()
    assert not Path("/etc/kubemend-new").exists()
    assert not Path("/sys/fs/cgroup/kubemend-new").exists()
    assert (os.uname()[1], Path("/proc/sys/kernel/panic").read_text()) == (name, panic)
    assert Path("/proc/self/mountinfo").read_text() == before
    assert not trial_folder.parent.exists()


def test_it_is_the_first_victim_of_the_kernel_and_yields(tmp_path, trial_folder):
    path = program(tmp_path, "cat /proc/self/oom_score_adj; nice; ulimit -c\n")
    nice = str(min(os.nice(0) + 10, 19))  # this run may have one already
    assert said(private_root.Plan([path], ENVIRONMENT)).split() == ["1000", nice, "0"]


def test_a_program_that_goes_on_is_ended_with_its_children(tmp_path, trial_folder):
    marker = f"{tmp_path}/marker"
    path = program(tmp_path, f"sh -c 'echo up; sleep 300; true {marker}' & wait\n")
    plan = private_root.Plan([path], ENVIRONMENT)
    with private_root.Folder(plan.place), private_root.Program(plan) as running:
        assert running.read(20, b"up\n")
        assert not running.has_ended
        assert processes(marker)
    assert running.has_ended
    assert processes(marker) == []
    assert not trial_folder.exists()


def test_a_kill_ends_the_program_and_the_next_run_removes_the_folder(tmp_path, trial_folder):
    marker = f"{tmp_path}/marker"
    path = program(tmp_path, f"sh -c 'echo up; sleep 300; true {marker}'\n")
    plan = private_root.Plan([path], ENVIRONMENT)
    read, write = os.pipe()

    def work():
        with private_root.Folder(plan.place), private_root.Program(plan) as running:
            running.read(20, b"up\n")
            os.write(write, b"x")
            signal.pause()

    pid = child_process.fork(work)
    os.close(write)
    assert os.read(read, 1) == b"x"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert list(trial_folder.iterdir()) == []
    for _count in range(500):  # the kernel is about to end it
        if not processes(marker):
            break
        time.sleep(0.01)
    assert processes(marker) == []
    assert "up" in said(private_root.Plan([program(tmp_path, "echo up\n")], ENVIRONMENT))
    assert not trial_folder.exists()


def test_two_at_once(trial_folder):
    with (
        private_root.Folder(str(trial_folder)),
        pytest.raises(private_root.RootError, match="another"),
        private_root.Folder(str(trial_folder)),
    ):
        pass
    assert not trial_folder.exists()


def test_a_link_in_the_place_of_its_folder(tmp_path, trial_folder):
    trial_folder.parent.mkdir()
    trial_folder.symlink_to("/etc")
    with pytest.raises(private_root.RootError), private_root.Folder(str(trial_folder)):
        pass
    assert trial_folder.is_symlink()


@pytest.mark.parametrize("name", ["gone", "text"])
def test_a_program_that_cannot_be_executed(tmp_path, trial_folder, name):
    (tmp_path / "text").write_text("no program")
    plan = private_root.Plan([str(tmp_path / name)], ENVIRONMENT)
    with pytest.raises(private_root.RootError, match=r"No such file|denied|format"):
        said(plan)
    assert not trial_folder.exists()


def test_a_kernel_that_refuses_namespaces(tmp_path, trial_folder, monkeypatch):
    monkeypatch.setattr(private_root, "NEW_MOUNTS", 1)  # no flag of unshare
    with pytest.raises(private_root.RootError, match="namespaces"):
        said(private_root.Plan([program(tmp_path, "true\n")], ENVIRONMENT))
    assert not trial_folder.exists()


def test_a_kernel_without_overlay(tmp_path, trial_folder, monkeypatch):
    (tmp_path / "filesystems").write_text("nodev\tproc\n\text4\n")
    monkeypatch.setattr(private_root, "LAYERS", str(tmp_path / "filesystems"))
    with pytest.raises(private_root.RootError, match="overlay"):
        said(private_root.Plan([program(tmp_path, "true\n")], ENVIRONMENT))


def test_a_program_in_a_hidden_folder(tmp_path, trial_folder):
    plan = private_root.Plan([program(tmp_path, "true\n")], ENVIRONMENT, hidden=[str(tmp_path)])
    with pytest.raises(private_root.RootError, match="does not see"):
        said(plan)


def test_an_output_without_end_is_bounded(tmp_path, trial_folder, monkeypatch):
    monkeypatch.setattr(private_root, "LONGEST_LOG", 100_000)
    path = program(tmp_path, "while :; do echo 0123456789abcdef0123456789abcdef; done\n")
    plan = private_root.Plan([path], ENVIRONMENT)
    with private_root.Folder(plan.place), private_root.Program(plan) as running:
        running.read(1)
    assert 100_000 <= len(running.text) < 300_000


def test_which_mounts_it_sees(tmp_path):
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS)
    paths = ["/usr/bin/containerd", "/srv/a b/config.toml", "/run/containerd/x/y"]
    plan = private_root.Plan(["/usr/bin/containerd"], {}, paths=paths)
    assert private_root.wanted_mounts(plan, str(table)) == ["/usr", "/srv/a b"]
