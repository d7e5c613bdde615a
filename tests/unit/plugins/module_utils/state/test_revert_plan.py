# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a revert of a run would do, file by file."""

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    revert_plan,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    file_change,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    files as revert_files,
)
from tests.unit.support.facts import facts
from tests.unit.support.fake_file_change import AFTER, BEFORE, NEXT, RUN, Node, sha

THIRD = "20261121T110000Z-aaaaaa"


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def _revert(node: Node, run_id: str = RUN, by: str = NEXT, **more: Any) -> list[str]:
    return [one["result"] for one in revert_files.revert(run_id, node.step(by), **more)]


@pytest.mark.parametrize("by", [RUN, NEXT])
@pytest.mark.parametrize("same", [True, False])
def test_what_was_put_back_and_changed_again_by_a_later_run_is_no_conflict(
    node: Node, by: str, same: bool
) -> None:
    """As two captures one after the other.

    The first one's bytes may even be those that are there now.
    """
    node.swap()
    _revert(node, by=by)
    file_change.replace(str(node.file), sha(BEFORE), AFTER if same else b"later", node.step(THIRD))
    (one,) = revert_plan.plan_revert(RUN, str(node.root))
    assert one["state"] == "undone"
    facts(one["reason"], "put back", f"run {THIRD}", "changed")
    assert _revert(node, by="20261121T120000Z-bbbbbb") == ["already"]
    assert node.bytes() == (AFTER if same else b"later")
    assert revert_plan.plan_revert(THIRD, str(node.root))[0]["state"] == "restore"


def test_what_was_put_back_and_changed_by_somebody_since(node: Node) -> None:
    node.swap()
    _revert(node, by=RUN)
    node.file.write_bytes(b"theirs")
    (change,) = revert_plan.plan_revert(RUN, str(node.root))
    facts(change["reason"], "put back", "changed")


def test_changes_with_somebody_elses_between_are_stretches(node: Node) -> None:
    node.swap()
    node.file.write_bytes(b"theirs")
    file_change.replace(str(node.file), sha(b"theirs"), b"last", node.step())
    states = [
        (one["state"], one["sha256_former"]) for one in revert_plan.plan_revert(RUN, str(node.root))
    ]
    assert states == [("restore", sha(b"theirs")), ("conflict", sha(BEFORE))]
    assert _revert(node) == ["restored", "refused"]
    assert node.bytes() == b"theirs"
    assert _revert(node) == ["already", "refused"]
    assert node.bytes() == b"theirs"


def test_an_unknown_run(node: Node) -> None:
    with pytest.raises(storage.ChangeError, match="knows no run " + RUN):
        revert_plan.plan_revert(RUN, str(node.root))
