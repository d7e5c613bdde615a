# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Until when the levels that a run raised from this node stay, as its service has it on the
disk.
"""

import os
import time

from . import step_record as proof
from . import storage as durable

FOLDER = "levels"


def boot():
    """(what names this start of the node, the seconds since the kernel's).

    A container that is a node has its kernel's boot id, and an init of its own.
    """
    boot_id, uptime = durable.clock()
    return f"{boot_id}/{proof.ticks(1)}", uptime


def overdue(run_id, root, patience):
    """Whether the time of what the run raised from here is over for so many seconds, or nobody
    is there who puts it back.
    """
    if not os.path.exists(os.path.join(root, FOLDER, run_id + ".json")):
        return True
    left = remaining(run_id, root)[0]
    return boot()[1] > patience if left == 0 else left < -patience


def until(run_id, root):
    """When the service of this run puts back what it raised from here, by this node's clock in UTC.

    None where no service is left.
    """
    if not os.path.exists(os.path.join(root, FOLDER, run_id + ".json")):
        return None
    return time.strftime(
        "%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + max(0, remaining(run_id, root)[0]))
    )


def remaining(run_id, root):
    """(seconds until the time is over, whether all is raised that will be).

    None after another start, or where nobody can tell.
    """
    now, uptime = boot()
    try:
        with durable.descriptor(
            os.open(os.path.join(root, FOLDER), durable.FOLDER_FLAGS)
        ) as folder:
            until = durable.load(run_id + ".json", folder)
        return until["uptime"] - uptime if until["boot"] == now else 0, until["complete"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0, True
