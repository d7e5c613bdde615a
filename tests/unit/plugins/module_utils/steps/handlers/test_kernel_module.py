# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module named in a managed file and loaded.

The kernel and modprobe are made up here, so that nothing of this machine changes.
"""

from pathlib import Path

import pytest
from hypothesis import given, strategies

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import node_lock
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import boot
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    step_record,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    kernel_module,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    run as revert_run,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import command
from tests.unit.support.unrecorded_step import NEXT, RUN, recover_unrecorded

NAME = "br_netfilter"


class Node:
    """A kernel without br_netfilter, and the managed file."""

    def __init__(self, path, monkeypatch):
        self.path, self.root = path / "modules-load.d" / "zz-kubemend.conf", str(path / "kubemend")
        self.loaded, self.asked, self.said = {NAME: boot.ABSENT, "overlay": boot.BUILTIN}, [], ""
        monkeypatch.setattr(
            kernel_module.LoadKernelModule, "states", staticmethod(lambda: dict(self.loaded))
        )
        monkeypatch.setattr(command, "complaint", self.modprobe)

    def modprobe(self, argv, seconds):
        assert argv[0] == "modprobe"
        assert seconds == 30
        self.asked.append(argv[1])
        if not self.said:
            self.loaded[argv[1]] = boot.LOADED
        return self.said

    def step(self, name=NAME):
        return {
            "id": "01-load",
            "host": "w1",
            "remedy": "kernel_module",
            "code": ["KM520"],
            "target": str(self.path),
            "guard": {"allow": []},
            "change": {"kind": "kernel_module", "path": str(self.path), "module": name},
        }

    def do(self, name=NAME, check=False):
        return step_executor.work(
            {
                "run_id": RUN,
                "root": self.root,
                "lock": None,
                "check": check,
                "step": self.step(name),
            }
        )

    def forget(self):
        return recover_unrecorded(self.root, "01-load")


@pytest.fixture
def node(tmp_path, monkeypatch):
    return Node(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("held", "state", "words"),
    [("overlay\n", "failed", "it was removed"), (None, "rolled_back", "is as it was")],
)
def test_a_file_that_somebody_takes_away_meanwhile(node, monkeypatch, held, state, words):
    """It is as it was only where there was none."""
    if held:
        node.path.parent.mkdir()
        node.path.write_text(held)
    monkeypatch.setattr(
        command, "complaint", lambda argv, seconds: node.path.unlink() or "FATAL: no such module"
    )
    answer = node.do()
    assert answer["state"] == state
    assert words in answer["reason"]
    assert str(node.path) in answer["reason"]
    assert not node.path.exists()


def test_named_in_the_file_and_loaded(node):
    answer = node.do()
    assert (answer["state"], answer["reason"], answer["changed"]) == (
        "done",
        "",
        True,
    )
    assert node.asked == [NAME]
    assert answer["seen"]["module"] == [NAME, "absent", "loaded"]
    assert node.path.read_text() == kernel_module.HEADER.decode() + "br_netfilter\n"
    assert node.path.stat().st_mode & 0o777 == 0o644


def test_one_that_is_loaded_is_only_named(node):
    node.path.parent.mkdir()
    node.path.write_text("# mine\noverlay")
    node.loaded[NAME] = boot.LOADED
    assert node.do()["state"] == "done"
    assert node.asked == []
    assert node.path.read_text() == "# mine\noverlay\nbr_netfilter\n"


@pytest.mark.parametrize("before", [None, "# mine\noverlay\n", "br-netfilter\n"])
def test_one_that_cannot_be_loaded_leaves_the_file_as_it_was(node, before):
    if before is not None:
        node.path.parent.mkdir()
        node.path.write_text(before)
    node.said = (
        "modprobe: FATAL: Module br_netfilter not found in directory /lib/modules/6.1.0-18-amd64"
    )
    answer = node.do()
    assert answer["state"] == "rolled_back"
    assert "FATAL: Module br_netfilter not found" in answer["reason"]
    assert "is as it was" in answer["reason"]
    assert (node.path.read_text() if node.path.exists() else None) == before
    assert step_record.unproven(node.root) == []


@pytest.mark.parametrize("name", ["evil", "", "../x", "-r", None, "br_netfilter -r"])
def test_only_the_modules_that_are_known(node, name):
    answer = node.do(name)
    assert answer["state"] == "refused"
    assert "is no module that is loaded by this" in answer["reason"]
    assert not node.path.exists()
    assert node.asked == []


def test_a_file_that_is_none_is_left(node):
    node.path.mkdir(parents=True)
    answer = node.do()
    assert answer["state"] == "refused"
    assert "nothing was loaded" in answer["reason"]
    assert node.asked == []
    assert step_record.unproven(node.root) == []


@pytest.mark.parametrize(
    ("written", "told", "loaded"),
    [(True, "is loaded, as", "loaded"), (False, "nothing of it was written", "absent")],
)
def test_killed_between_the_file_and_the_kernel(node, written, told, loaded):
    node.do()
    node.loaded[NAME] = boot.ABSENT
    if not written:
        node.path.unlink()
    answer = node.forget()
    assert answer["state"] == "done"
    assert told in answer["reason"]
    assert node.loaded[NAME] == loaded
    assert step_record.unproven(node.root) == []


@pytest.mark.parametrize(
    "before",
    [None, "", "# mine\noverlay\n", "# mine\noverlay", "br-netfilter\n", "overlay\nbr_netfilter\n"],
)
def test_one_that_was_interrupted_and_cannot_be_loaded_leaves_the_file_as_it_was(node, before):
    if before is not None:
        node.path.parent.mkdir()
        node.path.write_text(before)
    node.do()
    node.loaded[NAME], node.said = boot.ABSENT, "no"
    answer = node.forget()
    assert answer["state"] == "done"
    assert "no" in answer["reason"]
    assert f"{node.path} is as it was" in answer["reason"]
    assert (node.path.read_text() if node.path.exists() else None) == before
    assert step_record.unproven(node.root) == []
    assert step_record.of_run(RUN, node.root)[0]["state"] == step_record.ROLLED_BACK
    runs = revert_run.run({"state": "listed", "root": node.root})["runs"]
    # last means none of it
    assert not [
        one
        for one in runs
        if not one["reverts"] and any(path["state"] == "restore" for path in one["paths"])
    ]


def test_what_somebody_wrote_since_is_left_and_the_way_out_is_told(node):
    node.do()
    text = node.path.read_text() + "nbd\n"
    node.path.write_text(text)
    node.loaded[NAME], node.said = boot.ABSENT, "no"
    answer = node.forget()
    assert answer["state"] == "failed"
    assert f"{node.path} names it" in answer["reason"]
    assert "take that line away" in answer["reason"]
    assert node.path.read_text() == text
    assert step_record.unproven(node.root) == []


def test_under_the_lock_of_its_run_and_never_in_check_mode(node):
    assert node.do(check=True)["state"] == "skipped"
    assert not Path(node.root).exists()
    assert not node.path.exists()
    node_lock.acquire(NEXT, {}, 900, root=node.root)
    params = {
        "run_id": RUN,
        "root": node.root,
        "lock": {"controller": None, "seconds": 60},
        "check": False,
        "step": node.step(),
    }
    assert step_executor.work(params)["state"] == "refused"
    assert node.asked == []
    assert not node.path.exists()


def test_a_revert_takes_the_line_and_leaves_the_module(node):
    node.path.parent.mkdir()
    node.path.write_text("overlay\n")
    node.do()
    done = revert_run.reverted({"run_id": NEXT, "reverts": RUN, "root": node.root, "lock": None})
    assert done["error"] is None
    assert [one["result"] for one in done["paths"]] == ["restored"]
    assert node.path.read_text() == "overlay\n"
    assert node.loaded[NAME] == boot.LOADED
    assert journal.open_entries(node.root) == []


@given(
    strategies.lists(
        strategies.one_of(
            strategies.binary(max_size=12),
            strategies.sampled_from([b"overlay", b"br-netfilter", b"# br_netfilter"]),
        )
    )
)
def test_whatever_the_file_holds_stays(lines):
    present = b"\n".join(lines)
    made = kernel_module.merged(present, NAME)
    assert made.startswith(present)
    assert kernel_module.merged(made, NAME) == made
    assert any(line.strip().replace(b"-", b"_") == NAME.encode() for line in made.split(b"\n"))
