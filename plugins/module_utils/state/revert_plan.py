# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a revert of a run would do on this node, file by file, without a change.

A run may have changed a file several times. Consecutive changes count as one: from the bytes before
the first to those after the last. Where a foreign change is between them, the changes before and
after it are reverted separately.
"""

import os

from ..shared.paths import ROOT
from . import journal, storage
from .pending_changes import present
from .storage import ChangeError
from .targets import target_of

INTERRUPTED = "its change was interrupted; let kubemend finish or undo it first (KM902)"
RAISED_AGAIN = "a log level that was put back is raised again by capture_logs only"
RESTORE, ALREADY, CONFLICT, KEPT, OPEN, UNDONE = (
    "restore",
    "already",
    "conflict",
    "kept",
    "interrupted",
    "undone",
)


def plan_revert(run_id, root=ROOT):
    """Return what a revert would do, newest change first, without changing anything.

    An item is {path, real, entries, state, sha256_left, sha256_former, sha256_present, reason}. Its
    state is one of these:

    restore: the former bytes are to be restored.
    already: the file has the former bytes.
    conflict: the file has neither the former bytes nor those of the run.
    undone: the former bytes were restored, and the file was changed again.
    kept: the kind of step is never reverted.
    interrupted: an interrupted change must be ended first.
    """
    return [shown(history) for history in histories(run_id, root)]


def shown(history):
    """Return a file's history without the journal's items."""
    return {key: value for key, value in history.items() if key != "items"}


def intact(run_id, root=ROOT):
    """Return the run's entries as journal.read_run does; ChangeError where one cannot be read."""
    items = journal.read_run(run_id, root)
    for item in items:
        if item["error"]:
            raise ChangeError(
                "nothing was changed: the entry {} of run {} cannot be read in the journal ({});"
                " take back by hand what it is about".format(item["entry"], run_id, item["error"])
            )
    return items


def histories(run_id, root):
    """Return the consecutive changes of each file, newest first, as plan_revert with `items`."""
    changes = [_history(items, root) for items in _consecutive(intact(run_id, root))]
    if not changes and run_id not in journal.run_ids(root):
        raise ChangeError(f"nothing was changed: the journal of this node knows no run {run_id}")
    expected = {}  # path -> what it will hold once its later changes are taken back
    for history in reversed(changes):
        if history["state"] is None:
            _decide(history, expected.get(history["real"], history["sha256_present"]), run_id, root)
        if history["state"] == RESTORE:
            expected[history["real"]] = history["sha256_former"]
    return changes[::-1]


def _decide(history, present_digest, run_id, root):
    """Set the state of a history by the bytes that are present when its revert begins."""
    if present_digest == history["sha256_former"]:
        history["state"] = ALREADY
        return
    history["state"] = RESTORE if present_digest == history["sha256_left"] else CONFLICT
    history.update(_since(run_id, history, root))
    if history["state"] == CONFLICT:
        history["reason"] = _conflict(run_id, history, root)


def _since(run_id, history, root):
    """Return {state, reason} where the former bytes were restored and changed again, else {}."""
    items = _committed(history["real"], run_id, root)
    back = _put_back(items, "{}/{}".format(run_id, history["entries"][-1]))
    if history["sha256_left"] == history["sha256_former"]:  # by the run itself
        back.append(history["items"][-1])
    if not back:
        return {}
    last_back = max(item["run_id"] for item in back)
    later = [item["run_id"] for item in items if item["run_id"] > last_back]
    if history["state"] == RESTORE and not later:
        return {}
    change = f"run {later[-1]} changed it since" if later else "it was changed since"
    return {"state": UNDONE, "reason": f"was put back; {change}"}


def _committed(real, first_run, root):
    """Return the committed entries about one path since a run."""
    return [item for item in journal.items(root, first_run) if _is_committed(item, real)]


def _is_committed(item, real):
    intent, end = item["intent"], item["end"]
    if not intent or not end:
        return False
    return intent["real"] == real and end["result"] == journal.COMMITTED


def _put_back(items, entry):
    """Return the entries that reverted `entry`, without those that were reverted themselves."""
    redone = {item["intent"]["reverts"] for item in items}
    return [
        item
        for item in items
        if item["intent"]["reverts"] == entry
        and "{}/{}".format(item["run_id"], item["entry"]) not in redone
    ]


def _conflict(run_id, history, root):
    """Return why foreign bytes stay, and where the former ones lie for a comparison."""
    left_digest, former, present_digest = (
        history[key] or "absent" for key in ("sha256_left", "sha256_former", "sha256_present")
    )
    before = history["items"][0]["intent"]["before"]
    compared = "them"
    if before:
        kept = os.path.join(root, journal.FOLDER, run_id, before)
        compared = f"it with the former bytes in {kept}"
    return (
        "{} was not changed: it is neither what the run left (sha256 {}) nor what was before ({}),"
        " but {}; compare {} and decide by hand".format(
            history["path"], left_digest, former, present_digest, compared
        )
    )


def _consecutive(items):
    """Return groups of changes that follow on each other, in the order of their last ones."""
    groups, latest = [], {}
    for item in items:
        intent, end = item["intent"], item["end"]
        if end and end["result"] == journal.NOT_DONE:
            continue
        group = latest.get(intent["real"])
        if group and _follows(group[-1], item):
            group.append(item)
            groups.remove(group)
        else:
            group = latest[intent["real"]] = [item]
        groups.append(group)
    return groups


def _follows(earlier, later):
    """Return whether a change began with the bytes that an earlier one left, both ended."""
    if not earlier["end"] or not later["end"]:
        return False
    return earlier["intent"]["sha256_after"] == later["intent"]["sha256_before"]


def _history(items, root):
    first, last = items[0]["intent"], items[-1]["intent"]
    history = {
        "path": last["path"],
        "real": last["real"],
        "entries": [item["entry"] for item in items],
        "items": items,
        "state": None,
        "sha256_left": last["sha256_after"],
        "sha256_former": first["sha256_before"],
        "sha256_present": None,
        "reason": None,
    }
    is_open = not all(item["end"] for item in items)
    if is_open and not target_of(first).readable:
        history.update(state=OPEN, reason=INTERRUPTED)
        return history
    try:
        history["sha256_present"] = present(last, root, items[-1]["run_id"], items[-1]["entry"])
    except (OSError, ChangeError) as error:
        history.update(state=CONFLICT, reason=storage.one_line(error))
        return history
    kept = _kept(items)
    if is_open:
        history.update(state=OPEN, reason=INTERRUPTED)
    elif kept:
        history.update(state=KEPT, reason=kept)
    return history


def _kept(items):
    """Return why a revert leaves it as it is, or None."""
    first = items[0]["intent"]
    if first["reverts"] and not target_of(first).readable:
        return RAISED_AGAIN
    reasons = [item["intent"]["keep"] for item in items if item["intent"]["keep"]]
    return reasons[-1] if reasons else None
