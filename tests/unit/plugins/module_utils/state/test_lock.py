# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock of a cluster on one node: whose it is, until when, by which clock."""

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import (
    node_lock,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    lock,
    storage,
)
from tests.unit.support.node_clock import OTHER, RUN, US, Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "kubemend")


def test_a_reboot_may_hold_it_too_long_but_never_too_short(root: str, clock: Clock) -> None:
    node_lock.acquire(RUN, US, 100, root=root)
    clock.boot, clock.uptime = "boot-2", 20.0
    assert lock.read(root)["held"]
    assert lock.read(root)["remaining"] == 80
    with pytest.raises(node_lock.LockHeld):
        node_lock.acquire(OTHER, US, 100, root=root)
    clock.uptime = 100.0
    assert not lock.read(root)["held"]


def test_a_clock_that_went_back_gives_no_more_than_was_granted(root: str, clock: Clock) -> None:
    """A virtual machine put back to a snapshot keeps its boot id."""
    node_lock.acquire(RUN, US, 100, root=root)
    clock.uptime = 10.0
    assert lock.read(root)["remaining"] == 100


WHOLE = {"run_id": RUN, "controller": {}, "boot_id": "boot-1", "granted_uptime": 1.0, "seconds": 60}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"run_id": "x", "controller": {}}',
        '{"run_id": 5}',
        "\0",
        "9" * 5000,
        json.dumps({**WHOLE, "run_id": "x"}),
        json.dumps({**WHOLE, "controller": []}),
    ],
)
def test_a_lock_that_is_none_blocks_and_says_how_to_go_on(root: str, text: str) -> None:
    Path(root).mkdir(0o700)
    Path(root, "lock").write_text(text)
    actions: list[Any] = [
        lambda: node_lock.acquire(RUN, US, 60, root=root),
        lambda: node_lock.renew(RUN, 60, root),
        lambda: node_lock.release(RUN, root),
        lambda: lock.read(root),
    ]
    for action in actions:
        with pytest.raises(storage.ChangeError, match="remove it and run again"):
            action()
