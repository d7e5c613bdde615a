# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes that were interrupted, and what became of them.

The file itself shows it: it holds the bytes from before (not done), those from after (done, and
only the record is missing), or others (superseded: they stay, and the former bytes stay in the
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

    Makes nothing. state: after, before or neither, by the present bytes; unknown when they or the
    intent cannot be read (`error` is the reason). temp: the path of a leftover dotfile, or None.
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
    """Return the sha256 of what an entry is about as it is now, None when nothing is there.

    ChangeError when it is unknown, for example because the API does not answer.
    """
    return target_of(intent).read(intent, root, run_id, entry)


def state_of(intent, sha256):
    """Return whether these bytes are those from after, from before or neither."""
    if sha256 == intent["sha256_after"]:
        return AFTER
    return BEFORE if sha256 == intent["sha256_before"] else NEITHER
