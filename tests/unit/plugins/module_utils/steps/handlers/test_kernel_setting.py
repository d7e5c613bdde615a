# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel settings raised in one managed file and in the kernel.

The kernel is a folder here, so that nothing of this machine changes.
"""

from pathlib import Path

import pytest
from hypothesis import given, strategies

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import (
    node_lock,
    step_claim,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    step_record,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    preconditions,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    kernel_setting,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    run as revert_run,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    running_limits,
)
from tests.unit.support.fake_kernel_setting import KEY, NEXT, OTHER, RUN, Node


@pytest.fixture
def node(tmp_path, monkeypatch):
    return Node(tmp_path, monkeypatch)


def test_raised_in_the_file_and_in_the_kernel(node):
    answer = node.do({KEY: 8192, OTHER: 2097152})
    assert (answer["state"], answer["reason"], answer["changed"]) == ("done", "", True)
    assert (
        node.value(),
        node.value(OTHER),
    ) == (8192, 2097152)
    assert answer["seen"]["settings"] == {KEY: [128, 8192], OTHER: [800000, 2097152]}
    assert (
        node.path.read_text()
        == kernel_setting.HEADER.decode()
        + "fs.file-max = 2097152\nfs.inotify.max_user_instances = 8192\n"
    )
    assert node.path.stat().st_mode & 0o777 == 0o644


def test_nothing_is_lowered(node):
    node.place(KEY).write_text("16384\n")
    node.path.parent.mkdir()
    node.path.write_text("# mine\nfs.file-max = 9000000 \nvm.max_map_count=262144")
    assert node.do({KEY: 8192, OTHER: 2097152})["state"] == "done"
    assert (
        node.value(),
        node.value(OTHER),
    ) == (16384, 2097152)
    assert (
        node.path.read_text()
        == "# mine\nfs.file-max = 9000000 \nvm.max_map_count=262144\nfs.inotify.max_user_instances"
        " = 16384\n"
    )


def test_what_the_kernel_does_not_take_is_taken_back(node, monkeypatch):
    monkeypatch.setattr(
        kernel_setting,
        "set_running",
        lambda raised, kernel, host, lower: "it is 128 after 8192 was written",
    )
    answer = node.do()
    assert answer["state"] == "rolled_back"
    assert "as it was" in answer["reason"]
    assert not node.path.exists()
    assert node.value() == 128


def test_a_kernel_that_keeps_its_value(node, monkeypatch):
    monkeypatch.setattr(kernel_setting, "read", lambda key, kernel, host: 128)
    answer = node.do()
    assert answer["state"] == "rolled_back"
    assert "is 128 after 8192 was written" in answer["reason"]
    assert not node.path.exists()


def test_a_setting_that_is_gone_meanwhile(node):
    """A setting that is gone can neither be raised nor put back.

    The result says so, and the interrupted step is not proven.
    """
    assert "fs.none of w1 was not brought to 5" in kernel_setting.set_running(
        {"fs.none": 5}, str(node.kernel), "w1"
    )
    node.do()
    node.place(KEY).unlink()
    assert "was not brought to 8192" in node.forget()["reason"]
    assert step_record.read(RUN, "01-raise", node.root)["state"] == "failed"


def test_what_cannot_be_lowered_again_is_said(node, monkeypatch):
    monkeypatch.setattr(
        kernel_setting,
        "set_running",
        lambda raised, kernel, host, lower: node.place(KEY).unlink() or "it was refused",
    )
    answer = node.do()
    assert answer["state"] == "failed"
    assert f"it was refused; and {KEY} of w1 is not 128 again" in answer["reason"]
    assert not node.path.exists()


def test_a_line_that_says_it_already_stays_as_it_is_written():
    assert (
        kernel_setting.merged(b"fs.file-max=5 \nfs/file-max = 6\n", {OTHER: 5})
        == b"fs.file-max=5 \nfs/file-max = 6\n"
    )


def test_a_setting_that_is_no_number_is_refused_before_any_is_raised(node):
    node.place(KEY).write_text("128 256\n")
    answer = node.do({OTHER: 2097152, KEY: 8192})
    assert answer["state"] == "refused"
    assert "is no number" in answer["reason"]
    assert node.value(OTHER) == 800000
    assert not node.path.exists()


def test_half_of_it_is_lowered_again(node, monkeypatch):
    run = kernel_setting.set_running
    monkeypatch.setattr(
        kernel_setting,
        "set_running",
        lambda raised, kernel, host, lower: (
            run({OTHER: raised[OTHER]}, kernel, host) or "the other was refused"
        ),
    )
    node.path.parent.mkdir()
    node.path.write_text("vm.max_map_count = 262144\n")
    answer = node.do({OTHER: 2097152, KEY: 8192})
    assert answer["state"] == "rolled_back"
    assert node.value(OTHER) == 800000
    assert node.path.read_text() == "vm.max_map_count = 262144\n"


@pytest.mark.parametrize(
    "key", ["fs..file-max", "../etc/passwd", "fs/file-max", "", "fs.file-max\n"]
)
def test_a_name_that_leads_elsewhere_is_refused(node, key):
    answer = node.do({key: 1})
    assert answer["state"] == "refused"
    assert "is no name of a kernel setting" in answer["reason"]
    assert not node.path.exists()


def test_a_file_that_is_none_is_left(node):
    node.path.mkdir(parents=True)
    answer = node.do()
    assert answer["state"] == "refused"
    assert "the kernel was given nothing" in answer["reason"]
    assert node.value() == 128
    assert step_record.unproven(node.root) == []


@pytest.mark.parametrize(
    ("written", "told", "value"),
    [(True, "the kernel has what", 8192), (False, "nothing of it was written", 128)],
)
def test_killed_between_the_file_and_the_kernel(node, written, told, value):
    node.do()
    node.place(KEY).write_text("128\n")
    if not written:
        node.path.unlink()
    answer = node.forget()
    assert answer["state"] == "done"
    assert told in answer["reason"]
    assert node.value() == value
    assert step_record.unproven(node.root) == []


def test_killed_and_somebody_else_wrote_the_file(node):
    node.do()
    node.place(KEY).write_text("128\n")
    node.path.write_text(f"{KEY} = 500\n")
    assert "nothing of it was written" in node.forget()["reason"]
    assert node.value() == 128
    assert step_record.read(RUN, "01-raise", node.root)["state"] == "not_done"


def test_the_same_step_is_not_done_twice(node):
    node.do()
    node.place(KEY).write_text("128\n")
    assert node.do()["state"] == "done"
    assert node.value() == 128


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
    assert node.value() == 128
    assert not node.path.exists()


LINES = strategies.lists(
    strategies.one_of(
        strategies.binary(max_size=20),
        strategies.sampled_from(
            [
                b"fs.file-max = 1",
                b" fs/file-max=99999999999 ",
                b"vm.max_map_count",
                b"fs.inotify.max_user_instances = x",
                b"# c",
            ]
        ),
    ),
    max_size=8,
).map(b"\n".join)


@given(
    LINES,
    strategies.dictionaries(
        strategies.sampled_from([KEY, OTHER, "vm.max_map_count"]), strategies.integers(0, 2**40)
    ),
)
def test_whatever_the_file_holds_every_other_line_stays_and_the_values_are_there(present, raised):
    made = kernel_setting.merged(present, raised)
    assert kernel_setting.merged(made, raised) == made
    held = {}
    for line in made.splitlines():
        key, equal, value = line.partition(b"=")
        if equal and value.strip().isdigit():
            held[key.strip().decode("utf-8", "replace").replace("/", ".")] = int(value)
    assert all(held[key] >= number for key, number in raised.items())
    comments = [
        line for line in (present or kernel_setting.HEADER).splitlines() if b"=" not in line
    ]
    assert comments == [line for line in made.splitlines() if b"=" not in line]


def test_a_name_is_checked_before_it_is_a_path():
    with pytest.raises(preconditions.PreconditionFailed):
        kernel_setting.place("fs.inotify/../../etc")


def test_what_was_done_is_told_where_it_cannot_be_recorded(node, monkeypatch):
    """A disk that fills up between the write and its record.

    It is done, the record stays open, and the next run ends it.
    """

    def full(*dummy, **more):
        raise storage.ChangeError("how step 01-raise ended was not recorded: no space")

    with monkeypatch.context() as patched:
        patched.setattr(step_claim, "end", full)
        answer = node.do()
    assert (answer["state"], answer["changed"], node.value()) == ("done", True, 8192)
    assert "not recorded" in answer["reason"]
    assert "KM902" in answer["reason"]
    assert len(step_record.unproven(node.root)) == 1
    assert node.forget()["state"] == "done"
    assert step_record.unproven(node.root) == []


# A line of somebody else's file


OTHERS = b"# theirs\r\nfs.inotify.max_user_instances = 200 \r\nvm.swappiness=1\xff\r\n"


class Foreign(Node):
    """The line of another file that is read after kubemend's."""

    def __init__(self, path, monkeypatch):
        super().__init__(path, monkeypatch)
        self.path = path / "sysctl.d" / "99-zzz.conf"
        self.path.parent.mkdir()
        self.path.write_bytes(OTHERS)
        self.path.chmod(0o600)
        self.line = {"number": 2, "text": f"{KEY} = 200 \r"}

    def step(self, settings=None):
        step = super().step(settings)
        return {**step, "change": {**step["change"], "line": self.line}}


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    return Foreign(tmp_path, monkeypatch)


