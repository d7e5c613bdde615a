# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restores the files of a run that still have the bytes that the run left."""

from ...state import journal, storage
from ...state.revert_plan import ALREADY, CONFLICT, OPEN, RESTORE, UNDONE, histories, shown
from ...state.storage import ChangeError
from .registry import writer_of

REFUSED, RESTORED = "refused", "restored"
RESULTS = {CONFLICT: REFUSED, OPEN: REFUSED, UNDONE: ALREADY}  # others: as the state


def revert(run_id, step, only=None):
    """Do what the plan says for all paths, or `only` these, and return it with the results.

    Each item has `result` (restored, already, refused or kept), `changed` and `entry`. A file with
    a foreign change is refused; the other files are restored nevertheless. A second call changes
    nothing.
    """
    with storage.change_errors(
        f"run {run_id} was not taken back, because {step.root} cannot be read"
    ):
        planned = histories(run_id, step.root)
    results = []
    for history in planned:
        if only is None or history["path"] in only:
            results.append(dict(shown(history), **_reverted(run_id, history, step)))
    return results


def _reverted(run_id, history, step):
    if history["state"] == RESTORE:
        return _restore(run_id, history, step)
    result = RESULTS.get(history["state"], history["state"])
    return {"result": result, "changed": False, "entry": None}


def _restore(run_id, history, step):
    first, last = history["items"][0], history["items"][-1]
    here = step.also(reverts="{}/{}".format(run_id, last["entry"]))
    try:
        former = None
        if history["sha256_former"] is not None:
            former = journal.former_bytes(first, step.root)
        done = writer_of(first["intent"]).restore(history, former, here)
    except ChangeError as error:
        return {"result": REFUSED, "reason": str(error), "changed": error.changed, "entry": None}
    return {"result": RESTORED, "changed": done["changed"], "entry": done["entry"]}
