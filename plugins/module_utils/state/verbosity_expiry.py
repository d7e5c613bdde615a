# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The time at which a service of this node restores the levels of a run, as its file has it."""

import os
import time

from . import step_record, storage

FOLDER = "levels"


def boot():
    """Return (an id of this start of the node, the seconds since the kernel's boot).

    A container that acts as a node has the boot id of its kernel, and an init process of its own.
    """
    boot_id, uptime = storage.clock()
    return f"{boot_id}/{step_record.ticks(1)}", uptime


def overdue(run_id, root, patience):
    """Return whether the run's levels should be back for so many seconds, or no service is left."""
    if not os.path.exists(os.path.join(root, FOLDER, run_id + ".json")):
        return True
    seconds = remaining(run_id, root)[0]
    if seconds == 0:
        return boot()[1] > patience
    return seconds < -patience


def until(run_id, root):
    """Return when the service of this run restores its levels, by this node's clock in UTC.

    The result is None where the service has no file any more.
    """
    if not os.path.exists(os.path.join(root, FOLDER, run_id + ".json")):
        return None
    return time.strftime(
        "%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + max(0, remaining(run_id, root)[0]))
    )


def remaining(run_id, root):
    """Return (seconds until the levels are restored, whether all levels are raised).

    The seconds are 0 after another start of the node, or where the file cannot be read.
    """
    now, uptime = boot()
    try:
        with storage.descriptor(
            os.open(os.path.join(root, FOLDER), storage.FOLDER_FLAGS)
        ) as folder:
            expiry = storage.load(run_id + ".json", folder)
        seconds = expiry["uptime"] - uptime
        return (seconds if expiry["boot"] == now else 0), expiry["complete"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0, True