def test_a_line_of_another_file_is_raised_and_nothing_else_of_it_changes(foreign):
    assert foreign.do(check=True)["state"] == "skipped"
    assert foreign.path.read_bytes() == OTHERS
    assert foreign.value() == 128
    answer = foreign.do()
    assert (answer["state"], foreign.value(), foreign.path.read_bytes()) == (
        "done",
        8192,
        OTHERS.replace(b"200", b"8192"),
    )
    assert foreign.path.stat().st_mode & 0o777 == 0o600
    back = revert_run.run(
        {
            "state": "reverted",
            "run_id": NEXT,
            "reverts": RUN,
            "host": "w1",
            "root": foreign.root,
            "lock": None,
            "allow": ["revert_runtime"],
        }
    )
    assert (back["error"], foreign.path.read_bytes(), foreign.value()) == (None, OTHERS, 128)


@pytest.mark.parametrize(
    ("bytes_now", "line"),
    [
        (OTHERS.replace(b"200", b"300"), {}),
        (b"", {}),
        (b"\n" + OTHERS, {}),
        (OTHERS, {"number": 0}),
        (OTHERS, {"number": 3, "text": "vm.swappiness=1\ufffd\r"}),
    ],
)
def test_a_line_that_is_another_one_meanwhile_is_left_as_it_is(foreign, bytes_now, line):
    foreign.path.write_bytes(bytes_now)
    foreign.line.update(line)
    for check in (True, False):
        answer = foreign.do(check=check)
        assert (answer["state"], foreign.value(), foreign.path.read_bytes()) == (
            "refused",
            128,
            bytes_now,
        )
        assert "is no longer" in answer["reason"]


