# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a step, in the journal next to its changes.

Its state is `awaited` before anything is written, and the result of the step afterwards. A record
that is still `awaited` while its process is gone is a step that was interrupted between the write
and the verification. It is evidence, and the next run verifies the step or rolls it back.
"""

import contextlib
import os

from ..system import files, procfs
from . import journal, storage
from .storage import ROOT, ChangeError

SCHEMA = "kubemend.proof/1"
PREFIX, SUFFIX = "proof-", ".json"
AWAITED, PROVEN, ROLLED_BACK, FAILED, NOT_DONE = (
    "awaited",
    "proven",
    "rolled_back",
    "failed",
    "not_done",
)


class Looked(Exception):
    """A step in check mode has come to where it would begin: every precondition holds."""


def name_of(step):
    """Return the record's name: never that of an entry, which begins with a digit."""
    return PREFIX + journal.label(step) + SUFFIX


def ticks(pid):
    """Return when a process started, in the kernel's ticks since the boot; None when it is gone."""
    return procfs.ticks(pid)


def _boot():
    return (files.text("/proc/sys/kernel/random/boot_id") or "").strip()


def claim(step, facts):
    """Record that this step begins, and return None, or the record of an earlier attempt at it.

    A step does not begin twice, although Ansible may open a connection twice. In check mode the
    function raises Looked.
    """
    if step.check:
        raise Looked()
    name = name_of(step.step)
    with step.exclusive() as root_fd, _run_directory(step, root_fd) as fd:
        earlier = _earlier(name, step, fd)
        if earlier is not None:
            return earlier
        with storage.told(
            f"nothing was changed, because the journal in {step.root} cannot be written"
        ):
            storage.put(name, _begun(step, facts), fd)
    return None


@contextlib.contextmanager
def _run_directory(step, root_fd):
    runs = storage.private_folder(journal.FOLDER, root_fd)
    with storage.descriptor(runs), storage.descriptor(
        storage.private_folder(step.run_id, runs)
    ) as fd:
        yield fd


def _earlier(name, step, fd):
    try:
        return storage.load(name, fd)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ChangeError(
            f"nothing was changed: the proof of step {step.step} cannot be read"
            f" ({storage.one_line(error)})"
        ) from error


def _begun(step, facts):
    program = {"boot_id": _boot(), "pid": os.getpid(), "ticks": ticks(os.getpid())}
    return dict(
        facts,
        schema=SCHEMA,
        run_id=step.run_id,
        step=step.step,
        state=AWAITED,
        at=storage.now(),
        by=program,
    )


def read(run_id, step, root=ROOT):
    """Return the record of a step, or None."""
    with journal.opened(root, run_id) as fd:
        try:
            return None if fd is None else storage.load(name_of(step), fd)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            return {
                "run_id": run_id,
                "step": step,
                "state": AWAITED,
                "by": {},
                "error": storage.one_line(error),
            }


def end(run_id, step, state, reason=None, root=ROOT, **more):
    """Record how a step ended. No lock is needed: a record changes nothing on the node."""
    unrecorded = f"how step {step} ended was not recorded"
    with storage.exclusive(root, lead=unrecorded), journal.opened(root, run_id) as fd:
        if fd is None:
            return
        with storage.told(unrecorded):
            record = storage.load(name_of(step), fd)
            storage.put(
                name_of(step),
                dict(record, state=state, reason=reason, ended=storage.now(), **more),
                fd,
            )


def ended(step, state, reason, seen=None):
    """Record how a step ended that its own run ends, and return (state, reason, seen).

    Where the record could not be written, the reason says so.
    """
    try:
        end(step.run_id, step.step, state, reason, step.root, ended_by=step.run_id, seen=seen or {})
    except (OSError, ValueError, ChangeError) as error:
        unrecorded = f"{storage.one_line(error)}; the next run does that (KM902)"
        reason = f"{reason}; {unrecorded}" if reason else unrecorded
    return state, reason, seen or {}


def tell(run_id, step, text, root=ROOT, name="progress"):
    """Record the progress of a step for a waiting run, or in `ended_so` why the step stays open.

    Nothing is recorded where the record cannot be written.
    """
    try:
        with storage.exclusive(root), journal.opened(root, run_id) as fd:
            record = storage.load(name_of(step), fd)
            storage.put(name_of(step), dict(record, **{name: text}), fd)
    except (OSError, ValueError, TypeError, ChangeError):
        return


def alive(record):
    """Return whether another process than this one still runs the step.

    A process that reads its own record has come back from a step whose end was not recorded.
    """
    program = record.get("by") or {}
    if program.get("pid") in (None, os.getpid()) or program.get("ticks") is None:
        return False
    if program.get("boot_id") != _boot():
        return False
    return ticks(program["pid"]) == program["ticks"]


def _records(root):
    """Return [(run id, its records)], the oldest run first."""
    return [(run_id, of_run(run_id, root)) for run_id in journal.run_ids(root)]


def of_run(run_id, root=ROOT):
    """Return the records of one run, in the order of its steps."""
    with journal.opened(root, run_id) as fd:
        names = [] if fd is None else os.listdir(fd)
        return [_loaded(name, fd, run_id) for name in sorted(names) if _is_record(name)]


def _is_record(name):
    return name.startswith(PREFIX) and name.endswith(SUFFIX)


def failures(root=ROOT):
    """Return {component: the record of its newest step}, of those whose newest step failed."""
    newest = {}
    for _run_id, records in _records(root):
        newest.update(
            {record["component"]: record for record in records if record.get("component")}
        )
    return {
        component: record for component, record in newest.items() if record.get("state") == FAILED
    }


def unproven(root=ROOT):
    """Return the record of every step that began and has no end.

    running: whether a process still runs the step.
    entry: the last item of the journal about the step, or None.
    """
    found = []
    for run_id, records in _records(root):
        awaited = [record for record in records if record.get("state") == AWAITED]
        if awaited:
            items = journal.read_run(run_id, root)
            found += [
                dict(record, running=alive(record), entry=_entry(record, items))
                for record in awaited
            ]
    return found


def _loaded(name, fd, run_id):
    try:
        return storage.load(name, fd)
    except (OSError, ValueError) as error:
        return {
            "run_id": run_id,
            "step": name[len(PREFIX) : -len(SUFFIX)],
            "state": AWAITED,
            "error": storage.one_line(error),
        }


def _entry(record, items):
    entries = [item for item in items if item["intent"] and _is_of_step(item["intent"], record)]
    return entries[-1] if entries else None


def _is_of_step(intent, record):
    return intent["step"] == record.get("step") and not intent["reverts"]
