# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the record of a step: `awaited` before it changes anything, and how it ended.

state/step_record.py reads it.
"""

import contextlib
import os

from ..shared.journal_names import FOLDER
from ..state import journal, storage
from ..state.step_record import AWAITED, SCHEMA, boot, name_of, ticks
from ..state.storage import ROOT, ChangeError
from . import durable_files


class Looked(Exception):
    """A step in check mode has come to where it would begin: every precondition holds."""


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
        with storage.change_errors(
            f"nothing was changed, because the journal in {step.root} cannot be written"
        ):
            durable_files.put(name, _begun(step, facts), fd)
    return None


@contextlib.contextmanager
def _run_directory(step, root_fd):
    runs = durable_files.private_folder(FOLDER, root_fd)
    with storage.descriptor(runs), storage.descriptor(
        durable_files.private_folder(step.run_id, runs)
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
    program = {"boot_id": boot(), "pid": os.getpid(), "ticks": ticks(os.getpid())}
    return dict(
        facts,
        schema=SCHEMA,
        run_id=step.run_id,
        step=step.step,
        state=AWAITED,
        at=storage.now(),
        by=program,
    )


def end(run_id, step, state, reason=None, root=ROOT, **more):
    """Record how a step ended. No lock is needed: a record changes nothing on the node."""
    unrecorded = f"how step {step} ended was not recorded"
    with durable_files.exclusive(root, lead=unrecorded), journal.opened(root, run_id) as fd:
        if fd is None:
            return
        with storage.change_errors(unrecorded):
            record = storage.load(name_of(step), fd)
            durable_files.put(
                name_of(step),
                dict(record, state=state, reason=reason, ended=storage.now(), **more),
                fd,
            )


def ended(step, state, reason, proof=None):
    """Record how a step ended that its own run ends, and return (state, reason, proof).

    Where the record could not be written, the reason says so.
    """
    try:
        end(
            step.run_id, step.step, state, reason, step.root, ended_by=step.run_id, seen=proof or {}
        )
    except (OSError, ValueError, ChangeError) as error:
        unrecorded = f"{storage.one_line(error)}; the next run does that (KM902)"
        reason = f"{reason}; {unrecorded}" if reason else unrecorded
    return state, reason, proof or {}


def tell(run_id, step, text, root=ROOT, name="progress"):
    """Record the progress of a step for a waiting run, or in `ended_so` why the step stays open.

    Nothing is recorded where the record cannot be written.
    """
    try:
        with durable_files.exclusive(root), journal.opened(root, run_id) as fd:
            record = storage.load(name_of(step), fd)
            durable_files.put(name_of(step), dict(record, **{name: text}), fd)
    except (OSError, ValueError, TypeError, ChangeError):
        return