def test_a_file_that_is_gone_meanwhile_is_not_made(foreign):
    foreign.path.unlink()
    assert foreign.do()["state"] == "refused"
    assert not foreign.path.exists()
    assert foreign.value() == 128


def test_what_the_kernel_does_not_take_gives_the_line_back(foreign, monkeypatch):
    monkeypatch.setattr(
        kernel_setting,
        "set_running",
        lambda raised, kernel, host, lower: "it is 128 after 8192 was written",
    )
    assert foreign.do()["state"] == "rolled_back"
    assert foreign.path.read_bytes() == OTHERS


@pytest.mark.parametrize(
    ("written", "state"), [(True, "proven"), (False, "not_done"), (None, "not_done")]
)
def test_an_interrupted_raise_of_a_line_is_ended(foreign, written, state):
    foreign.do()
    foreign.place(KEY).write_text("128\n")
    if not written:
        foreign.path.write_bytes(OTHERS if written is False else b"somebody else's\n")
    foreign.forget()
    assert step_record.read(RUN, "01-raise", foreign.root)["state"] == state
    assert foreign.value() == (8192 if written else 128)


# Lowered, where a step says so


def lower(node, value=64, running=128, **more):
    step = node.step({KEY: value})
    step["change"].update({"lower": True, "running": running})
    return step_executor.work(
        dict({"run_id": RUN, "root": node.root, "lock": None, "check": False, "step": step}, **more)
    )


