# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal of a node: its entries, their names and their numbers."""

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    file_change,
)
from tests.unit.support.fake_file_change import BEFORE, RUN, SPLICES, Node, sha


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.mark.parametrize("step", ["", "a/../b", "\u00e9" * 200, ".", "x" * 300, "a b\n\0", 7])
def test_any_step_id_is_a_file_name(node: Node, step: Any) -> None:
    file_change.compare_and_swap(str(node.file), sha(BEFORE), SPLICES, node.step().also(step=step))
    (item,) = journal.read_run(RUN, str(node.root))
    assert item["intent"]["step"] == step
    assert len(item["entry"]) < 180
    assert "/" not in item["entry"]
