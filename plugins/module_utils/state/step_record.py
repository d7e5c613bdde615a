# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a step, in the journal next to its changes.

Its state is `awaited` before anything is written, and the result of the step afterwards. A record
that is still `awaited` while its process is gone is a step that was interrupted between the write
and the verification. It is evidence, and the next run verifies the step or rolls it back.
"""

import os

from ..system import files, procfs
from . import journal, storage
from .storage import ROOT

SCHEMA = "kubemend.proof/1"
PREFIX, SUFFIX = "proof-", ".json"
AWAITED, PROVEN, ROLLED_BACK, FAILED, NOT_DONE = (
    "awaited",
    "proven",
    "rolled_back",
    "failed",
    "not_done",
)


def name_of(step):
    """Return the record's name: never that of an entry, which begins with a digit."""
    return PREFIX + journal.label(step) + SUFFIX


def ticks(pid):
    """Return when a process started, in the kernel's ticks since the boot; None when it is gone."""
    return procfs.ticks(pid)


def boot():
    """Return the id of this boot of the node, or "" where it cannot be read."""
    return (files.text("/proc/sys/kernel/random/boot_id") or "").strip()


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


def alive(record):
    """Return whether another process than this one still runs the step.

    A process that reads its own record has come back from a step whose end was not recorded.
    """
    program = record.get("by") or {}
    if program.get("pid") in (None, os.getpid()) or program.get("ticks") is None:
        return False
    if program.get("boot_id") != boot():
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
    open_records = []
    for run_id, records in _records(root):
        awaited = [record for record in records if record.get("state") == AWAITED]
        if awaited:
            items = journal.read_run(run_id, root)
            open_records += [
                dict(record, running=alive(record), entry=_entry(record, items))
                for record in awaited
            ]
    return open_records


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
