# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes that were interrupted, and their results.

The file itself shows the result. It has the former bytes (not done), the new bytes (done, and only
the record is missing), or others (superseded: these stay, and the former bytes stay in the
journal).
"""

import os

from ..shared.paths import ROOT
from . import journal, storage
from .storage import ChangeError
from .targets import target_of

AFTER, BEFORE, NEITHER, UNKNOWN = "after", "before", "neither", "unknown"


def pending(root=ROOT):
    """Return every change without an end: {run_id, entry, intent, error, state, sha256, temp}.

    state: after, before or neither, by the present bytes; unknown when these or the intent cannot
        be read.
    error: why they cannot be read.
    temp: the path of a temporary file that is left, or None.

    The function creates nothing.
    """
    return [_described(item, root) for item in journal.open_entries(root)]


def _described(item, root):
    item = dict(item, state=UNKNOWN, sha256=None, temp=None)
    item.pop("end")
    intent = item["intent"]
    if intent is None:
        return item
    try:
        item["sha256"] = present(intent, root, item["run_id"], item["entry"])
        item["state"] = state_of(intent, item["sha256"])
    except (OSError, ChangeError) as error:
        item["error"] = storage.one_line(error)
    if intent["temp"]:
        temp = os.path.join(os.path.dirname(intent["real"]), intent["temp"])
        item["temp"] = temp if os.path.lexists(temp) else None
    return item


def present(intent, root=ROOT, run_id=None, entry=None):
    """Return the sha256 of the present content of an entry's target, None when there is none.

    ChangeError is raised when it is unknown, for example because the API does not answer.
    """
    return target_of(intent).read(intent, root, run_id, entry)


def state_of(intent, sha256):
    """Return whether these bytes are those from after, from before or neither."""
    if sha256 == intent["sha256_after"]:
        return AFTER
    return BEFORE if sha256 == intent["sha256_before"] else NEITHER
