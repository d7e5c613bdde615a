# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the lock of a cluster on one node: which run may change this node, and until when.

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
MAX_SECONDS = 7 * 24 * 3600


def read(root=ROOT):
    """Return the lock with `held` (bool) and `remaining` (seconds, at most), or None.

    The function creates no file, and does not wait.
    """
    try:
        folder = os.open(root, storage.FOLDER_FLAGS)
    except FileNotFoundError:
        return None
    with storage.descriptor(folder):
        return load(folder, root)


def load(folder, root):
    """Return the lock in kubemend's directory, as `read` does; the caller has it open."""
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
