# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of an interrupted change: its file tells, and a recovery ends it."""

from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import node_lock
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    journal,
    storage,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    file_change,
    interrupted_changes,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    files as revert_files,
)
from tests.unit.support.fake_file_change import (
    AFTER,
    BEFORE,
    NEXT,
    RUN,
    THIRD,
    Node,
    interrupt,
    sha,
)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.mark.parametrize(
    ("held", "state", "result"),
    [
        (AFTER, "after", "committed"),
        (BEFORE, "before", "not_done"),
        (b"theirs", "neither", "superseded"),
        (None, "neither", "superseded"),
    ],
)
def test_the_file_itself_tells(node: Node, held: "bytes | None", state: str, result: str) -> None:
    temp = interrupt(node)
    temp.write_bytes(b"half")
    node.file.unlink()
    if held is not None:
        node.file.write_bytes(held)
    (item,) = node.pending()
    assert (item["state"], item["sha256"], item["temp"], item["error"]) == (
        state,
        sha(held),
        str(temp),
        None,
    )
    for _dummy in range(2):
        done = interrupted_changes.recover(item, node.step(NEXT))
        assert (done["result"], done["path"], done["sha256"]) == (result, str(node.file), sha(held))
    assert node.bytes() == held
    assert not node.pending()
    assert not node.dotfiles()
    end = journal.read_run(RUN, str(node.root))[0]["end"]
    assert (end["result"], end["by"], end["sha256_present"]) == (result, NEXT, sha(held))
    assert journal.former_bytes(journal.read_run(RUN, str(node.root))[0], str(node.root)) == BEFORE


def test_recovery_in_check_mode_only_tells(node: Node) -> None:
    temp = interrupt(node)
    temp.write_bytes(b"half")
    before = node.own()
    assert interrupted_changes.recover_all(node.step(NEXT, check=True))[0]["result"] == "committed"
    assert temp.exists()
    assert node.own() == before


def test_recovery_needs_the_lock_too(node: Node) -> None:
    interrupt(node)
    node_lock.acquire(THIRD, {}, 60, root=str(node.root))
    with pytest.raises(node_lock.LockHeld):
        interrupted_changes.recover(node.pending()[0], node.step(NEXT))
    assert node.pending()


@pytest.mark.parametrize("text", ["", "{", "[]", "\xff", "null"])
def test_an_unreadable_intent_blocks_and_is_named(node: Node, text: str) -> None:
    interrupt(node)
    record = next(node.root.glob("journal/*/*.json"))
    record.write_text(text, encoding="latin-1")
    (item,) = node.pending()
    assert item["state"] == "unknown"
    assert item["error"]
    assert item["intent"] is None
    for action in (
        lambda: interrupted_changes.recover_all(node.step(NEXT)),
        lambda: revert_files.revert(RUN, node.step(NEXT)),
    ):
        with pytest.raises(storage.ChangeError, match=item["entry"].replace("%", ".")):
            action()
    node.refused(
        "interrupted",
        action=lambda: file_change.replace(str(node.file), sha(AFTER), BEFORE, node.step(NEXT)),
    )
    assert node.runs()[0]["unreadable"] == 1


def test_what_the_killed_leave_in_our_own_folder_is_swept(node: Node) -> None:
    interrupt(node)
    run = node.root / "journal" / RUN
    for path in (run / "002-x.before", run / ".002-x.end.json.tmp", node.root / ".lock.tmp"):
        path.write_bytes(b"")
    (node.root / "journal" / THIRD).mkdir(0o700)
    interrupted_changes.recover_all(node.step(NEXT))
    names = node.own()
    assert len(names) == 6
    assert not [name for name in names if "002" in name or name.endswith(".tmp")]
