# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Log levels of this node that a restart raised and that are still raised.

The journal, the files and the processes show them. An audit imports this module too: nothing here
changes anything, and nothing that does is imported.
"""

import os
import re

from ..shared.klog_verbosity import explicit_verbosity, of_argv
from ..shared.paths import ROOT
from ..system import component_process, kubelet_process, procfs
from . import journal, revert_plan, step_record

ARGUMENT = r"""(?m)^(?![ \t]*[#;]).*--v(?:=|["',\s-]+)%s(?![0-9])"""
KUBELET = "kubelet"
MAX_FILE = 1024 * 1024  # bytes
CAN_COME_BACK = {revert_plan.RESTORE, revert_plan.OPEN}
PREFIX = step_record.PREFIX + "raise-"  # records of these steps, and of no others


def records(run_id, root=ROOT):
    """Return the records of the steps by which the run raised levels with a restart."""
    return [record for record in _read(run_id, root) if record.get("component")]


def unread(run_id, root=ROOT):
    """Return why it is unknown what the run raised here by a restart; None where it is known."""
    errors = [str(record["error"]) for record in _read(run_id, root) if record.get("error")]
    return errors[0] if errors else None


def _read(run_id, root):
    with journal.opened(root, run_id) as fd:
        names = [] if fd is None else sorted(os.listdir(fd))
    steps = [
        name[len(step_record.PREFIX) : -len(step_record.SUFFIX)]
        for name in names
        if name.startswith(PREFIX) and name.endswith(step_record.SUFFIX)
    ]
    step_records = [step_record.read(run_id, step, root) for step in steps]
    return [record for record in step_records if record]


def restorable_records(run_id, root=ROOT):
    """Return the records of levels that may be raised still, and whose files can be restored."""
    return _by_owner(run_id, root)[0]


def edited(run_id, root=ROOT):
    """Return [(record, (whether the level is still raised, what is to be done by hand))].

    The list has the levels whose file was edited after kubemend raised them. Such an edit is not
    undone.
    """
    return [(record, _by_hand(record)) for record in _by_owner(run_id, root)[1]]


def _by_owner(run_id, root):
    """Return the records of levels that a revert restores, and of those with a foreign edit."""
    managed, foreign = [], []
    step_records = records(run_id, root)
    if not step_records:
        return managed, foreign
    unverified = _unverified(run_id, root)
    plan = revert_plan.plan_revert(run_id, root)
    for record in step_records:
        states = {change["state"] for change in plan if change["path"] in paths_of(record)}
        is_interrupted = record["component"] in unverified
        if not is_interrupted and _has_foreign_edit(states):
            if not _is_raised_since(run_id, record["component"], root):
                foreign.append(record)
        elif is_interrupted or states & CAN_COME_BACK or _kubelet_is_left(record):
            managed.append(record)
    return managed, foreign


def _unverified(run_id, root):
    """Return the components of the run's steps that were not proven."""
    return [
        record.get("component")
        for record in step_record.unproven(root)
        if record["run_id"] == run_id
    ]


def _has_foreign_edit(states):
    return revert_plan.CONFLICT in states and not states & CAN_COME_BACK


def _kubelet_is_left(record):
    return record["component"] == KUBELET and raised_kubelet_runs(record)


def _is_raised_since(run_id, component, root):
    """Return whether a later run raised it too: something had taken it down before that."""
    later = [other for other in journal.run_ids(root) if other > run_id]
    return any(_raised(component, other, root) for other in later)


def _raised(component, run_id, root):
    return any(
        record["component"] == component and record.get("state") != step_record.NOT_DONE
        for record in records(run_id, root)
    )


def raised_to(record):
    """Return the level that the step raised it to, as text."""
    expect = record.get("expect") or {}
    return str(expect.get("level") or (expect.get("flags") or {}).get("v"))


def _by_hand(record):
    """Return (whether the level is still raised, one sentence).

    The present file and the running process decide it.
    """
    level, component, paths = raised_to(record), record["component"], paths_of(record)
    path = _path_with(level, paths)
    if path:
        return True, (
            f"{path} was edited meanwhile: take --v={level} out by hand (before it was:"
            f" {_former(record)})"
        )
    running = _levels(component)
    if level in running:
        return True, (
            f"{paths[0]} was edited meanwhile and does not give --v={level} any more, but"
            f" {component} still runs with it: restart it by hand"
        )
    state = f"runs at level {running[0]} now" if running else "does not run"
    return False, f"{paths[0]} was edited meanwhile: {component} {state}"


def _path_with(level, paths):
    """Return the first of the files that gives the level, where all of them exist; or None."""
    if not all(os.path.exists(path) for path in paths):
        return None
    return next((path for path in paths if _gives(path, level)), None)


def _former(record):
    former = explicit_verbosity((record.get("former") or {}).get("argv") or [])
    return "no --v" if former is None else f"--v={former:d}"


def _gives(path, level):
    """Return whether the file gives that level, anywhere in it; comments do not count."""
    try:
        with open(path, "rb") as handle:
            text = handle.read(MAX_FILE).decode("utf-8", "replace")
    except OSError:
        return False
    return re.search(ARGUMENT % re.escape(level), text) is not None


def _levels(component):
    """Return the levels that the command lines of its processes give, the youngest first."""
    if component != KUBELET:
        processes = component_process.instances(component)
        return [str(of_argv(process.argv)) for process in processes]
    try:
        kubelet = kubelet_process.here(procfs.of_interest())[0]
    except Exception:  # pylint: disable=broad-except
        return []  # nothing is known of it
    return [str(of_argv(kubelet["raw"]))] if kubelet else []


def raised_kubelet_runs(record):
    """Return whether the process that started with the raised level still runs.

    Its files may have their former bytes already.
    """
    process = record.get("seen") or {}
    return bool(process.get("pid")) and step_record.ticks(process["pid"]) == process.get("ticks")


def paths_of(record):
    """Return the files that the step wrote."""
    return record.get("paths") or [record.get("path")]
