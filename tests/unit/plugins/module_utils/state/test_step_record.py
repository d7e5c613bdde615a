# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a step's proof.

Begun once, by whom, how it ended, and which step a later run has to prove or undo.
"""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import (
    durable_files,
    step_claim,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    step_record,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    file_change,
)
from tests.unit.support.fake_file_change import AFTER, BEFORE, NEXT, RUN, Node, sha
from tests.unit.support.step_records import claim, path, root, state


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_whether_its_program_is_still_at_work(child: "subprocess.Popen[bytes]") -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    by = {"boot_id": boot, "pid": child.pid, "ticks": step_record.ticks(child.pid)}
    assert step_record.alive({"by": by})
    for other in (
        {"boot_id": "another"},
        {"ticks": by["ticks"] - 1},
        {"ticks": None},
        {"pid": None},
        {"pid": os.getpid(), "ticks": step_record.ticks(os.getpid())},
    ):
        assert not step_record.alive({"by": {**by, **other}}), other
    assert not step_record.alive({})
    assert not step_record.alive({"by": None})
    child.kill()
    child.wait()
    assert not step_record.alive({"by": by})
    assert not step_record.alive({"by": {**by, "ticks": None}})


def test_open_is_what_was_begun_and_has_no_end(node: Node) -> None:
    for run_id, name, ends in (
        (NEXT, "01-x", None),
        (RUN, "01-x", step_record.PROVEN),
        (RUN, "02-y", None),
        (RUN, "03-z", step_record.FAILED),
    ):
        claim(node, run_id, name)
        if ends:
            step_claim.end(run_id, name, ends, root=root(node))
    assert [
        (one["run_id"], one["step"], one["running"]) for one in step_record.unproven(root(node))
    ] == [
        (RUN, "02-y", False),
        (NEXT, "01-x", False),
    ]
    assert [(one["step"], one["state"]) for one in step_record.of_run(RUN, root(node))] == [
        ("01-x", "proven"),
        ("02-y", "awaited"),
        ("03-z", "failed"),
    ]


def test_an_open_step_comes_with_its_own_change(node: Node) -> None:
    """Neither with that of another step nor with the one that took it back."""
    claim(node, name="m1:KM101:kube-scheduler")
    assert step_record.unproven(root(node))[0]["entry"] is None
    entry = node.swap()["entry"]
    file_change.replace(str(node.file), sha(AFTER), BEFORE, node.step().also(reverts=entry))
    file_change.replace(str(node.file), sha(BEFORE), b"x", node.step().also(step="02-y"))
    (found,) = step_record.unproven(root(node))
    assert f"{RUN}/{found['entry']['entry']}" == entry
    file_change.replace(str(node.file), sha(b"x"), b"y", node.step())
    assert step_record.unproven(root(node))[0]["entry"]["intent"]["sha256_after"] == sha(b"y")


def test_a_component_failed_where_its_newest_step_did(node: Node) -> None:
    for run_id, name, component, ends in (
        (RUN, "01-x", "kube-scheduler", step_record.FAILED),
        (RUN, "02-y", "etcd", step_record.FAILED),
        (RUN, "03-z", None, step_record.FAILED),
        (NEXT, "01-x", "kube-scheduler", step_record.PROVEN),
        (NEXT, "02-y", "kubelet", step_record.ROLLED_BACK),
    ):
        claim(node, run_id, name, component=component)
        step_claim.end(run_id, name, ends, root=root(node))
    assert {
        name: record["run_id"] for name, record in step_record.failures(root(node)).items()
    } == {"etcd": RUN}


def test_only_records_of_proofs_are_read(node: Node) -> None:
    claim(node)
    for name in ("proof-01.json.tmp", "001-proof-x.json", "note.json"):
        (path(node).parent / name).write_text("{}")
    assert len(step_record.of_run(RUN, root(node))) == len(step_record.unproven(root(node))) == 1


def test_a_step_of_any_name_has_its_record(node: Node) -> None:
    for name in ("a/../b", "x" * 300, "\u00e9", "001"):
        assert claim(node, name=name) is None
        assert state(node, name=name) == "awaited"
        assert step_record.name_of(name).startswith("proof-")
        assert step_record.name_of(name).endswith(".json")
        assert "/" not in step_record.name_of(name)


def test_a_run_that_is_at_work_keeps_its_node_busy_for_an_end(node: Node) -> None:
    """A record is written under the same flock as a change: no process reads half of one."""
    claim(node)
    held = []
    put = durable_files.put

    def look(*given: Any) -> None:
        held.append(storage.busy(root(node)))
        put(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(durable_files, "put", look)
        step_claim.tell(RUN, "01-x", "halfway", root(node))
        step_claim.end(RUN, "01-x", step_record.PROVEN, root=root(node))
        claim(node, name="02-y")
    assert held == [True, True, True]
    assert journal.run_ids(root(node)) == [RUN]
