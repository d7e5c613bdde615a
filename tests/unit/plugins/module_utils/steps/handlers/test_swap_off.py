# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap switched off on its node.

/proc is a folder here and swapoff a script, so that nothing of this machine changes.
"""

import base64
import hashlib
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    step_record,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    file_change as change,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import swap_off
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    run as revert_run,
)
from tests.unit.support.unrecorded_step import NEXT, RUN, recover_unrecorded

HEAD = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
FSTAB = b"# static\n/swapfile none swap sw 0 0\n\xc3\xa9\r\n"


class Node:
    """A machine with a swap file."""

    def __init__(self, path, monkeypatch):
        self.path, self.proc, self.root = path, path / "proc", str(path / "kubemend")
        self.proc.mkdir()
        self.fstab, self.config = path / "fstab", path / "config.yaml"
        self.fstab.write_bytes(FSTAB)
        self.config.write_text("failSwapOn: true\n")
        self.swaps("/swapfile file 65532 512 -2\n")
        self.memory(2000000)
        self.says("sed -i /swapfile/d %s" % (self.proc / "swaps"))
        monkeypatch.setenv("PATH", "%s:/usr/bin:/bin" % (path / "bin"))
        monkeypatch.setattr(swap_off.SwitchSwapOff, "proc", str(self.proc))

    def swaps(self, text):
        (self.proc / "swaps").write_text(HEAD + text)

    def memory(self, free):
        (self.proc / "meminfo").write_text(f"MemAvailable: {free} kB\n")

    def says(self, script):
        """Tell what swapoff does here."""
        place = self.path / "bin" / "swapoff"
        place.parent.mkdir(exist_ok=True)
        place.write_text('#!/bin/sh\necho "$@" >> {}\n{}\n'.format(self.path / "called", script))
        place.chmod(0o755)

    @property
    def called(self):
        return (self.path / "called").read_text() if (self.path / "called").exists() else ""

    def work(self, remedy, change, step="01-swap", run_id=RUN, check=False):
        return step_executor.work(
            {
                "run_id": run_id,
                "root": self.root,
                "lock": None,
                "check": check,
                "step": {
                    "id": step,
                    "host": "w1",
                    "remedy": remedy,
                    "code": ["KM504"],
                    "target": change["path"],
                    "guard": None,
                    "change": dict(change, kind=remedy),
                },
            }
        )

    def off(self, path="/swapfile", seconds=5, check=False):
        config = [
            {"path": str(self.config), "sha256": hashlib.sha256(b"failSwapOn: true\n").hexdigest()}
        ]
        return self.work(
            "swap_off", {"path": path, "config": config, "seconds": seconds}, check=check
        )

    def comment(self):
        splices = [[9, 9, "", base64.b64encode(b"# kubemend: ").decode()]]
        return self.work(
            "swap_persistence",
            {
                "path": str(self.fstab),
                "sha256": hashlib.sha256(FSTAB).hexdigest(),
                "splices": splices,
            },
        )

    def mask(self):
        return self.work(
            "swap_persistence",
            {"path": str(self.path / "system" / "dev-sda2.swap"), "sha256": None, "splices": []},
            "02-mask",
        )

    def forget(self, step="01-swap"):
        return recover_unrecorded(self.root, step)


@pytest.fixture
def node(tmp_path, monkeypatch):
    return Node(tmp_path, monkeypatch)


def test_the_line_becomes_a_comment_and_every_other_byte_stays(node):
    answer = node.comment()
    assert (answer["state"], answer["reason"], answer["changed"]) == ("done", "", True)
    assert node.fstab.read_bytes() == FSTAB.replace(b"/swapfile", b"# kubemend: /swapfile")
    assert node.called == ""


def test_a_line_that_was_changed_since_is_left(node):
    node.fstab.write_bytes(FSTAB + b"\n")
    answer = node.comment()
    assert answer["state"] == "refused"
    assert "no longer what evidence said" in answer["reason"]
    assert node.fstab.read_bytes() == FSTAB + b"\n"


def test_a_mask_is_an_empty_file_and_is_not_made_over_another(node):
    (node.path / "system").mkdir()
    assert node.mask()["state"] == "done"
    assert (node.path / "system" / "dev-sda2.swap").read_bytes() == b""
    (node.path / "system" / "dev-sda2.swap").write_text("[Swap]\n")
    answer = node.work(
        "swap_persistence",
        {"path": str(node.path / "system" / "dev-sda2.swap"), "sha256": None, "splices": []},
        "03-again",
    )
    assert answer["state"] == "refused"
    assert (node.path / "system" / "dev-sda2.swap").read_text() == "[Swap]\n"


def test_a_revert_puts_the_files_back_and_leaves_swap_off(node):
    (node.path / "system").mkdir()
    assert [one["state"] for one in (node.comment(), node.mask())] == ["done", "done"]
    assert node.work("swap_off", {"path": "/swapfile", "config": []}, "03-off")["state"] == "done"
    done = revert_run.reverted({"run_id": NEXT, "reverts": RUN, "root": node.root, "lock": None})
    assert done["error"] is None
    assert [one["result"] for one in done["paths"]] == [
        "restored",
        "restored",
    ]
    assert node.fstab.read_bytes() == FSTAB
    assert not (node.path / "system" / "dev-sda2.swap").exists()
    assert node.called == "/swapfile\n"
    assert "swapfile" not in (node.proc / "swaps").read_text()


def test_switched_off_and_proven(node):
    answer = node.off()
    assert (answer["state"], answer["reason"], answer["changed"]) == ("done", "", True)
    assert answer["seen"]["off"] == "/swapfile"
    assert node.called == "/swapfile\n"
    assert step_record.read(RUN, "01-swap", node.root)["state"] == "proven"


def test_swap_that_is_off_already_is_not_touched(node):
    node.swaps("/other file 65532 0 -2\n")
    answer = node.off()
    assert answer["state"] == "done"
    assert answer["seen"]["already"]
    assert node.called == ""


@pytest.mark.parametrize(
    ("used", "free"), [(1900001, 2000000), (1897600, 2000000), (512, 1000), (512, "x")]
)
def test_memory_that_does_not_take_it(node, used, free):
    node.swaps(f"/swapfile file 2000000 {used:d} -2\n")
    node.memory(free)
    answer = node.off()
    assert answer["state"] == "refused"
    assert "nothing was switched off" in answer["reason"]
    assert node.called == ""


def test_memory_that_just_takes_it(node):
    node.swaps("/swapfile file 2000000 1897599 -2\n")
    assert node.off()["state"] == "done"
    assert node.called == "/swapfile\n"


def test_an_empty_swap_needs_no_memory(node):
    node.swaps("/swapfile file 65532 0 -2\n")
    node.memory("x")
    assert node.off()["state"] == "done"


@pytest.mark.parametrize("text", ["failSwapOn: false\n", ""])
def test_a_kubelet_that_was_told_otherwise_since(node, text):
    node.config.write_text(text)
    answer = node.off()
    assert answer["state"] == "refused"
    assert "run again" in answer["reason"]
    assert node.called == ""
    node.config.unlink()
    assert node.off()["state"] == "refused"


@pytest.mark.parametrize("text", ["", "nonsense", HEAD + "/swapfile file\n"])
def test_what_cannot_be_read_is_not_switched_off(node, text):
    (node.proc / "swaps").write_text(text)
    assert node.off()["state"] == "refused"
    assert node.called == ""


def test_a_swapoff_that_fails_is_told_and_nothing_else_is_done(node):
    node.says("echo 'swapoff: /swapfile: swapoff failed: Cannot allocate memory' >&2; exit 4")
    answer = node.off()
    assert answer["state"] == "failed"
    assert "Cannot allocate memory" in answer["reason"]
    assert "is still on" in answer["reason"]


def test_a_swapoff_that_says_it_did_and_did_not(node):
    node.says("exit 0")
    assert "swapoff succeeded nevertheless" in node.off()["reason"]


def test_a_swapoff_without_end_is_ended(node):
    node.says("exec sleep 60")
    answer = node.off(seconds=0.3)
    assert answer["state"] == "failed"
    assert "did not end within 0 s and was stopped" in answer["reason"]
    assert answer["seconds"] < 10


def test_check_mode_changes_nothing(node):
    assert node.off(check=True)["state"] == "skipped"
    assert node.called == ""
    assert not Path(node.root).exists()


def test_a_step_is_done_once(node):
    assert node.off()["state"] == "done"
    assert node.off()["state"] == "done"
    assert node.called == "/swapfile\n"


def test_what_was_killed_is_ended_by_what_is_there(node):
    node.off()
    answer = node.forget()
    assert answer["state"] == "done"
    assert "/swapfile is off" in answer["reason"]
    assert step_record.read(RUN, "01-swap", node.root)["state"] == "proven"


def test_what_was_killed_before_it_was_off_is_not_done_by_the_next(node):
    node.off()
    node.swaps("/swapfile file 65532 512 -2\n")
    answer = node.forget()
    assert answer["state"] == "done"
    assert "is still on" in answer["reason"]
    assert node.called == "/swapfile\n"
    assert step_record.read(RUN, "01-swap", node.root)["state"] == "not_done"


@pytest.mark.parametrize("entry", [None, {"end": None}, {"end": {"result": "abandoned"}}])
def test_a_file_whose_step_was_killed_before_it_was_written(entry):
    record = {"remedy": "swap_persistence", "path": "/etc/fstab", "entry": entry}
    assert swap_off.KeepSwapOff().recover(record) == ("not_done", "nothing of it was written")


def test_what_nobody_can_read_after_a_kill_is_not_proven(node):
    node.off()
    (node.proc / "swaps").write_text("nonsense")
    assert "cannot be read" in node.forget()["reason"]
    assert step_record.read(RUN, "01-swap", node.root)["state"] == "failed"


@pytest.mark.parametrize(("changed", "state"), [(True, "failed"), (False, "not_done")])
def test_a_file_that_may_have_been_written_is_no_file_that_was_not(
    node, monkeypatch, changed, state
):
    def fails(*dummy):
        raise storage.ChangeError("the disk is full", changed=changed)

    monkeypatch.setattr(change, "compare_and_swap", fails)
    assert "the disk is full" in node.comment()["reason"]
    assert step_record.read(RUN, "01-swap", node.root)["state"] == state


def test_a_file_whose_step_was_killed(node):
    node.comment()
    assert "is written" in node.forget()["reason"]
    assert step_record.read(RUN, "01-swap", node.root)["state"] == "proven"
