# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends changes that were interrupted.

The file itself shows the result. It has the former bytes (not done), the new bytes (done, and only
the record is missing), or others (superseded: these stay, and the former bytes stay in the
journal).
"""

import contextlib
import os

from ..changes import durable_files, journal_entry
from ..state import journal, storage
from ..state.pending_changes import AFTER, BEFORE, NEITHER, present, state_of
from ..state.storage import ChangeError
from ..state.targets import target_of
from .revert.registry import writer_of

STATES = {AFTER: journal.COMMITTED, BEFORE: journal.NOT_DONE, NEITHER: journal.SUPERSEDED}


def recover(item, step):
    """End one interrupted change, and return {run_id, entry, path, result, sha256}.

    item: the change, as `pending` returns it.

    A second call changes nothing.
    """
    with step.exclusive():
        return _recover(item["run_id"], item["entry"], step)


def recover_all(step, only_run=None):
    """End every interrupted change, and remove what killed processes left in kubemend's directory.

    only_run: the only run whose changes are ended; None for those of all runs.

    A change of an API object or of a process stays open while its state cannot be read. Its result
    is None then, and `error` has the reason.
    """
    with step.exclusive() as root_fd:
        results = [
            _recover_or_tell(item, step)
            for item in journal.open_entries(step.root)
            if only_run in (None, item["run_id"])
        ]
        if root_fd is not None:
            with storage.change_errors(f"{step.root} cannot be tidied"):
                _sweep(root_fd, step.root)
    return results


def _recover_or_tell(item, step):
    try:
        return _recover(item["run_id"], item["entry"], step)
    except ChangeError as error:
        intent = item["intent"]
        if intent is None or target_of(intent).is_file:
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
    item = _readable(run_id, name, step.root)
    intent, end = item["intent"], item["end"]
    answer = {"run_id": run_id, "entry": name, "path": intent["path"]}
    if end:
        return dict(answer, result=end["result"], sha256=end["sha256_present"])
    with storage.change_errors(
        "the interrupted change of {} (entry {} of run {}) was not ended".format(
            intent["path"], name, run_id
        )
    ):
        sha256, result = _outcome(intent, step)
        if not step.check:
            with journal.opened(step.root, run_id) as fd:
                entry = journal_entry.Entry(os.dup(fd), name, run_id)
                with entry:
                    entry.end(result, step.run_id, "ended after an interruption", sha256)
    return dict(answer, result=result, sha256=sha256)


def _readable(run_id, name, root):
    """Return the journal's item of this entry; raise ChangeError where it cannot be read."""
    item = next((entry for entry in journal.read_run(run_id, root) if entry["entry"] == name), None)
    if item is None or item["error"]:
        raise ChangeError(
            "the entry {} of run {} cannot be read in the journal ({}); compare the file that it is"
            " about, then move the entry away".format(
                name, run_id, item["error"] if item else "it is gone"
            )
        )
    return item


def _outcome(intent, step):
    """Return (the digest that is present, the result) of a change that was interrupted."""
    target = target_of(intent)
    if not target.readable:
        return _unread_back(intent, step)
    if not step.check and target.is_file:
        _remove_temporary(intent)
    sha256 = present(intent, step.root)
    return sha256, STATES[state_of(intent, sha256)]


def _unread_back(intent, step):
    """Undo what cannot be read back, such as a log verbosity, so that it was not done."""
    if not step.check:
        writer_of(intent).undo_open(intent)
    return intent["sha256_before"], journal.NOT_DONE


def _remove_temporary(intent):
    """Remove the temporary file and sync the folder before the end is recorded."""
    try:
        folder = os.open(os.path.dirname(intent["real"]), storage.FOLDER_FLAGS)
    except FileNotFoundError:
        return
    with storage.descriptor(folder):
        if intent["temp"]:
            durable_files.unlink(intent["temp"], folder)
        os.fsync(folder)


def _sweep(root_fd, root):
    """Remove kubemend's temporary files, and former bytes whose intent was never written.

    No process uses them, because the caller holds the flock.
    """
    for name in os.listdir(root_fd):
        if _is_temporary(name):
            durable_files.unlink(name, root_fd)
    for run_id in journal.run_ids(root):
        with journal.opened(root, run_id) as fd:
            names = set(os.listdir(fd))
            for name in names:
                if _is_without_intent(name, names) or _is_temporary(name):
                    durable_files.unlink(name, fd)
        if not names:
            with contextlib.suppress(OSError):
                os.rmdir(os.path.join(root, journal.FOLDER, run_id))


def _is_temporary(name):
    return name.startswith(".") and name.endswith(".tmp")


def _is_without_intent(name, names):
    """Return whether a file holds former bytes, and none of the names is their intent."""
    if not name.endswith(journal.BEFORE):
        return False
    return name[: -len(journal.BEFORE)] + journal.INTENT not in names
