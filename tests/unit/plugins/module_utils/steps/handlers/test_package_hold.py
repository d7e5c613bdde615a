# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages on hold: dpkg's status file and apt-mark are made up here.

What apt-mark does with names, architectures and locks was tried with apt 2.6 and dpkg 1.21.
"""

import fcntl
import os
import re
import signal
import time
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import node_lock
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    package_target,
    step_record,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    package_hold,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    run as revert_run,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import command
from tests.unit.support import child_process
from tests.unit.support.facts import facts
from tests.unit.support.unrecorded_step import NEXT, RUN, recover_unrecorded

BLOCK = "Package: {}\nStatus: {} ok installed\nPriority: optional\nArchitecture: {}\nVersion: 1\n"
PACKAGES = (
    ("containerd", "install", "amd64"),
    ("libnvidia-compute-535", "install", "amd64"),
    ("libnvidia-compute-535", "install", "i386"),
    ("nvidia-dkms-535", "install", "all"),
    ("runc", "install", "amd64"),
    ("bash", "install", "amd64"),
)
NAMES = ["containerd", "libnvidia-compute-535", "nvidia-dkms-535"]
KEYS = [
    "containerd:amd64",
    "libnvidia-compute-535:amd64",
    "libnvidia-compute-535:i386",
    "nvidia-dkms-535",
]


class Node:
    """A node of Debian with some packages, none of them on hold."""

    def __init__(self, path, monkeypatch):
        self.files, self.root = path / "files", str(path / "kubemend")
        self.dpkg = self.files / "var/lib/dpkg"
        (self.dpkg / "updates").mkdir(parents=True)
        programs = self.files / "bin"
        programs.mkdir()
        self.program = programs / "apt-mark"
        self.program.touch(0o755)
        self.status = self.dpkg / "status"
        self.write(PACKAGES)
        self.fails = {}  # the word of apt-mark -> what it complains of
        monkeypatch.setattr(package_target, "ROOT", str(self.files))
        monkeypatch.setattr(package_hold, "_folders", lambda: [str(programs)])
        monkeypatch.setattr(command, "complaint", self.apt_mark)

    def write(self, packages):
        fresh = self.dpkg / "status-new"
        fresh.write_text("\n".join(BLOCK.format(*package) for package in packages))
        fresh.rename(self.status)

    def packages(self):
        """Return (name, selection, architecture) of each package."""
        form = re.escape(BLOCK).replace(r"\{\}", "(.*)")
        return re.findall(form, self.status.read_text())

    def held(self):
        """Return the packages that are on hold."""
        return [
            f"{name}:{arch}" for name, selection, arch in self.packages() if selection == "hold"
        ]

    def apt_mark(self, argv, seconds):
        """Change the selections as apt-mark does it: all of a call at once."""
        assert (argv[0], seconds) == ("apt-mark", 60)
        if self.fails.get(argv[1]):
            return self.fails[argv[1]]
        selection = {"hold": "hold", "unhold": "install"}[argv[1]]
        self.select(argv[2:], selection)
        return ""

    def select(self, keys, selection):
        rows = []
        for name, former, arch in self.packages():
            is_meant = f"{name}:{arch}" in keys or (name in keys and arch in ("all", "amd64"))
            rows.append((name, selection if is_meant else former, arch))
        self.write(rows)

    def step(self, names=None):
        return {
            "id": "01-hold",
            "host": "w1",
            "remedy": "hold_packages",
            "code": ["KM702"],
            "target": "selections of packages",
            "guard": {"allow": []},
            "change": {
                "kind": "hold_packages",
                "path": "selections of packages",
                "packages": NAMES if names is None else names,
            },
        }

    def do(self, names=None, check=False):
        return step_executor.work(
            {
                "run_id": RUN,
                "root": self.root,
                "lock": None,
                "check": check,
                "step": self.step(names),
            }
        )

    def forget(self):
        return recover_unrecorded(self.root, "01-hold")

    def revert(self):
        return revert_run.reverted(
            {"run_id": NEXT, "reverts": RUN, "root": self.root, "lock": None}
        )


@pytest.fixture
def node(tmp_path, monkeypatch):
    return Node(tmp_path, monkeypatch)


@pytest.fixture
def locked(node):
    """Return a process that holds a lock of dpkg, as one that upgrades packages does."""
    path = node.dpkg / "lock-frontend"
    path.touch()

    def hold():
        fd = os.open(path, os.O_RDWR)
        fcntl.lockf(fd, fcntl.LOCK_EX)
        (node.dpkg / "ready").touch()
        time.sleep(600)  # the test ends it

    child = child_process.fork(hold)
    while not (node.dpkg / "ready").exists():
        time.sleep(0.01)
    yield child
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_packages_of_all_their_architectures_are_held(node):
    answer = node.do()
    assert (answer["state"], answer["reason"], answer["changed"]) == ("done", "", True)
    assert sorted(node.held()) == [*KEYS[:3], "nvidia-dkms-535:all"]
    assert answer["seen"]["selections"] == {key: ["install", "hold"] for key in KEYS}
    assert step_record.unproven(node.root) == []


def test_packages_that_are_held_already(node):
    node.select(KEYS, "hold")
    answer = node.do()
    assert answer["state"] == "done"
    assert "already" in answer["reason"]
    assert not journal.read_run(RUN, node.root)


def test_one_that_is_held_already_stays_so_after_a_revert(node):
    node.select(["containerd:amd64"], "hold")
    assert node.do()["state"] == "done"
    done = node.revert()
    assert [one["result"] for one in done["paths"]] == ["restored"]
    assert node.held() == ["containerd:amd64"]


def test_a_package_manager_that_works_is_not_disturbed(node, locked):
    answer = node.do()
    assert answer["state"] == "refused"
    facts(answer["reason"], f"process {locked}", "/var/lib/dpkg/lock-frontend", "let it end")
    assert node.held() == []
    assert node.do(check=True)["state"] == "refused"


def test_a_dpkg_that_was_interrupted(node):
    (node.dpkg / "updates/0003").touch()
    answer = node.do()
    assert answer["state"] == "refused"
    assert "dpkg --configure -a" in answer["reason"]


@pytest.mark.parametrize(
    "names",
    [
        [],
        None,
        "containerd",
        ["bash"],
        ["containerd", "bash"],
        ["--yes"],
        ["nvidia-driver-5; reboot"],
        [7],
        ["containerd:amd64"],
    ],
)
def test_only_packages_that_are_of_interest(node, names):
    step = node.step()
    step["change"]["packages"] = names
    answer = step_executor.work({"run_id": RUN, "root": node.root, "lock": None, "step": step})
    assert answer["state"] == "refused"
    assert node.held() == []
    assert step_record.unproven(node.root) == []


def test_a_package_that_is_gone(node):
    answer = node.do(["containerd", "docker.io"])
    assert answer["state"] == "refused"
    facts(answer["reason"], "docker.io of w1", "is not installed")
    assert node.held() == []


def test_a_package_that_somebody_removes(node):
    node.select(["containerd:amd64"], "deinstall")
    answer = node.do()
    assert answer["state"] == "refused"
    facts(answer["reason"], "containerd:amd64 (deinstall) of w1", "something else")


def test_a_machine_without_apt_mark(node):
    node.program.unlink()
    answer = node.do()
    assert answer["state"] == "refused"
    assert "has no apt-mark" in answer["reason"]


def test_a_status_that_cannot_be_read(node):
    node.status.unlink()
    answer = node.do()
    assert answer["state"] == "refused"
    assert "/var/lib/dpkg/status cannot be read" in answer["reason"]


def test_an_apt_mark_that_is_refused_changes_nothing(node):
    node.fails["hold"] = "dpkg: error: dpkg frontend lock was locked by another process"
    answer = node.do()
    assert answer["state"] == "refused"
    assert "dpkg frontend lock" in answer["reason"]
    assert journal.open_entries(node.root) == []
    assert step_record.unproven(node.root) == []


def test_some_of_them_held_is_none_of_them_held(node, monkeypatch):
    def some(argv, seconds):
        node.select(
            argv[2:3] if argv[1] == "hold" else argv[2:], {"hold": "hold"}.get(argv[1], "install")
        )
        return "E: it ended half way"

    monkeypatch.setattr(command, "complaint", some)
    answer = node.do()
    assert answer["state"] == "refused"
    assert "half way" in answer["reason"]
    assert node.held() == []
    assert journal.open_entries(node.root) == []


def test_what_is_held_in_part_and_stays_so_is_told_and_stays_open(node, monkeypatch):
    def some(argv, seconds):
        if argv[1] == "hold":
            node.select(argv[2:3], "hold")
        return "E: no"

    monkeypatch.setattr(command, "complaint", some)
    answer = node.do()
    assert answer["state"] == "failed"
    assert "stays open" in answer["reason"]
    assert len(journal.open_entries(node.root)) == 1
    answer = node.forget()
    assert answer["state"] == "done"
    assert journal.open_entries(node.root) == []
    assert node.held() == ["containerd:amd64"]


@pytest.mark.parametrize(("is_held", "words"), [(True, "are on hold"), (False, "is not on hold")])
def test_killed_before_its_end_was_recorded(node, is_held, words):
    node.do()
    if not is_held:
        node.select(KEYS, "install")
    answer = node.forget()
    assert answer["state"] == "done"
    assert words in answer["reason"]
    assert step_record.unproven(node.root) == []


def test_a_package_that_was_removed_since_is_not_on_hold(node):
    node.do()
    node.write([package for package in PACKAGES if package[0] == "bash"])
    answer = node.forget()
    assert answer["state"] == "done"
    assert "containerd:amd64" in answer["reason"]
    assert "is not on hold" in answer["reason"]
    assert step_record.of_run(RUN, node.root)[0]["state"] == step_record.NOT_DONE


def test_while_packages_are_changed_it_stays_open(node, request):
    node.do()
    request.getfixturevalue("locked")
    answer = node.forget()
    assert answer["state"] == "failed"
    assert "holds /var/lib/dpkg/lock-frontend" in answer["reason"]
    assert step_record.unproven(node.root)


def test_under_the_lock_of_its_run_and_never_in_check_mode(node):
    assert node.do(check=True)["state"] == "skipped"
    assert not Path(node.root).exists()
    assert node.held() == []
    node_lock.acquire(NEXT, {}, 900, root=node.root)
    lock = {"controller": None, "seconds": 60}
    params = {"run_id": RUN, "root": node.root, "lock": lock, "step": node.step()}
    assert step_executor.work(params)["state"] == "refused"
    assert node.held() == []


def test_a_revert_gives_them_their_former_selections(node):
    node.do()
    done = node.revert()
    assert done["error"] is None
    assert [one["result"] for one in done["paths"]] == ["restored"]
    assert node.held() == []
    assert journal.open_entries(node.root) == []


def test_a_revert_leaves_what_somebody_changed_since(node):
    node.do()
    node.select(["containerd:amd64"], "deinstall")
    done = node.revert()
    assert [one["result"] for one in done["paths"]] != ["restored"]
    assert len(node.held()) == 3


def test_a_revert_waits_for_a_package_manager(node, request):
    node.do()
    request.getfixturevalue("locked")
    done = node.revert()
    assert [one["result"] for one in done["paths"]] != ["restored"]
    assert len(node.held()) == 4


@pytest.mark.parametrize("data", [b"x\n", b"a;b\thold\n", b"containerd\tho ld\n"])
def test_a_journal_that_names_something_else(data):
    with pytest.raises(package_target.ChangeError):
        package_target.decoded(data)
