# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal of a node: which run changed what, why, and with which result.

A change is an intent (`<nnn>-<step>.json`), the former bytes in the same folder (`.before`), and an
end (`.end.json`). The end is prepared before the file is changed, so that a full disk cannot
prevent it. An intent without an end is an interrupted change. It is evidence, and the file is not
changed again before that change is ended.
"""

import base64
import contextlib
import os
import re

# The packages above take the prefixes from here.
from ..shared.journal_names import (  # noqa: F401 # pylint: disable=unused-import
    CONFIG_MAP,
    FOLDER,
    LEVEL,
    PACKAGES,
    RUN_ID,
    UNIT,
    WORKLOAD,
)
from . import storage
from .storage import ROOT, ChangeError

SCHEMA = "kubemend.journal/1"
INTENT, END, BEFORE = ".json", ".end.json", ".before"
ENTRY = re.compile(r"[0-9]{3,}-[A-Za-z0-9_%-]+\Z")
COMMITTED, NOT_DONE, SUPERSEDED = "committed", "not_done", "superseded"
PENDING, UNREADABLE = "pending", "unreadable"


def label(step):
    """Return a step's id as part of a file name."""
    quoted = "".join(
        (
            char
            if re.match(r"[A-Za-z0-9_-]", char)
            else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "replace"))
        )
        for char in str(step)[:80]
    )
    return re.sub(r"%[0-9A-F]?\Z", "", quoted[:160]) or "step"


@contextlib.contextmanager
def opened(root, run_id=None):
    """Yield a descriptor of the journal, or of a run's part of it; None when there is none.

    The function creates nothing.
    """
    try:
        fd = os.open(os.path.join(root, FOLDER, run_id or ""), storage.FOLDER_FLAGS | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield None
        return
    with storage.descriptor(fd):
        yield fd


def run_ids(root=ROOT):
    """Return every run with a directory, oldest first."""
    with opened(root) as fd:
        names = [] if fd is None else os.listdir(fd)
    return sorted(name for name in names if RUN_ID.match(name))


def items(root=ROOT, first_run=""):
    """Yield the entries of all runs, oldest first, as read_run returns them; from one run on."""
    for run_id in run_ids(root):
        if run_id >= first_run:
            yield from read_run(run_id, root)


def read_run(run_id, root=ROOT, only_open=False):
    """Return the entries of a run in their order: {run_id, entry, intent, end, error}.

    only_open: return only entries without an end.
    """
    entries = []
    with opened(root, run_id) as fd:
        names = set() if fd is None else set(os.listdir(fd))
        for entry in sorted(_entries(names)):
            has_end = entry + END in names
            if not (only_open and has_end):
                entries.append(_read_entry(run_id, entry, has_end, fd))
    return sorted(entries, key=lambda item: int(item["entry"].partition("-")[0]))


def _entries(names):
    entries = [name[: -len(INTENT)] for name in names if name.endswith(INTENT)]
    return [entry for entry in entries if ENTRY.match(entry)]


def _read_entry(run_id, entry, has_end, fd):
    item = {"run_id": run_id, "entry": entry, "intent": None, "end": None, "error": None}
    try:
        item["intent"] = storage.load(entry + INTENT, fd)
        if has_end:
            item["end"] = storage.load(entry + END, fd)
    except (OSError, ValueError) as error:
        item["error"] = storage.one_line(error)
    return item


def open_entries(root=ROOT):
    """Return every intent without an end."""
    return [item for run_id in run_ids(root) for item in read_run(run_id, root, only_open=True)]


def list_runs(root=ROOT, last=None):
    """Return the newest `last` runs (default: all) that tried to change anything, oldest first.

    Each one has the number of its changes by their result.
    """
    runs = []
    for run_id in reversed(run_ids(root)):
        entries = read_run(run_id, root)
        if last is not None and len(runs) >= last:
            break
        if entries:
            runs.insert(0, _summary(run_id, entries))
    return runs


def _summary(run_id, entries):
    intents = [item["intent"] for item in entries if item["intent"]]
    results = [_result(item) for item in entries]
    times = sorted(intent["at"] for intent in intents) or [None]
    counted = {
        result: results.count(result)
        for result in (COMMITTED, NOT_DONE, SUPERSEDED, PENDING, UNREADABLE)
    }
    return dict(
        counted,
        run_id=run_id,
        entries=len(entries),
        paths=sorted({intent["path"] for intent in intents}),
        first=times[0],
        last=times[-1],
        reverts=sorted(
            {intent["reverts"].partition("/")[0] for intent in intents if intent["reverts"]}
        ),
    )


def _result(item):
    if item["end"]:
        return item["end"]["result"]
    return UNREADABLE if item["error"] else PENDING


def former_bytes(item, root=ROOT):
    """Return the bytes that an entry kept; ChangeError when they are gone or not what they were."""
    intent = item["intent"]
    directory = os.path.join(root, FOLDER, item["run_id"])
    lead = "{} was not changed: its former bytes, {} of run {} in the journal,".format(
        intent["path"], intent["before"], item["run_id"]
    )
    try:
        with storage.descriptor(os.open(directory, storage.FOLDER_FLAGS | os.O_NOFOLLOW)) as fd:
            data = storage.read_bytes(intent["before"], fd, intent["size_before"])
    except (OSError, ValueError) as error:
        raise ChangeError(f"{lead} cannot be read ({error})") from error
    if storage.digest(data) != intent["sha256_before"]:
        raise ChangeError(f"{lead} are no longer what they were")
    return data


def packed(xattrs):
    """Return extended attributes as JSON can hold them."""
    return {name: base64.b64encode(value).decode("ascii") for name, value in xattrs.items()}


def unpacked(xattrs):
    """Return extended attributes as they were before `packed`."""
    return {name: base64.b64decode(value) for name, value in xattrs.items()}
