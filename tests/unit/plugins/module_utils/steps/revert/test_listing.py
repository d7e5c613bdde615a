# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runs that a node lists for a revert."""

from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import listing
from tests.unit.support.fake_file_change import AFTER, BEFORE, NEXT, RUN, Node, sha


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_node_without_a_journal_gets_none(node: Node) -> None:
    assert listing.listed(str(node.root))["runs"] == []
    assert not node.root.exists()


def test_a_run_with_the_state_of_its_files(node: Node) -> None:
    node.swap()
    found = listing.listed(str(node.root))
    assert (found["busy"], found["error"], found["truncated"]) == (False, None, False)
    (run,) = found["runs"]
    (path,) = run["paths"]
    assert (run["run_id"], run["reverts"], run["error"]) == (RUN, [], None)
    assert set(path) == set(listing.SHOWN)
    assert (path["path"], path["state"], path["sha256_left"], path["sha256_former"]) == (
        str(node.file),
        "restore",
        sha(AFTER),
        sha(BEFORE),
    )
    assert path["steps"] == ["m1:KM101:kube-scheduler"]
    node.file.write_bytes(b"foreign")
    assert listing.listed(str(node.root))["runs"][0]["paths"][0]["state"] == "conflict"


def test_the_newest_come_first_and_the_rest_is_said(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.swap()
    node.file.write_bytes(BEFORE)
    node.swap(NEXT)
    assert [run["run_id"] for run in listing.listed(str(node.root))["runs"]] == [NEXT, RUN]
    monkeypatch.setattr(listing, "MAX_RUNS", 1)
    found = listing.listed(str(node.root))
    assert ([run["run_id"] for run in found["runs"]], found["truncated"]) == ([NEXT], True)


def test_a_run_that_changed_no_file_is_listed_apart(node: Node) -> None:
    (node.root / "journal" / RUN).mkdir(parents=True)
    node.swap(NEXT)
    found = listing.listed(str(node.root))
    assert ([run["run_id"] for run in found["runs"]], found["empty"]) == ([NEXT], [RUN])


def test_a_run_whose_journal_cannot_be_read_names_its_error(node: Node) -> None:
    node.swap()
    (intent,) = [
        path
        for path in (node.root / "journal" / RUN).glob("*.json")
        if not path.name.endswith(".end.json")
    ]
    intent.write_text("{")
    (run,) = listing.listed(str(node.root))["runs"]
    assert (run["run_id"], run["paths"]) == (RUN, [])
    assert "cannot be read in the journal" in run["error"]
