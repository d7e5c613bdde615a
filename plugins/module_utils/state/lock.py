# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock of a cluster, as one node holds it: which run may change this node, and until when.

Only the node measures its age, by boot id and uptime, so that no clocks need to agree. A reboot
loses the time at which the lock was granted, but not its duration. After a reboot the lock is held
until the node has been up for that many seconds, when it has certainly expired. It may thus be held
too long after a reboot, but never too short.
"""

import os

from ..shared.journal_names import RUN_ID
from . import storage
from .storage import ROOT, ChangeError

NAME = "lock"
SCHEMA = "kubemend.lock/1"
MAX_SECONDS = 7 * 24 * 3600
CONTROLLER = ("machine_id", "host", "boot_id", "pid", "started")


class LockHeld(ChangeError):
    """Another run holds this node; `lock` is its lock."""

    def __init__(self, reason, held):
        super().__init__(reason)
        self.lock = held


def acquire(run_id, controller, seconds, take=None, root=ROOT):
    """Hold this node for the run for so many seconds from now, and return the lock.

    Its `taken_from` is the run that held the lock before, or None.

    controller: {machine_id, host, boot_id, pid, started} of the run's process. Other runs check
        with it whether that process still exists.
    take: a run whose lock may be taken before it expires: its process is gone, or the operator
        consented.
    """
    _check(run_id, seconds)
    with storage.exclusive(root) as folder:
        held = _load(folder, root)
        former = None
        if held and held["run_id"] != run_id:
            former = held["run_id"]
        if former and held["held"] and former != take:
            raise LockHeld(_refusal(held), held)
        lock = _put(run_id, {key: controller.get(key) for key in CONTROLLER}, seconds, folder, root)
    lock["taken_from"] = former
    return lock


def renew(run_id, seconds, root=ROOT):
    """Hold this node for so many seconds from now; raise a ChangeError where the lock is lost.

    A lock that expired is renewed unless another run took it.
    """
    _check(run_id, seconds)
    with storage.exclusive(root) as folder:
        held = _load(folder, root)
        if held is None:
            raise ChangeError(
                f"the lock of run {run_id} is no longer on this node: it was released; stop,"
                " and run again"
            )
        if held["run_id"] != run_id:
            raise LockHeld(_refusal(held), held)
        return _put(run_id, held["controller"], seconds, folder, root)


def release(run_id, root=ROOT):
    """Release the lock of this run, and return whether there was one; another run's lock stays."""
    if not os.path.lexists(os.path.join(root, NAME)):
        return False
    with storage.exclusive(root) as folder:
        held = _load(folder, root)
        if held is None or held["run_id"] != run_id:
            return False
        with storage.told(f"the lock of run {run_id} was not released"):
            storage.unlink(NAME, folder)
            os.fsync(folder)
        return True


def read(root=ROOT):
    """Return the lock with `held` (bool) and `remaining` (seconds, at most), or None.

    The function creates no file, and does not wait.
    """
    try:
        folder = os.open(root, storage.FOLDER_FLAGS)
    except FileNotFoundError:
        return None
    with storage.descriptor(folder):
        return _load(folder, root)


def demand(run_id, folder, root, required=False):
    """Refuse a change by a run that may not change this node.

    The caller holds the flock, so that the result stays true.
    """
    held = _load(folder, root)
    if held is None:
        if required:
            raise ChangeError(
                f"nothing was changed: run {run_id} does not hold the lock of this node any more;"
                " run again"
            )
    elif held["run_id"] != run_id:
        raise LockHeld(_refusal(held), held)
    elif not held["held"]:
        raise ChangeError(
            f"nothing was changed: the lock of run {run_id} on this node has run out; renew it or"
            " run again"
        )


def _check(run_id, seconds):
    if not isinstance(run_id, str) or not RUN_ID.match(run_id):
        raise ChangeError(
            f"nothing was changed: {run_id!r} is no run id (YYYYMMDDTHHMMSSZ-<6 hex digits>)"
        )
    if not 0 < seconds <= MAX_SECONDS:
        raise ChangeError(
            f"nothing was changed: a lock lasts between 0 and {MAX_SECONDS:d} seconds, not"
            f" {seconds!r}"
        )


def _load(folder, root):
    boot_id, uptime = storage.clock()
    try:
        lock = storage.load(NAME, folder)
        if not (RUN_ID.match(lock["run_id"]) and isinstance(lock["controller"], dict)):
            raise ValueError("it names no run")
        end = lock["seconds"]
        if lock["boot_id"] == boot_id:
            end += lock["granted_uptime"]
        remaining = min(end - uptime, lock["seconds"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ChangeError(
            f"the lock {os.path.join(root, NAME)} cannot be read ({error}); see that no run is at"
            " work, remove it and run again"
        ) from error
    lock.update(held=remaining > 0, remaining=max(0.0, round(remaining, 1)))
    return lock


def _put(run_id, controller, seconds, folder, root):
    boot_id, uptime = storage.clock()
    lock = {
        "schema": SCHEMA,
        "run_id": run_id,
        "controller": controller,
        "boot_id": boot_id,
        "granted_uptime": uptime,
        "seconds": seconds,
        "granted_at": storage.now(),
    }
    with storage.told(f"the lock {os.path.join(root, NAME)} was not written"):
        storage.put(NAME, lock, folder)
    return dict(lock, held=True, remaining=float(seconds))


def _refusal(held):
    owner = held["controller"]
    state = "although its time is over"
    if held["held"]:
        state = f"for {int(held['remaining'])} s more"
    return (
        "nothing was changed: run {} holds this node {} (controller {}, process {}); let it end, or"
        " take its lock with kubemend_take_lock={}".format(
            held["run_id"], state, owner.get("machine_id"), owner.get("pid"), held["run_id"]
        )
    )
