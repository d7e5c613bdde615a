# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write an entry of the journal: its intent before a change, and its end after it.

state/journal.py reads them. The end is prepared before the file is changed, so that a full disk
cannot prevent it.
"""

import contextlib
import os
import re

from ..shared.journal_names import FOLDER, RUN_ID
from ..state import storage
from ..state.journal import BEFORE, COMMITTED, END, INTENT, NOT_DONE, SCHEMA, label
from ..state.storage import ROOT, ChangeError
from . import durable_files, node_lock


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
        action,
        reason,
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
        self.what = action
        self.why = reason
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
            with storage.change_errors(f"{self.root} cannot be read"):
                yield None
            return
        with durable_files.exclusive(self.root) as folder:
            node_lock.demand(self.run_id, folder, self.root, self.must_hold)
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
        durable_files.publish(self.name + END, self.fd)

    def end(self, result, by, reason=None, sha256=None):
        """Record another end, or an end that another run finds."""
        durable_files.put(
            self.name + END, end_record(self.name, result, by, reason, sha256), self.fd
        )

    def abandon(self, reason):
        """Record that nothing was changed; where that fails, the next recovery finds out."""
        with contextlib.suppress(OSError):
            durable_files.unlink(durable_files.temporary(self.name + END), self.fd)
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


def begin(step, root_fd, facts, former, after):
    """Write the intent, with the former bytes (None: there was no file).

    facts: further fields of the record.
    """
    with storage.descriptor(durable_files.private_folder(FOLDER, root_fd)) as runs:
        fd = durable_files.private_folder(step.run_id, runs)
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
            durable_files.write_new(name + BEFORE, former, fd)
        durable_files.prepare(name + END, end_record(name, COMMITTED, record["run_id"]), fd)
        durable_files.put(name + INTENT, record, fd)
    except BaseException:
        with contextlib.suppress(OSError):
            for leftover in (
                name + INTENT,
                durable_files.temporary(name + INTENT),
                durable_files.temporary(name + END),
                name + BEFORE,
            ):
                durable_files.unlink(leftover, fd)
        raise
