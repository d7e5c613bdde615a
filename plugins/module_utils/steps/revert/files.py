# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes the files of a run back to what they were, where they still are what the run left.

A run may have changed a file several times. Changes that follow on each other count as one: from
the bytes before the first to those after the last. Where somebody else's change lies between, each
stretch is taken back for itself.
"""

import os

from ...capture import klog_level as level
from ...state import journal
from ...state import storage as durable
from ...state.storage import ROOT, ChangeError
from .. import (
    api_object_change as config_map,
)
from .. import (
    file_change as change,
)
from .. import (
    interrupted_changes as recover,
)

INTERRUPTED = "its change was interrupted; let kubemend finish or undo it first (KM902)"
RESTORE, ALREADY, CONFLICT, KEPT, OPEN, UNDONE = (
    "restore",
    "already",
    "conflict",
    "kept",
    "interrupted",
    "undone",
)


def plan_revert(run_id, root=ROOT):
    """What a revert would do, newest change first.

    {path, real, entries, state, sha256_left, sha256_former, sha256_present, reason}.

    state: restore, already (holds the former bytes), conflict (holds neither: both are shown),
    undone (was put back, and changed again since), kept (its remedy says that it is never put back)
    or interrupted (recover first). Makes nothing.
    """
    return [_shown(one) for one in _plan(run_id, root)]


def revert(run_id, step, only=None):
    """Do that, for all paths or `only` these.

    The plan with `result` (restored, already, refused or kept), `changed`, `entry`.

    Each file is for itself: one that somebody else changed is refused, and keeps no other from
    being restored. Idempotent.
    """
    results = []
    with durable.told(f"run {run_id} was not taken back, because {step.root} cannot be read"):
        plan = _plan(run_id, step.root)
    for one in plan:
        if only is None or one["path"] in only:
            result = {CONFLICT: "refused", OPEN: "refused", UNDONE: ALREADY}.get(
                one["state"], one["state"]
            )
            answer = (
                _restore(run_id, one, step)
                if result == RESTORE
                else {"result": result, "changed": False, "entry": None}
            )
            results.append(dict(_shown(one), **answer))
    return results


def intact(run_id, root=ROOT):
    """The run's entries as journal.read_run has them, each of them read; or ChangeError."""
    items = journal.read_run(run_id, root)
    for item in items:
        if item["error"]:
            raise ChangeError(
                "nothing was changed: the entry {} of run {} cannot be read in the journal ({});"
                " take back by hand what it is about".format(item["entry"], run_id, item["error"])
            )
    return items


def _plan(run_id, root):
    stretches = [_stretch(several, root) for several in _stretches(intact(run_id, root))]
    if not stretches and run_id not in journal.run_ids(root):
        raise ChangeError(f"nothing was changed: the journal of this node knows no run {run_id}")
    awaited = {}  # path -> what it will hold once its later stretches are taken back
    for one in reversed(stretches):
        present = awaited.get(one["real"], one["sha256_present"])
        if one["state"] is None:
            one["state"] = (
                ALREADY
                if present == one["sha256_former"]
                else RESTORE
                if present == one["sha256_left"]
                else CONFLICT
            )
            if one["state"] != ALREADY:
                one.update(_since(run_id, one, root))
            if one["state"] == CONFLICT:
                one["reason"] = _conflict(run_id, one, root)
        if one["state"] == RESTORE:
            awaited[one["real"]] = one["sha256_former"]
    return stretches[::-1]


def _since(run_id, one, root):
    """{state, reason} of what was put back already, so that what is there now is somebody's
    later change; else nothing.
    """
    items = [
        item
        for other in journal.run_ids(root)
        if other >= run_id
        for item in journal.read_run(other, root)
        if item["intent"]
        and item["intent"]["real"] == one["real"]
        and item["end"]
        and item["end"]["result"] == journal.COMMITTED
    ]
    redone = {item["intent"]["reverts"] for item in items}
    back = [
        item
        for item in items
        if item["intent"]["reverts"] == "{}/{}".format(run_id, one["entries"][-1])
        and "{}/{}".format(item["run_id"], item["entry"]) not in redone
    ]
    if one["sha256_left"] == one["sha256_former"]:  # by the run itself
        back.append(one["items"][-1])
    if not back:
        return {}
    later = [
        item["run_id"] for item in items if item["run_id"] > max(item["run_id"] for item in back)
    ]
    if one["state"] == RESTORE and not later:
        return {}
    return {
        "state": UNDONE,
        "reason": (
            "was put back; %s changed it since" % (f"run {later[-1]}" if later else "somebody")
        ),
    }


