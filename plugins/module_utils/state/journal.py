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
    RUN_ID,
    UNIT,
    WORKLOAD,
)
from . import lock, storage
from .storage import ROOT, ChangeError

SCHEMA = "kubemend.journal/1"
INTENT, END, BEFORE = ".json", ".end.json", ".before"
ENTRY = re.compile(r"[0-9]{3,}-[A-Za-z0-9_%-]+\Z")
COMMITTED, NOT_DONE, SUPERSEDED = "committed", "not_done", "superseded"
PENDING, UNREADABLE = "pending", "unreadable"


class StepContext:
    """The context of a change: the run, the plan's step, what it does and why.

    check: change nothing.
    must_hold: the run must hold this node's lock. Without it the node may have no lock at all, but
        never the lock of another run.
    keep: why a revert leaves the file as it is, for files that must not be restored.
    reverts: `<run id>/<entry>` of the reverted entry.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the fields of a record
        self,
        run_id,
        step,
        what,
        why,
        root=ROOT,
        check=False,
        must_hold=False,
        keep=None,
        reverts=None,
    ):
        if not isinstance(run_id, str) or not RUN_ID.match(run_id):
            raise ChangeError(
                f"nothing was changed: {run_id!r} is no run id (YYYYMMDDTHHMMSSZ-<6 hex digits>)"
            )
        self.run_id = run_id
        self.step = step
        self.what = what
        self.why = why
        self.root = root
        self.check = check
        self.must_hold = must_hold
        self.keep = keep
        self.reverts = reverts

    def also(self, **changes):
        """Return a copy with other values."""
        values = dict(vars(self), **changes)
        return StepContext(
            values.pop("run_id"),
            values.pop("step"),
            values.pop("what"),
            values.pop("why"),
            **values,
        )

    @contextlib.contextmanager
    def exclusive(self):
        """Yield a descriptor of kubemend's directory while only this run may change the node.

        In check mode the descriptor is None.
        """
        if self.check:
            with storage.told(f"{self.root} cannot be read"):
                yield None
            return
        with storage.exclusive(self.root) as folder:
            lock.demand(self.run_id, folder, self.root, self.must_hold)
            yield folder


class Entry:
    """A change whose intent is on the disk."""

    def __init__(self, fd, name, run_id):
        self.fd = fd
        self.name = name
        self.run_id = run_id

    def __enter__(self):
        return self

    def __exit__(self, *dummy):
        os.close(self.fd)

    def commit(self):
        """Record for good that the change is done."""
        storage.publish(self.name + END, self.fd)

    def end(self, result, by, reason=None, sha256=None):
        """Record another end, or an end that another run finds."""
        storage.put(self.name + END, end_record(self.name, result, by, reason, sha256), self.fd)

    def abandon(self, reason):
        """Record that nothing was changed; where that fails, the next recovery finds out."""
        with contextlib.suppress(OSError):
            storage.unlink(storage.temporary(self.name + END), self.fd)
            self.end(NOT_DONE, self.run_id, reason)


def end_record(name, result, by, reason=None, sha256=None):
    """Return the record of how an entry ended."""
    return {
        "schema": SCHEMA,
        "entry": name,
        "result": result,
        "at": storage.now(),
        "by": by,
        "reason": reason,
        "sha256_present": sha256,
    }


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


def begin(step, root_fd, facts, former, after):
    """Write the intent, with the former bytes (None: there was no file).

    facts: further fields of the record.
    """
    with storage.descriptor(storage.private_folder(FOLDER, root_fd)) as runs:
        fd = storage.private_folder(step.run_id, runs)
    try:
        name = f"{_next_number(fd):03d}-{label(step.step)}"
        record = dict(
            facts,
            schema=SCHEMA,
            run_id=step.run_id,
            step=step.step,
            entry=name,
            what=step.what,
            why=step.why,
            at=storage.now(),
            keep=step.keep,
            reverts=step.reverts,
            before=name + BEFORE,
            temp=f".kubemend-{step.run_id}-{name[:60]}.tmp",
        )
        if former is None:
            record["before"] = None
        if after is None:
            record["temp"] = None
        _write_intent(fd, name, record, former)
        return Entry(fd, name, step.run_id), record
    except BaseException:
        os.close(fd)
        raise


def _next_number(fd):
    numbers = [re.match(r"[0-9]{3,}", name) for name in os.listdir(fd)]
    return 1 + max([0] + [int(match.group()) for match in numbers if match])


def _write_intent(fd, name, record, former):
    """Write the intent last, after everything that belongs to it; on failure none of it."""
    try:
        if former is not None:
            storage.write_new(name + BEFORE, former, fd)
        storage.prepare(name + END, end_record(name, COMMITTED, record["run_id"]), fd)
        storage.put(name + INTENT, record, fd)
    except BaseException:
        with contextlib.suppress(OSError):
            for leftover in (
                name + INTENT,
                storage.temporary(name + INTENT),
                storage.temporary(name + END),
                name + BEFORE,
            ):
                storage.unlink(leftover, fd)
        raise


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
    found = []
    with opened(root, run_id) as fd:
        names = set() if fd is None else set(os.listdir(fd))
        for entry in sorted(_entries(names)):
            has_end = entry + END in names
            if not (only_open and has_end):
                found.append(_read_entry(run_id, entry, has_end, fd))
    return sorted(found, key=lambda item: int(item["entry"].partition("-")[0]))


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
