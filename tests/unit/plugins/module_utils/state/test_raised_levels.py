# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Log levels that a restart raised and that are raised still."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    raised_levels,
    revert_plan,
    step_record,
)
from tests.unit.support.fake_kubelet_verbosity import RUN, Node, clean_node


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    yield from clean_node(tmp_path, monkeypatch)


def test_files_that_are_back_while_the_process_is_not(node: Node) -> None:
    """A process that outlives a reboot is in this state: the files under /run are gone.

    The state also follows if the program that restored the files was killed.
    """
    node.raise_level()
    node.env.write_text('KUBE_LOG_LEVEL="--v=2"\nOTHER=1\n')
    assert node.left() == ["kubelet"]
    assert raised_levels.raised_kubelet_runs(node.record())
    assert node.revert()["components"][0]["proven"] is True
    assert node.argv[-1] == "--v=2"
    assert node.left() == []


@pytest.mark.parametrize(
    ("states", "unproven", "ours"),
    [
        ((revert_plan.RESTORE,), False, True),
        ((revert_plan.OPEN,), False, True),
        ((revert_plan.ALREADY,), True, True),
        ((revert_plan.ALREADY, revert_plan.OPEN), False, True),
        ((revert_plan.ALREADY,), False, False),
        ((revert_plan.UNDONE,), False, False),
        ((), True, True),
        ((), False, False),
    ],
)
def test_what_keeps_a_level_up(
    node: Node, monkeypatch: pytest.MonkeyPatch, states: Any, unproven: bool, ours: bool
) -> None:
    """Bytes that can come back, an interrupted change, or a step without a proof keep it up.

    Each of them does so by itself.
    """
    node.raise_level()
    node.pid += 1  # the process that was raised is gone: it would keep it up by itself
    monkeypatch.setattr(
        revert_plan,
        "plan_revert",
        lambda run_id, root: [{"path": str(node.env), "state": state} for state in states],
    )
    monkeypatch.setattr(step_record, "unproven", lambda root: [node.record()] if unproven else [])
    assert node.left() == (["kubelet"] if ours else [])
    assert raised_levels.edited(RUN, node.root) == []


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("    - --v=4\n", True),
        ("    - --v=40\n", False),
        ("    # - --v=4\n", False),
        ('    - --v\n    - "4"\n', True),
        ("X=--v 4", True),
        ("--v=3 4", False),
        ("--logging=v=4", False),
    ],
)
def test_whether_a_file_gives_a_level(tmp_path: Path, text: str, held: bool) -> None:
    (tmp_path / "file").write_text(text)
    assert raised_levels._gives(str(tmp_path / "file"), "4") is held
    assert not raised_levels._gives(str(tmp_path / "none"), "4")
