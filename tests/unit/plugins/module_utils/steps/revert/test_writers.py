# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What puts a file back: its former bytes, its attributes, or no file at all."""

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import journal, revert_plan
from ansible_collections.kubemend.remediation.plugins.module_utils.state.storage import ChangeError
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import file_change
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import writers
from tests.unit.support.fake_file_change import AFTER, BEFORE, NEXT, RUN, Node, sha


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def restore(node: Node) -> Any:
    (history,) = revert_plan.histories(RUN, str(node.root))
    item = history["items"][0]
    has_bytes = item["intent"]["before"] is not None
    former = journal.former_bytes(item, str(node.root)) if has_bytes else None
    return writers.FileWriter().restore(history, former, node.step(NEXT))


def test_former_bytes_come_back(node: Node) -> None:
    node.swap()
    assert node.bytes() == AFTER
    assert restore(node)["changed"]
    assert node.bytes() == BEFORE


def test_a_file_that_was_made_goes(node: Node) -> None:
    node.file.unlink()
    file_change.create_file(str(node.file), b"new", node.step())
    assert restore(node)["changed"]
    assert not node.file.exists()


def test_a_file_that_was_removed_comes_back_with_its_mode(node: Node) -> None:
    file_change.move_out(str(node.file), sha(node.bytes()), node.step())
    assert not node.file.exists()
    assert restore(node)["changed"]
    assert node.bytes() == BEFORE
    assert node.file.stat().st_mode & 0o777 == 0o640


def test_foreign_bytes_stay(node: Node) -> None:
    node.swap()
    node.file.write_bytes(b"foreign")
    with pytest.raises(ChangeError):
        restore(node)
    assert node.bytes() == b"foreign"
