# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of changes that were interrupted, and their end.

The file itself tells: it holds the bytes from before (not done), those from after (done, and only
the record is missing), or somebody else's (superseded: they stay, and the former bytes stay in the
journal).
"""

import contextlib
import os

from ..state import file_target as target
from ..state import journal
from ..state import storage as durable
from ..state.storage import ROOT, ChangeError

STATES = {"after": journal.COMMITTED, "before": journal.NOT_DONE, "neither": journal.SUPERSEDED}


def pending(root=ROOT):
    """Every change without an end: {run_id, entry, intent, error, state, sha256, temp}.

    Makes nothing.

    state: before, after or neither, by the present bytes; unknown when they or the intent cannot be
    read (`error` says why). temp: the path of a dotfile that was left beside the file, or None.
    """
    return [_told(item, root) for item in journal.open_entries(root)]


def _told(item, root):
    item = dict(item, state="unknown", sha256=None, temp=None)
    item.pop("end")
    intent = item["intent"]
    if intent is None:
        return item
    try:
        item["sha256"] = present(intent, root, item["run_id"], item["entry"])
        item["state"] = _state(intent, item["sha256"])
    except (OSError, ChangeError) as error:
        item["error"] = durable.one_line(error)
    if intent["temp"]:
        temp = os.path.join(os.path.dirname(intent["real"]), intent["temp"])
        item["temp"] = temp if os.path.lexists(temp) else None
    return item


def present(intent, root, run_id=None, entry=None):
    """The sha256 of what is there now, None when nothing is.

    ChangeError when it cannot be told, as by an API that is away.
    """
    if journal.in_api(intent):
        # few nodes have such an entry, and the door to the API costs each the time to compile it
        from . import api_object_change as config_map

        return config_map.present(intent)
    if journal.is_unit(intent):
        from .handlers import service_start as kubelet_service

        return kubelet_service.present(intent)
    if journal.is_level(intent):
        from ..capture import klog_level as level

        return level.present(run_id, entry, intent, root)
    place = target.Place(intent["real"], root)
    try:
        folder = place.opened()
    except FileNotFoundError:
        return None
    with durable.descriptor(folder):
        found = target.look(place, folder)
    return found.sha256 if found else None


def _state(intent, sha256):
    return (
        "after"
        if sha256 == intent["sha256_after"]
        else "before"
        if sha256 == intent["sha256_before"]
        else "neither"
    )


def recover(item, step):
    """End one interrupted change (of `pending`): {run_id, entry, path, result, sha256}.

    Idempotent.
    """
    with step.exclusive():
        return _recover(item["run_id"], item["entry"], step)


def recover_all(step, only_run=None):
    """End every interrupted change (only_run.

    Of this run) and remove what killed processes left in our own folder.

    What only the API or a process could tell stays open while it is away: result None, and `error`
    says why.
    """
    with step.exclusive() as root_fd:
        results = [
            _recover_or_tell(item, step)
            for item in journal.open_entries(step.root)
            if only_run in (None, item["run_id"])
        ]
        if root_fd is not None:
            with durable.told(f"{step.root} cannot be tidied"):
                _sweep(root_fd, step.root)
    return results


def _recover_or_tell(item, step):
    try:
        return _recover(item["run_id"], item["entry"], step)
    except ChangeError as error:
        intent = item["intent"]
        if intent is None or not (
            journal.in_api(intent) or journal.is_level(intent) or journal.is_unit(intent)
        ):
            raise
        return {
            "run_id": item["run_id"],
            "entry": item["entry"],
            "path": intent["path"],
            "result": None,
            "sha256": None,
            "error": str(error),
        }


def _recover(run_id, name, step):
    item = next((one for one in journal.read_run(run_id, step.root) if one["entry"] == name), None)
    if item is None or item["error"]:
        raise ChangeError(
            "the entry {} of run {} cannot be read in the journal ({}); compare the file that it is"
            " about, then move the entry away".format(
                name, run_id, item["error"] if item else "it is gone"
            )
        )
    intent, end = item["intent"], item["end"]
    answer = {"run_id": run_id, "entry": name, "path": intent["path"]}
    if end:
        return dict(answer, result=end["result"], sha256=end["sha256_present"])
    with durable.told(
        "the interrupted change of {} (entry {} of run {}) was not ended".format(
            intent["path"], name, run_id
        )
    ):
        if journal.is_level(intent):
            sha256, result = _level_back(intent, step)
        else:
            if not step.check and not journal.in_api(intent) and not journal.is_unit(intent):
                _remove_temporary(intent)
            sha256 = present(intent, step.root)
            result = STATES[_state(intent, sha256)]
        if not step.check:
            with journal.opened(step.root, run_id) as fd:
                entry = journal.Entry(os.dup(fd), name, run_id)
                with entry:
                    entry.end(result, step.run_id, "ended after an interruption", sha256)
    return dict(answer, result=result, sha256=sha256)


def _level_back(intent, step):
    """A level cannot be read back.

    It is set to what it was, which harms nobody, and so it was not done.
    """
    from ..capture import klog_level as level

    if not step.check:
        level.undo_open(intent)
    return intent["sha256_before"], journal.NOT_DONE


def _remove_temporary(intent):
    """The dotfile away, and whatever was done to the folder on the disk before the journal says
    so.
    """
    try:
        folder = os.open(os.path.dirname(intent["real"]), durable.FOLDER_FLAGS)
    except FileNotFoundError:
        return
    with durable.descriptor(folder):
        if intent["temp"]:
            durable.unlink(intent["temp"], folder)
        os.fsync(folder)


def _sweep(root_fd, root):
    """Dotfiles of ours, and former bytes whose intent was never written.

    Under the flock they are nobody's.
    """
    for name in os.listdir(root_fd):
        if name.startswith(".") and name.endswith(".tmp"):
            durable.unlink(name, root_fd)
    for run_id in journal.run_ids(root):
        with journal.opened(root, run_id) as fd:
            names = set(os.listdir(fd))
            for name in names:
                alone = (
                    name.endswith(journal.BEFORE)
                    and name[: -len(journal.BEFORE)] + journal.INTENT not in names
                )
                if alone or (name.startswith(".") and name.endswith(".tmp")):
                    durable.unlink(name, fd)
        if not names:
            with contextlib.suppress(OSError):
                os.rmdir(os.path.join(root, journal.FOLDER, run_id))
