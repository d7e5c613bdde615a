# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of logins in one managed file.

The node's own ceiling is given, so that nothing of this machine decides.
"""

from pathlib import Path

import pytest
from hypothesis import given, strategies

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import node_lock
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    step_record,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    login_limit,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    run as revert_run,
)
from tests.unit.support.unrecorded_step import NEXT, RUN, recover_unrecorded

ALL, ROOT = "* hard nofile", "root hard nofile"


class Node:
    """A folder limits.d, and what PID 1 and the kernel allow."""

    def __init__(self, path, monkeypatch):
        self.path, self.root = path / "limits.d" / "99-zz-kubemend.conf", str(path / "kubemend")
        self.init = {"nofile": [1024, 4096], "nproc": [100, 5000], "cap_sys_resource": True}
        self.kernel = {"fs.nr_open": "1048576"}
        monkeypatch.setattr(login_limit.limits, "init", lambda: self.init)
        monkeypatch.setattr(login_limit.limits, "kernel", lambda: self.kernel)

    def step(self, lines=None):
        return {
            "id": "01-raise",
            "host": "w1",
            "remedy": "file_limit",
            "code": ["profile"],
            "target": str(self.path),
            "guard": {"allow": []},
            "change": {
                "kind": "file_limit",
                "path": str(self.path),
                "lines": lines or {ALL: 655360, ROOT: 655360},
            },
        }

    def do(self, lines=None, run_id=RUN, **more):
        return step_executor.work(
            {
                "run_id": run_id,
                "root": self.root,
                "lock": None,
                "check": False,
                "step": self.step(lines),
                **more,
            }
        )

    def forget(self):
        return recover_unrecorded(self.root, "01-raise")


@pytest.fixture
def node(tmp_path, monkeypatch):
    return Node(tmp_path, monkeypatch)


def test_written_with_its_header_for_everybody_to_read(node):
    answer = node.do()
    assert (answer["state"], answer["reason"], answer["changed"]) == ("done", "", True)
    assert node.path.read_text() == login_limit.HEADER.decode() + f"{ALL} 655360\n{ROOT} 655360\n"
    assert node.path.stat().st_mode & 0o777 == 0o644


def test_what_else_our_file_holds_stays(node):
    node.path.parent.mkdir()
    node.path.write_text(f"# mine\n*  hard   nofile 5 # low\n@dba - nofile 7\n{ALL} 6")
    assert node.do()["state"] == "done"
    assert (
        node.path.read_text()
        == f"# mine\n{ALL} 655360\n@dba - nofile 7\n{ALL} 655360\n{ROOT} 655360\n"
    )


@pytest.mark.parametrize(
    ("lines", "init", "kernel", "said"),
    [
        ({ALL: 2000000}, {}, {}, "nofile 2000000 is above 1048576 (fs.nr_open)"),
        (
            {ALL: 5000},
            {"cap_sys_resource": False},
            {},
            "nofile 5000 is above 4096 (the hard limit of PID 1",
        ),
        (
            {"* hard nproc": 5001},
            {"cap_sys_resource": False},
            {},
            "nproc 5001 is above 5000 (the hard limit of PID 1",
        ),
        ({ALL: 5}, {"cap_sys_resource": None}, {}, "it is unknown how"),
        ({ALL: 5}, {}, {"fs.nr_open": "many"}, "it is unknown how"),
    ],
)
def test_what_would_lock_out_is_refused_at_the_last_moment(node, lines, init, kernel, said):
    node.init.update(init)
    node.kernel.update(kernel)
    answer = node.do(lines)
    assert answer["state"] == "refused"
    assert said in answer["reason"]
    assert not node.path.parent.exists()
    assert step_record.unproven(node.root) == []


@pytest.mark.parametrize(
    ("lines", "init"),
    [
        ({ALL: 1048576}, {}),
        ({"* hard nproc": 10**6}, {}),
        ({ALL: 9}, {"cap_sys_resource": False}),
        ({"* hard nproc": 10**6}, {"cap_sys_resource": False, "nproc": [-1, -1]}),
    ],
)
def test_up_to_the_ceiling(node, lines, init):
    node.init.update(init)
    assert node.do(lines)["state"] == "done"


def test_a_kind_that_is_not_written_needs_no_ceiling(node):
    node.kernel["fs.nr_open"] = "many"
    assert node.do({"* hard nproc": 10**6})["state"] == "done"


@pytest.mark.parametrize(
    "key",
    [
        "* soft nofile",
        "a b hard nofile",
        "* hard stack",
        "# hard nofile",
        "* hard nofile\n",
        "",
        "*\nroot hard nofile",
    ],
)
def test_nothing_else_is_written(node, key):
    answer = node.do({key: 9})
    assert answer["state"] == "refused"
    assert "is no limit of a login" in answer["reason"]
    assert not node.path.exists()


def test_a_file_that_is_none_is_left(node):
    node.path.mkdir(parents=True)
    assert node.do()["state"] == "refused"
    assert step_record.unproven(node.root) == []


@pytest.mark.parametrize(
    ("written", "told"), [(True, "holds it"), (False, "nothing of it was written")]
)
def test_killed_before_its_end_was_written(node, written, told):
    node.do()
    if not written:
        node.path.unlink()
    answer = node.forget()
    assert answer["state"] == "done"
    assert told in answer["reason"]
    assert step_record.unproven(node.root) == []


def test_killed_and_somebody_else_wrote_the_file(node):
    node.do()
    node.path.write_text(f"{ALL} 5\n")
    assert "nothing of it was written" in node.forget()["reason"]
    assert step_record.read(RUN, "01-raise", node.root)["state"] == "not_done"


def test_under_the_lock_of_its_run_once_and_never_in_check_mode(node):
    assert node.do(check=True)["state"] == "skipped"
    assert not Path(node.root).exists()
    assert not node.path.exists()
    node_lock.acquire(NEXT, {}, 900, root=node.root)
    assert node.do(lock={"controller": None, "seconds": 60})["state"] == "refused"
    assert not node.path.exists()
    node_lock.release(NEXT, root=node.root)
    node.do()
    node.path.unlink()
    assert node.do()["state"] == "done"
    assert not node.path.exists()


@pytest.mark.parametrize("former", [None, "# mine\n* hard nofile 5\n"])
def test_a_revert_brings_the_former_bytes_back(node, former):
    if former:
        node.path.parent.mkdir()
        node.path.write_text(former)
    node.do()
    done = revert_run.reverted({"run_id": NEXT, "reverts": RUN, "root": node.root, "lock": None})
    assert done["error"] is None
    assert [one["result"] for one in done["paths"]] == ["restored"]
    assert (node.path.read_text() if node.path.exists() else None) == former


@given(
    strategies.lists(
        strategies.one_of(
            strategies.binary(max_size=20),
            strategies.sampled_from(
                [b"* hard nofile 5", b"  root\thard nofile 99999999 # x", b"* hard nofile", b"# c"]
            ),
        ),
        max_size=8,
    ).map(b"\n".join)
)
def test_whatever_the_file_holds_every_other_line_stays_and_the_last_of_each_is_ours(present):
    lines = {ALL: 7, ROOT: 8}
    made = login_limit.merged(present, lines)
    assert login_limit.merged(made, lines) == made
    rows = [row.partition(b"#")[0].decode("utf-8", "replace").split() for row in made.splitlines()]
    for key, value in lines.items():
        assert [row[3] for row in rows if len(row) > 3 and " ".join(row[:3]) == key][-1] == str(
            value
        )
    others = [row for row in present.splitlines() if b"hard nofile" not in row]
    assert [row for row in made.splitlines() if b"hard nofile" not in row] == others