def _conflict(run_id, one, root):
    """Why somebody else's bytes stay, and where the former ones lie for whoever compares them."""
    left, former, present = (
        one[key] or "absent" for key in ("sha256_left", "sha256_former", "sha256_present")
    )
    before = one["items"][0]["intent"]["before"]
    what = (
        f"it with the former bytes in {os.path.join(root, journal.FOLDER, run_id, before)}"
        if before
        else "them"
    )
    return (
        "{} was not changed: it is neither what the run left (sha256 {}) nor what was before ({}),"
        " but {}; compare {} and decide by hand".format(one["path"], left, former, present, what)
    )


def _shown(one):
    return {key: value for key, value in one.items() if key != "items"}


def _restore(run_id, one, step):
    first, last = one["items"][0], one["items"][-1]
    intent = first["intent"]
    here = step.also(reverts="{}/{}".format(run_id, last["entry"]))
    try:
        former = None if one["sha256_former"] is None else journal.former_bytes(first, step.root)
        if journal.is_level(intent):
            done = _level(last, step)
        elif journal.in_api(intent):
            done = config_map.replace(last["intent"], former, here)
        elif journal.is_unit(intent):
            from ..handlers import service_start as kubelet_service

            done = kubelet_service.put_back(one, intent, former, here)
        elif former is None:
            done = change.move_out(one["real"], one["sha256_left"], here)
        elif one["sha256_left"] is None:
            done = change.create_file(
                one["real"],
                former,
                here,
                change.Attributes(
                    int(intent["mode"], 8),
                    intent["uid"],
                    intent["gid"],
                    journal.unpacked(intent["xattrs"]),
                ),
            )
        else:
            done = change.replace(one["real"], one["sha256_left"], former, here)
    except ChangeError as error:
        return {"result": "refused", "reason": str(error), "changed": error.changed, "entry": None}
    return {"result": "restored", "changed": done["changed"], "entry": done["entry"]}


def _level(item, step):
    if step.check:
        return {"changed": True, "entry": None}
    with step.exclusive() as root_fd, level.Levels(item["intent"].get("via")) as levels:
        return {"changed": True, "entry": level.put_back(levels, item, step, root_fd)}


def _stretches(items):
    """The committed and the open changes of each file, those that follow on each other together,
    in the order of their last.
    """
    stretches, latest = [], {}
    for item in items:
        intent, end = item["intent"], item["end"]
        if end and end["result"] == journal.NOT_DONE:
            continue
        before = latest.get(intent["real"])
        if (
            before
            and before[-1]["intent"]["sha256_after"] == intent["sha256_before"]
            and end
            and before[-1]["end"]
        ):
            before.append(item)
            stretches.remove(before)
            stretches.append(before)
        else:
            latest[intent["real"]] = [item]
            stretches.append(latest[intent["real"]])
    return stretches


def _stretch(items, root):
    first, last = items[0]["intent"], items[-1]["intent"]
    one = {
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
    # nothing can tell what it is now
    if journal.is_level(first) and not all(item["end"] for item in items):
        one.update(state=OPEN, reason=INTERRUPTED)
        return one
    try:
        one["sha256_present"] = recover.present(last, root, items[-1]["run_id"], items[-1]["entry"])
    except (OSError, ChangeError) as error:
        one.update(state=CONFLICT, reason=durable.one_line(error))
        return one
    kept = [item["intent"]["keep"] for item in items if item["intent"]["keep"]]
    if journal.is_level(first) and first["reverts"]:
        kept = ["a log level that was put back is raised again by capture_logs only"]
    if not all(item["end"] for item in items):
        one.update(state=OPEN, reason=INTERRUPTED)
    elif kept:
        one.update(state=KEPT, reason=kept[-1])
    return one
