# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock of a cluster on one node: whose it is, until when, by which clock."""

import errno
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import (
    durable_files,
    node_lock,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    lock,
    storage,
)
from tests.unit.support.node_clock import OTHER, RUN, THIRD, US, Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "kubemend")


def test_nobody_holds_a_new_node(root: str) -> None:
    assert lock.read(root) is None
    assert node_lock.release(RUN, root) is False
    assert not Path(root).exists()


def test_the_real_clock_goes(root: str) -> None:
    boot, uptime = storage.clock()
    assert len(boot) == 36
    assert uptime > 0
    assert 59 < node_lock.acquire(RUN, US, 60, root=root)["remaining"] <= 60
    assert lock.read(root)["remaining"] <= 60


def test_held_until_it_has_run_out(root: str, clock: Clock) -> None:
    mine = node_lock.acquire(RUN, US, 100, root=root)
    assert mine["controller"] == {
        "machine_id": "c1",
        "host": None,
        "boot_id": "b1",
        "pid": 42,
        "started": 1234,
    }
    assert mine["taken_from"] is None
    clock.uptime += 99
    assert lock.read(root)["held"]
    assert lock.read(root)["remaining"] == 1.0
    with pytest.raises(node_lock.LockHeld) as error:
        node_lock.acquire(OTHER, US, 100, root=root)
    assert error.value.lock["run_id"] == RUN
    for word in (f"run {RUN} holds", "for 1 s more", "c1", "42", f"kubemend_take_lock={RUN}"):
        assert word in str(error.value)
    clock.uptime += 1
    assert not lock.read(root)["held"]
    assert node_lock.acquire(OTHER, US, 100, root=root)["taken_from"] == RUN


def test_a_step_sets_its_own_limit(root: str, clock: Clock) -> None:
    node_lock.acquire(RUN, US, 1000, root=root)
    clock.uptime += 10
    assert node_lock.renew(RUN, 50, root)["remaining"] == 50
    assert lock.read(root)["controller"]["pid"] == 42
    clock.uptime += 60
    assert not lock.read(root)["held"]
    assert node_lock.renew(RUN, 50, root)["held"]  # nobody took it meanwhile
    clock.uptime += 60
    node_lock.acquire(OTHER, US, 100, root=root)
    with pytest.raises(node_lock.LockHeld):
        node_lock.renew(RUN, 50, root)
    assert node_lock.release(RUN, root) is False
    assert node_lock.release(OTHER, root) is True
    with pytest.raises(storage.ChangeError, match="it was released"):
        node_lock.renew(RUN, 50, root)


def test_asking_again_is_renewing(root: str, clock: Clock) -> None:
    node_lock.acquire(RUN, US, 100, root=root)
    clock.uptime += 50
    again = node_lock.acquire(RUN, dict(US, pid=43), 100, root=root)
    assert (again["remaining"], again["taken_from"], again["controller"]["pid"]) == (100, None, 43)


def test_taking_names_the_run(root: str, clock: Clock) -> None:
    node_lock.acquire(RUN, US, 100, root=root)
    with pytest.raises(node_lock.LockHeld):
        node_lock.acquire(OTHER, US, 100, take=THIRD, root=root)
    assert node_lock.acquire(OTHER, US, 100, take=RUN, root=root)["taken_from"] == RUN
    with pytest.raises(node_lock.LockHeld):  # the one who took it first is not robbed by the second
        node_lock.acquire(THIRD, US, 100, take=RUN, root=root)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), lock.MAX_SECONDS + 1])
def test_limits(root: str, seconds: float) -> None:
    with pytest.raises(storage.ChangeError, match="lasts between"):
        node_lock.acquire(RUN, US, seconds, root=root)
    assert not Path(root).exists()


def test_the_longest_lock_is_granted_and_renewing_obeys_the_same_limits(
    root: str, clock: Clock
) -> None:
    assert node_lock.acquire(RUN, US, lock.MAX_SECONDS, root=root)["remaining"] == lock.MAX_SECONDS
    node_lock.renew(RUN, 60, root)
    for seconds in (0, -1, float("nan"), lock.MAX_SECONDS + 1):
        with pytest.raises(storage.ChangeError, match="lasts between"):
            node_lock.renew(RUN, seconds, root)
    assert lock.read(root)["remaining"] == 60


@pytest.mark.parametrize("run_id", [None, 5, "", "x", "../" + RUN, RUN + "\n", RUN + "0"])
def test_only_a_run_holds_a_node(root: str, run_id: Any) -> None:
    """A lock with anything else as its holder is refused.

    Such a lock would be unreadable, and would block the node.
    """
    with pytest.raises(storage.ChangeError, match="is no run id"):
        node_lock.acquire(run_id, US, 60, root=root)
    assert not Path(root).exists()


def test_a_full_disk_leaves_the_lock_as_it_was(
    root: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_lock.acquire(RUN, US, 60, root=root)

    def full(*dummy: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(durable_files, "put", full)
        patch.setattr(durable_files, "unlink", full)
        with pytest.raises(storage.ChangeError, match="was not written"):
            node_lock.renew(RUN, 100, root)
        with pytest.raises(storage.ChangeError, match="was not released"):
            node_lock.release(RUN, root)
    assert (lock.read(root)["run_id"], lock.read(root)["remaining"]) == (RUN, 60)


def _race(root: str, run_id: str, results: Any) -> None:
    try:
        node_lock.acquire(run_id, US, 60, root=root)
        results.put(run_id)
    except node_lock.LockHeld:
        results.put(None)


def test_of_many_at_once_one_gets_it(root: str) -> None:
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    runs = [f"20261121T090000Z-{number:06x}" for number in range(8)]
    processes = [context.Process(target=_race, args=(root, run_id, results)) for run_id in runs]
    for process in processes:
        process.start()
    won = [one for one in (results.get(timeout=120) for dummy in runs) if one]
    for process in processes:
        process.join(120)
    assert len(won) == 1
    assert lock.read(root)["run_id"] == won[0]


def demanded(run_id: str, root: str, **more: Any) -> None:
    with durable_files.exclusive(root) as folder:
        node_lock.demand(run_id, folder, root, **more)


def test_who_may_change_the_node(root: str, clock: Clock) -> None:
    demanded(RUN, root)  # nobody holds it, and nobody has to
    with pytest.raises(
        storage.ChangeError, match=f"run {RUN} does not hold the lock of this node any more"
    ):
        demanded(RUN, root, required=True)
    node_lock.acquire(RUN, US, 100, root=root)
    demanded(RUN, root)
    demanded(RUN, root, required=True)
    with pytest.raises(node_lock.LockHeld, match=f"run {RUN} holds this node for 100 s more"):
        demanded(OTHER, root)


def test_a_lock_whose_time_is_over_allows_nothing_and_forbids_it_still(
    root: str, clock: Clock
) -> None:
    node_lock.acquire(RUN, US, 100, root=root)
    clock.uptime += 100
    with pytest.raises(
        storage.ChangeError,
        match=f"the lock of run {RUN} on this node has run out; renew it or run again",
    ):
        demanded(RUN, root)
    with pytest.raises(node_lock.LockHeld, match="although its time is over"):
        demanded(OTHER, root)
