# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes without an end: the present bytes say what became of each."""

from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import pending_changes
from tests.unit.support.fake_file_change import AFTER, BEFORE, RUN, Node, sha


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def interrupt(node: Node) -> None:
    """Take the end of the only change away, as a kill does before it is recorded."""
    node.swap()
    (end,) = (node.root / "journal" / RUN).glob("*.end.json")
    end.unlink()


@pytest.mark.parametrize(
    ("data", "state"),
    [
        (AFTER, pending_changes.AFTER),
        (BEFORE, pending_changes.BEFORE),
        (b"foreign", pending_changes.NEITHER),
        (None, pending_changes.NEITHER),
    ],
)
def test_the_bytes_say_how_far_it_came(node: Node, data: "bytes | None", state: str) -> None:
    interrupt(node)
    node.file.unlink()
    if data is not None:
        node.file.write_bytes(data)
    (item,) = node.pending()
    assert (item["run_id"], item["state"], item["sha256"]) == (RUN, state, sha(data))
    assert item["error"] is None
    assert "end" not in item


def test_a_change_that_ended_is_not_pending(node: Node) -> None:
    node.swap()
    assert node.pending() == []


def test_a_temporary_file_that_is_left_is_named(node: Node) -> None:
    interrupt(node)
    (item,) = node.pending()
    assert item["temp"] is None
    (node.folder / item["intent"]["temp"]).write_text("")
    assert node.pending()[0]["temp"] == str(node.folder / item["intent"]["temp"])


def test_what_cannot_be_read_is_unknown_with_the_reason(node: Node) -> None:
    interrupt(node)
    node.file.unlink()
    node.file.mkdir()
    (item,) = node.pending()
    assert (item["state"], item["sha256"]) == (pending_changes.UNKNOWN, None)
    assert "no regular file" in item["error"]


def test_an_intent_that_cannot_be_read_is_unknown(node: Node) -> None:
    interrupt(node)
    (intent,) = (node.root / "journal" / RUN).glob("*.json")
    intent.write_text("{")
    (item,) = node.pending()
    assert (item["state"], item["intent"]) == (pending_changes.UNKNOWN, None)
    assert item["error"]
