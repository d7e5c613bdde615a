# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries of the journal as they are written."""

from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    file_change,
)
from tests.unit.support.fake_file_change import BEFORE, RUN, Node, sha


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_entries_are_numbered(node: Node) -> None:
    texts = [BEFORE + b"%d" % number for number in range(12)]
    for old, new in zip([BEFORE, *texts], texts, strict=False):
        file_change.replace(str(node.file), sha(old), new, node.step())
    entries = [item["entry"] for item in journal.read_run(RUN, str(node.root))]
    assert [int(entry[:3]) for entry in entries] == list(range(1, 13))
    (run,) = node.runs()
    assert (run["entries"], run["committed"], run["pending"], run["paths"]) == (
        12,
        12,
        0,
        [str(node.file)],
    )
