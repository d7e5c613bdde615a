# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a step's proof, in the journal beside what it changed.

It says `awaited` before anything is written, and how it ended afterwards. One that still says
`awaited` while its program is gone is a step that was interrupted between write and proof:
evidence, and the next run's to prove or undo.
"""

import os

from ..system import files, procfs
from . import journal
from . import storage as durable
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
    """A step in check mode has come to where it would begin.

    Everything that it looks at before that was well.
    """


def name_of(step):
    """The record's name: never that of an entry, which begins with a digit."""
    return PREFIX + journal.label(step) + SUFFIX


def ticks(pid):
    """When a process started, in the kernel's own count since the boot; None when it is gone."""
    return procfs.ticks(pid)


def _boot():
    return (files.text("/proc/sys/kernel/random/boot_id") or "").strip()


def claim(step, facts):
    """Say that this step is begun. None, or the record of whoever began it before.

    It is not begun a second time. Looked in check mode.
    """
    if step.check:
        raise Looked()
    name = name_of(step.step)
    with step.exclusive() as root_fd:
        with durable.descriptor(durable.private_folder(journal.FOLDER, root_fd)) as runs:
            with durable.descriptor(durable.private_folder(step.run_id, runs)) as fd:
                try:
                    return durable.load(name, fd)
                except FileNotFoundError:
                    pass
                except (OSError, ValueError) as error:
                    raise ChangeError(
                        f"nothing was changed: the proof of step {step.step} cannot be read"
                        f" ({durable.one_line(error)})"
                    )
                with durable.told(
                    f"nothing was changed, because the journal in {step.root} cannot be written"
                ):
                    durable.put(
                        name,
                        dict(
                            facts,
                            schema=SCHEMA,
                            run_id=step.run_id,
                            step=step.step,
                            state=AWAITED,
                            at=durable.now(),
                            by={
                                "boot_id": _boot(),
                                "pid": os.getpid(),
                                "ticks": ticks(os.getpid()),
                            },
                        ),
                        fd,
                    )
    return None


def read(run_id, step, root=ROOT):
    """The record of a step, or None."""
    with journal.opened(root, run_id) as fd:
        try:
            return None if fd is None else durable.load(name_of(step), fd)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            return {
                "run_id": run_id,
                "step": step,
                "state": AWAITED,
                "by": {},
                "error": durable.one_line(error),
            }


def end(run_id, step, state, reason=None, root=ROOT, **more):
    """How it ended. No lock is asked for: a record changes nothing."""
    # said of a step that may have changed much
    unrecorded = f"how step {step} ended was not recorded"
    with durable.exclusive(root, lead=unrecorded), journal.opened(root, run_id) as fd:
        if fd is None:
            return
        with durable.told(unrecorded):
            record = durable.load(name_of(step), fd)
            durable.put(
                name_of(step),
                dict(record, state=state, reason=reason, ended=durable.now(), **more),
                fd,
            )


def ended(step, state, reason, seen=None):
    """The same of a step whose own run ends it: (state, reason, seen), as a remedy answers.

    What was done is told, whether it can be recorded or not.
    """
    try:
        end(step.run_id, step.step, state, reason, step.root, ended_by=step.run_id, seen=seen or {})
    except (OSError, ValueError, ChangeError) as error:
        reason = "; ".join(
            part
            for part in (reason, f"{durable.one_line(error)}; the next run does that (KM902)")
            if part
        )
    return state, reason, seen or {}


def tell(run_id, step, text, root=ROOT, name="progress"):
    """How far the step is, for whoever waits for it, or as `ended_so` why it stays open.

    What cannot be written is not told.
    """
    try:
        with durable.exclusive(root), journal.opened(root, run_id) as fd:
            record = durable.load(name_of(step), fd)
            durable.put(name_of(step), dict(record, **{name: text}), fd)
    except (OSError, ValueError, TypeError, ChangeError):
        return


def alive(record):
    """Whether the program that began the step is still at work. We are not.

    Who asks has come back from its own step, whose end was not recorded.
    """
    by = record.get("by") or {}
    return (
        by.get("pid") not in (None, os.getpid())
        and by.get("boot_id") == _boot()
        and by.get("ticks") is not None
        and ticks(by["pid"]) == by["ticks"]
    )


def _records(root):
    """[(run id, its records)], the oldest run first."""
    found = []
    for run_id in journal.run_ids(root):
        with journal.opened(root, run_id) as fd:
            names = (
                []
                if fd is None
                else sorted(
                    name
                    for name in os.listdir(fd)
                    if name.startswith(PREFIX) and name.endswith(SUFFIX)
                )
            )
            found.append((run_id, [_loaded(name, fd, run_id) for name in names]))
    return found


def of_run(run_id, root=ROOT):
    """The records of one run, in the order of its steps."""
    return [record for found, records in _records(root) if found == run_id for record in records]


def failures(root=ROOT):
    """{component: the record of its newest step}, of those whose newest step failed."""
    newest = {
        record["component"]: record
        for dummy, records in _records(root)
        for record in records
        if record.get("component")
    }
    return {
        component: record for component, record in newest.items() if record.get("state") == FAILED
    }


def unproven(root=ROOT):
    """Every step that was begun and has no end.

    Its record, with `running` and `entry`, the last item of the journal (or None) of it.
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
        return durable.load(name, fd)
    except (OSError, ValueError) as error:
        return {
            "run_id": run_id,
            "step": name[len(PREFIX) : -len(SUFFIX)],
            "state": AWAITED,
            "error": durable.one_line(error),
        }


def _entry(record, items):
    mine = [
        item
        for item in items
        if item["intent"]
        and item["intent"]["step"] == record.get("step")
        and not item["intent"]["reverts"]
    ]
    return mine[-1] if mine else None
