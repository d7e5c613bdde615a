# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Grant, renew and release the lock of a cluster on one node; state/lock.py reads it."""

import os

from ..shared.journal_names import RUN_ID
from ..state import storage
from ..state.lock import MAX_SECONDS, NAME, load
from ..state.storage import ROOT, ChangeError
from . import durable_files

SCHEMA = "kubemend.lock/1"
CONTROLLER = ("machine_id", "host", "boot_id", "pid", "started")


class LockHeld(ChangeError):
    """Another run holds this node; `lock` is its lock."""

    def __init__(self, reason, lock):
        super().__init__(reason)
        self.lock = lock


def acquire(run_id, controller, seconds, take=None, root=ROOT):
    """Hold this node for the run for so many seconds from now, and return the lock.

    Its `taken_from` is the run that held the lock before, or None.

    controller: {machine_id, host, boot_id, pid, started} of the run's process. Other runs check
        with it whether that process still exists.
    take: a run whose lock may be taken before it expires: its process is gone, or the operator
        consented.
    """
    _check(run_id, seconds)
    with durable_files.exclusive(root) as folder:
        present_lock = load(folder, root)
        former = None
        if present_lock and present_lock["run_id"] != run_id:
            former = present_lock["run_id"]
        if former and present_lock["held"] and former != take:
            raise LockHeld(_refusal(present_lock), present_lock)
        lock = _put(run_id, {key: controller.get(key) for key in CONTROLLER}, seconds, folder, root)
    lock["taken_from"] = former
    return lock


def renew(run_id, seconds, root=ROOT):
    """Hold this node for so many seconds from now; raise a ChangeError where the lock is lost.

    A lock that expired is renewed unless another run took it.
    """
    _check(run_id, seconds)
    with durable_files.exclusive(root) as folder:
        lock = load(folder, root)
        if lock is None:
            raise ChangeError(
                f"the lock of run {run_id} is no longer on this node: it was released; stop,"
                " and run again"
            )
        if lock["run_id"] != run_id:
            raise LockHeld(_refusal(lock), lock)
        return _put(run_id, lock["controller"], seconds, folder, root)


def release(run_id, root=ROOT):
    """Release the lock of this run, and return whether there was one; another run's lock stays."""
    if not os.path.lexists(os.path.join(root, NAME)):
        return False
    with durable_files.exclusive(root) as folder:
        lock = load(folder, root)
        if lock is None or lock["run_id"] != run_id:
            return False
        with storage.change_errors(f"the lock of run {run_id} was not released"):
            durable_files.unlink(NAME, folder)
            os.fsync(folder)
        return True


def demand(run_id, folder, root, required=False):
    """Refuse a change by a run that may not change this node.

    The caller holds the flock, so that the result stays true.
    """
    lock = load(folder, root)
    if lock is None:
        if required:
            raise ChangeError(
                f"nothing was changed: run {run_id} does not hold the lock of this node any more;"
                " run again"
            )
    elif lock["run_id"] != run_id:
        raise LockHeld(_refusal(lock), lock)
    elif not lock["held"]:
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
    with storage.change_errors(f"the lock {os.path.join(root, NAME)} was not written"):
        durable_files.put(NAME, lock, folder)
    return dict(lock, held=True, remaining=float(seconds))


def _refusal(lock):
    owner = lock["controller"]
    state = "although its time is over"
    if lock["held"]:
        state = f"for {int(lock['remaining'])} s more"
    return (
        "nothing was changed: run {} holds this node {} (controller {}, process {}); let it end, or"
        " take its lock with kubemend_take_lock={}".format(
            lock["run_id"], state, owner.get("machine_id"), owner.get("pid"), lock["run_id"]
        )
    )