def test_lowered_in_the_file_and_in_the_kernel(node):
    node.path.parent.mkdir()
    node.path.write_text(f"# mine\n{KEY} = 128\nvm.max_map_count=262144\n")
    assert lower(node, check=True)["state"] == "skipped"
    assert node.value() == 128
    assert "128" in node.path.read_text()
    answer = lower(node)
    assert (answer["state"], answer["seen"]["settings"], node.value()) == (
        "done",
        {KEY: [128, 64]},
        64,
    )
    assert node.path.read_text() == f"# mine\n{KEY} = 64\nvm.max_map_count=262144\n"


def test_only_what_the_plan_saw_is_lowered(node):
    answer = lower(node, running=100)
    assert answer["state"] == "refused"
    assert "is 128, not 100" in answer["reason"]
    assert node.value() == 128
    assert not node.path.exists()


def test_what_has_the_number_meanwhile_is_written_down(node):
    """As on nodes that share a kernel, of which another one was first."""
    node.place(KEY).write_text("64\n")
    assert lower(node)["state"] == "done"
    assert node.value() == 64
    assert "= 64" in node.path.read_text()


def test_killed_before_the_kernel_was_told_to_lower(node):
    lower(node)
    node.place(KEY).write_text("128\n")
    assert node.forget()["state"] == "done"
    assert node.value() == 64


@pytest.mark.parametrize("now", [999, 32])
def test_killed_and_changed_by_somebody_since_is_left(node, now):
    lower(node)
    node.place(KEY).write_text(f"{now:d}\n")
    assert (
        f"is {now:d}, neither what was before (128) nor what was asked for (64)"
        in node.forget()["reason"]
    )
    assert node.value() == now
    assert step_record.read(RUN, "01-raise", node.root)["state"] == "failed"


def test_killed_and_its_setting_is_gone(node):
    lower(node)
    node.place(KEY).unlink()
    assert "cannot be read" in node.forget()["reason"]
    assert step_record.read(RUN, "01-raise", node.root)["state"] == "failed"


def test_a_revert_raises_again_what_was_lowered_without_any_word(node):
    lower(node)
    rows = running_limits.rows(RUN, node.root, [])
    assert [(one["state"], one["reason"]) for one in rows] == [("restore", None)]
    assert node.value() == 64
    done = revert_run.reverted(
        {"run_id": NEXT, "reverts": RUN, "root": node.root, "lock": None, "allow": []}
    )
    assert done["error"] is None
    assert {one["result"] for one in done["paths"]} == {"restored"}
    assert node.value() == 128
    assert not node.path.exists()


def test_a_revert_leaves_what_somebody_set_since(node):
    lower(node)
    node.place(KEY).write_text("999\n")
    (row,) = running_limits.rows(RUN, node.root, [], act=True)
    assert (row["state"], row["result"]) == ("conflict", "refused")
    assert "it was changed since" in row["reason"]
    assert node.value() == 999
