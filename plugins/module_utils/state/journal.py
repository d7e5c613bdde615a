# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal of a node. What was to be changed, by which run and why, and what became of it.

A change is an intent (`<nnn>-<step>.json`), the former bytes beside it (`.before`), and an end
(`.end.json`), which lies there prepared before the file is touched, so that a disk that fills up
meanwhile cannot keep it out. An intent without an end is a change that was interrupted: evidence,
and refused as ground for the next change of that file.
"""

import base64
import contextlib
import os
import re

from ..shared.journal_names import CONFIG_MAP, FOLDER, LEVEL, RUN_ID, UNIT, WORKLOAD  # noqa: F401 - others take the prefixes from here
from . import lock
from . import storage as durable
from .storage import ROOT, ChangeError

SCHEMA = "kubemend.journal/1"
INTENT, END, BEFORE = ".json", ".end.json", ".before"
ENTRY = re.compile(r"[0-9]{3,}-[A-Za-z0-9_%-]+\Z")
COMMITTED, NOT_DONE, SUPERSEDED = "committed", "not_done", "superseded"


class Step:
    """On whose behalf something is changed: the run, the plan's step, what it does and why.

    `check` changes nothing.

    must_hold: refuse unless the run holds this node's lock; without it no lock at all is enough,
    another's never. keep: why a revert leaves the file as it is, for files that must not be put
    back; reverts: `<run id>/<entry>`.
    """

    def __init__(
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
        """The same with other values."""
        values = dict(vars(self), **changes)
        return Step(
            values.pop("run_id"),
            values.pop("step"),
            values.pop("what"),
            values.pop("why"),
            **values,
        )

    @contextlib.contextmanager
    def exclusive(self):
        """Our folder's descriptor, while nobody else of us changes the node and the run may.

        None in check mode.
        """
        if self.check:
            with durable.told(f"{self.root} cannot be read"):
                yield None
            return
        with durable.exclusive(self.root) as folder:
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
        """It is done, for good."""
        durable.publish(self.name + END, self.fd)

    def end(self, result, by, reason=None, sha256=None):
        """It came to another end, or somebody else ends it."""
        durable.put(self.name + END, end_record(self.name, result, by, reason, sha256), self.fd)

    def abandon(self, reason):
        """Nothing was changed. If even that cannot be written, the next run's recovery finds
        out.
        """
        with contextlib.suppress(OSError):
            durable.unlink(durable.temporary(self.name + END), self.fd)
            self.end(NOT_DONE, self.run_id, reason)


def end_record(name, result, by, reason=None, sha256=None):
    """What became of an entry."""
    return {
        "schema": SCHEMA,
        "entry": name,
        "result": result,
        "at": durable.now(),
        "by": by,
        "reason": reason,
        "sha256_present": sha256,
    }


def label(step):
    """A step's id as part of a file name."""
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

    `facts` go into the record as they are.
    """
    with durable.descriptor(durable.private_folder(FOLDER, root_fd)) as runs:
        fd = durable.private_folder(step.run_id, runs)
    try:
        name = "%03d-%s" % (_next_number(fd), label(step.step))
        record = dict(
            facts,
            schema=SCHEMA,
            run_id=step.run_id,
            step=step.step,
            entry=name,
            what=step.what,
            why=step.why,
            at=durable.now(),
            keep=step.keep,
            reverts=step.reverts,
            before=None if former is None else name + BEFORE,
            temp=None if after is None else f".kubemend-{step.run_id}-{name[:60]}.tmp",
        )
        _write_intent(fd, name, record, former)
        return Entry(fd, name, step.run_id), record
    except BaseException:
        os.close(fd)
        raise


def _next_number(fd):
    numbers = [re.match(r"[0-9]{3,}", name) for name in os.listdir(fd)]
    return 1 + max([0] + [int(match.group()) for match in numbers if match])


def _write_intent(fd, name, record, former):
    """The intent last, and with it everything that belongs to it; on failure none of it."""
    try:
        if former is not None:
            durable.write_new(name + BEFORE, former, fd)
        durable.prepare(name + END, end_record(name, COMMITTED, record["run_id"]), fd)
        durable.put(name + INTENT, record, fd)
    except BaseException:
        with contextlib.suppress(OSError):
            for leftover in (
                name + INTENT,
                durable.temporary(name + INTENT),
                durable.temporary(name + END),
                name + BEFORE,
            ):
                durable.unlink(leftover, fd)
        raise


@contextlib.contextmanager
def opened(root, run_id=None):
    """A descriptor of the journal, or of a run's part of it; None when there is none.

    Makes nothing.
    """
    try:
        fd = os.open(os.path.join(root, FOLDER, run_id or ""), durable.FOLDER_FLAGS | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield None
        return
    with durable.descriptor(fd):
        yield fd


def run_ids(root=ROOT):
    """Every run with a folder, oldest first."""
    with opened(root) as fd:
        return [] if fd is None else sorted(name for name in os.listdir(fd) if RUN_ID.match(name))


def read_run(run_id, root=ROOT, only_open=False):
    """The entries of a run in their order: {run_id, entry, intent, end, error}; only_open.

    Those without an end.
    """
    found = []
    with opened(root, run_id) as fd:
        names = set() if fd is None else set(os.listdir(fd))
        for name in sorted(
            name[: -len(INTENT)]
            for name in names
            if name.endswith(INTENT) and ENTRY.match(name[: -len(INTENT)])
        ):
            ended = name + END in names
            if only_open and ended:
                continue
            item = {"run_id": run_id, "entry": name, "intent": None, "end": None, "error": None}
            try:
                item["intent"] = durable.load(name + INTENT, fd)
                item["end"] = durable.load(name + END, fd) if ended else None
            except (OSError, ValueError) as error:
                item["error"] = durable.one_line(error)
            found.append(item)
    return sorted(found, key=lambda item: int(item["entry"].partition("-")[0]))


def open_entries(root=ROOT):
    """Every intent without an end."""
    return [item for run_id in run_ids(root) for item in read_run(run_id, root, only_open=True)]


def list_runs(root=ROOT, last=None):
    """The newest `last` runs (default.

    All) that changed or tried to change anything, oldest first, with what became of it.
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
    results = [
        item["end"]["result"] if item["end"] else "unreadable" if item["error"] else "pending"
        for item in entries
    ]
    counted = {
        result: results.count(result)
        for result in (COMMITTED, NOT_DONE, SUPERSEDED, "pending", "unreadable")
    }
    return dict(
        counted,
        run_id=run_id,
        entries=len(entries),
        paths=sorted({intent["path"] for intent in intents}),
        first=min([intent["at"] for intent in intents] or [None]),
        last=max([intent["at"] for intent in intents] or [None]),
        reverts=sorted(
            {intent["reverts"].partition("/")[0] for intent in intents if intent["reverts"]}
        ),
    )


def former_bytes(item, root=ROOT):
    """The bytes that an entry kept; ChangeError when they are not there or not what they were."""
    intent = item["intent"]
    try:
        with durable.descriptor(
            os.open(
                os.path.join(root, FOLDER, item["run_id"]), durable.FOLDER_FLAGS | os.O_NOFOLLOW
            )
        ) as fd:
            data = durable.read_bytes(intent["before"], fd, intent["size_before"])
    except (OSError, ValueError) as error:
        raise ChangeError(
            "{} was not changed: its former bytes, {} of run {} in the journal, cannot be read ({})".format(
                intent["path"], intent["before"], item["run_id"], error
            )
        )
    if durable.digest(data) != intent["sha256_before"]:
        raise ChangeError(
            "{} was not changed: its former bytes, {} of run {} in the journal, are no longer what"
            " they were".format(intent["path"], intent["before"], item["run_id"])
        )
    return data


def packed(xattrs):
    """Extended attributes as JSON can hold them."""
    return {name: base64.b64encode(value).decode("ascii") for name, value in xattrs.items()}


def unpacked(xattrs):
    """And back."""
    return {name: base64.b64decode(value) for name, value in xattrs.items()}
