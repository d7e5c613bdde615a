# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector journal: what earlier runs changed on this node, or left unfinished.

It also has the run that holds the node.
"""

import os

from ...system import procfs
from .. import base

ROOT = "/var/lib/kubemend"
MAX_RUNS = 50
# seconds that a level may stay raised after its time, until what puts it back has done so
PATIENCE = 60
OF_INTENT = ("step", "what", "why", "at", "path", "real", "sha256_before", "sha256_after")


def collect(context):
    """Return {pending, unproven, down, runs, lock, temp_files, busy, levels}.

    The bytes that the journal keeps stay where they are.

    pending: {run_id, entry, state: before|after|neither|unknown, sha256, temp, error} and the
    intent's OF_INTENT. unproven: steps that changed something and have no proof: {run_id, step,
    component, remedy, path, running}. down: components that do not run, and whose newest step
    failed: {run_id, step, component, path, reason}. levels: log levels that were raised from this
    node and not restored: {run_id, entry, path, real, level, former, at, until, overdue, restart,
    by_hand}; until: when a service of kubemend restores it, if any remains; by_hand: what the
    operator has to do where the file was edited meanwhile, else None. busy: a run changes this
    node at this moment, so that what is pending may be under way.
    """
    if not os.path.isdir(ROOT):
        raise base.Absent(f"{ROOT} does not exist: no run has changed this node")
    # what these import costs more than all of the above, and most nodes were never changed
    from ...state import journal, step_record, storage
    from ...state.pending_changes import pending as pending_changes

    busy = storage.busy(ROOT)
    pending = [_pending(item) for item in pending_changes(ROOT)]
    runs = journal.list_runs(ROOT, MAX_RUNS + 1)
    context.source = ROOT
    context.truncated = len(runs) > MAX_RUNS
    down = _down(step_record.failures(ROOT), context.processes)
    return dict(
        at_work(),
        pending=pending,
        down=down,
        runs=runs[-MAX_RUNS:],
        busy=busy or storage.busy(ROOT),
        levels=(_levels(storage.clock()) if _ever_raised(runs) else []) + _by_restart(),
        temp_files=_temp_files(_folders(runs, pending)),
    )


def _down(failures, processes):
    """Return the steps that failed and whose component does not run."""
    names = ("run_id", "step", "component", "path", "reason")
    return [
        {name: failure.get(name) for name in names}
        for component, failure in sorted(failures.items())
        if not procfs.any_of((component,), processes)
    ]


def _folders(runs, pending):
    """Return the folders in which runs changed files, or left a change unfinished."""
    paths = [path for run in runs for path in run["paths"]]
    paths += [item["real"] for item in pending if item["real"]]
    # others are texts of the API
    return {os.path.dirname(path) for path in paths if path.startswith("/")}


def at_work():
    """Return {lock, unproven} of collect: which runs may be at work on this node."""
    from ...state import step_record, storage

    names = ("run_id", "step", "component", "remedy", "path", "running")
    return {
        "lock": _lock(storage.ChangeError),
        "unproven": [
            {name: record.get(name) for name in names} for record in step_record.unproven(ROOT)
        ],
    }


def _pending(item):
    intent = item.pop("intent") or {}
    return dict(item, **{key: intent.get(key) for key in OF_INTENT})


def _ever_raised(runs):
    return any(path.startswith("log level of ") for run in runs for path in run["paths"])


def _levels(clock):
    """Return the raised levels that a running process gets back.

    overdue: its time was over a minute ago, or the node was rebooted since.
    """
    from ...state import level_target, verbosity_expiry

    levels = []
    for item in level_target.raised(ROOT):
        intent = item["intent"]
        boot_id, uptime = intent["clock"]
        if boot_id == clock[0]:
            remaining = uptime + intent["seconds"] - clock[1]
        else:
            remaining = PATIENCE - clock[1]
        levels.append(
            dict(
                [(name, intent[name]) for name in ("path", "real", "level", "former", "at")],
                run_id=item["run_id"],
                entry=item["entry"],
                until=verbosity_expiry.until(item["run_id"], ROOT),
                overdue=remaining < -PATIENCE,
                restart=False,
                by_hand=None,
            )
        )
    return levels


def _by_restart():
    """Return the raised levels that only another restart restores."""
    import glob

    run_ids = sorted(
        {
            os.path.basename(os.path.dirname(path))
            for path in glob.glob(ROOT + "/journal/*/proof-raise-*")
        }
    )
    if not run_ids:
        return []
    from ...shared.klog_verbosity import of_argv
    from ...state import raised_levels, verbosity_expiry

    levels = []
    for run_id in run_ids:
        raised = [(record, None) for record in raised_levels.restorable_records(run_id, ROOT)]
        raised += [
            (record, reason) for record, (up, reason) in raised_levels.edited(run_id, ROOT) if up
        ]
        for record, by_hand in raised:
            former = (record.get("former") or {}).get("argv") or []
            levels.append(
                {
                    "path": "log level of {}".format(record.get("component")),
                    "real": "level:{}".format(record.get("component")),
                    "run_id": run_id,
                    "level": raised_levels.raised_to(record),
                    "former": str(of_argv(former)),
                    "at": record.get("at"),
                    "entry": "proof-{}".format(record.get("step")),
                    "restart": True,
                    "until": verbosity_expiry.until(run_id, ROOT),
                    "overdue": verbosity_expiry.overdue(run_id, ROOT, PATIENCE),
                    "by_hand": by_hand,
                }
            )
    return levels


def _lock(unreadable):
    from ...state import lock

    try:
        return lock.read(ROOT)
    except unreadable as error:
        return {"error": str(error)}


def _temp_files(folders):
    return sorted(path for folder in folders for path in _temp_files_in(folder))


def _temp_files_in(folder):
    try:
        return [
            os.path.join(folder, name)
            for name in os.listdir(folder)
            if name.startswith(".kubemend-")
        ]
    except OSError:
        return []
