# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists what runs left on this node and a revert can restore, file by file."""

from ...state import journal, revert_plan, step_record
from ...state.storage import ROOT, ChangeError
from ...system import files

MAX_RUNS = 50  # the newest that a node lists
SHOWN = (
    "path",
    "state",
    "reason",
    "sha256_left",
    "sha256_former",
    "sha256_present",
    "component",
    "steps",
)


def listed(root=ROOT):
    """Return {runs, truncated, busy, error, empty} of this node's journal, the newest run first.

    runs: [{run_id, first, last, reverts, paths, error}].
    paths: what a revert would do now: {path, state, reason, sha256_left, sha256_former,
        sha256_present, component, steps}.
    empty: runs that changed no file, such as a restart.

    The function creates nothing.
    """
    try:
        run_ids = journal.run_ids(root)
        busy = any(record["running"] for record in step_record.unproven(root))
    except (OSError, ChangeError) as error:
        return {"runs": [], "truncated": False, "busy": False, "error": files.one_line(error)}
    runs, empty, truncated = [], [], False
    for run_id in reversed(run_ids):
        if len(runs) >= MAX_RUNS:
            truncated = True
            break
        run = _readable(run_id, root)
        if run["paths"] or run["error"]:
            runs.append(run)
        else:
            empty.append(run_id)
    return {
        "runs": runs,
        "truncated": truncated,
        "busy": busy,
        "error": None,
        "empty": empty[:MAX_RUNS],
    }


def _readable(run_id, root):
    """Return what the list has of a run, with `error` where its journal cannot be read."""
    try:
        return _run(run_id, root)
    except (OSError, ChangeError) as error:
        return {
            "run_id": run_id,
            "first": None,
            "last": None,
            "reverts": [],
            "paths": [],
            "error": files.one_line(error),
        }


def _run(run_id, root):
    planned = revert_plan.plan_revert(run_id, root)
    items = {item["entry"]: item for item in revert_plan.intact(run_id, root)}
    intents = [items[entry]["intent"] for change in planned for entry in change["entries"]]
    times = sorted(intent["at"] for intent in intents) or [None]
    return {
        "run_id": run_id,
        "first": times[0],
        "last": times[-1],
        "reverts": _reverted_runs(run_id, intents),
        "paths": [shown(FileHistory(change, items, run_id, root)) for change in planned],
        "error": None,
    }


def _reverted_runs(run_id, intents):
    """Return the runs that this run reverted, where it did nothing else.

    A step that was rolled back undid a change of its own run, and is no revert.
    """
    reverted = [intent["reverts"].partition("/")[0] for intent in intents if intent["reverts"]]
    if len(reverted) < len(intents) or run_id in reverted:
        return []
    return sorted(set(reverted))


def shown(history):
    """Return what a list shows of a file's history."""
    return {name: history.row[name] for name in SHOWN}


class FileHistory:
    """One file's changes by the run, with what its steps' records say of the component."""

    def __init__(self, change, items, run_id, root):
        real = change["real"]
        is_unit = real.startswith(journal.UNIT)
        # no component has to start again for it
        self.alone = real.startswith((journal.UNIT, journal.PACKAGES, journal.LEVEL))
        self.path = change["path"]
        self.state = change["state"]
        steps = _steps(change, items)
        self.record = _record(steps, run_id, root)
        record = self.record or {}
        self.component = None if is_unit else record.get("component")
        self.former = (record.get("former") or {}).get("argv")
        self.restart = (record.get("expect") or {}).get("restart")
        self.image = (record.get("expect") or {}).get("image")
        self.guard = record.get("guard") or {}
        self.row = dict(change, component=self.component, steps=steps)


def _steps(change, items):
    """Return the steps of a file's entries, each once, in their order."""
    return list(dict.fromkeys(items[entry]["intent"]["step"] for entry in change["entries"]))


def _record(steps, run_id, root):
    """Return the first record of these steps, or None where any of them cannot be read."""
    records = [
        record for record in (step_record.read(run_id, step, root) for step in steps) if record
    ]
    if not records or any(record.get("error") for record in records):
        return None
    return records[0]
