# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs left on this node that can be taken back, and what would become of each file."""

from ...state import journal, revert_plan
from ...state import step_record as proof
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
    """Every run of this node's journal, the newest first.

    {run_id, first, last, reverts, paths, error}. Makes nothing.

    empty: runs that changed no file, such as a restart. paths: what a revert would do now: {path,
    state, reason, sha256_left, sha256_former, sha256_present, component, steps}.
    """
    try:
        run_ids = journal.run_ids(root)
        busy = any(record["running"] for record in proof.unproven(root))
    except (OSError, ChangeError) as error:
        return {"runs": [], "truncated": False, "busy": False, "error": files.one_line(error)}
    runs, empty = [], []
    for run_id in reversed(run_ids):
        if len(runs) >= MAX_RUNS:
            return {
                "runs": runs,
                "truncated": True,
                "busy": busy,
                "error": None,
                "empty": empty[:MAX_RUNS],
            }
        try:
            one = _one(run_id, root)
        except (OSError, ChangeError) as error:
            one = {
                "run_id": run_id,
                "first": None,
                "last": None,
                "reverts": [],
                "paths": [],
                "error": files.one_line(error),
            }
        if one["paths"] or one["error"]:
            runs.append(one)
        else:
            empty.append(run_id)
    return {
        "runs": runs,
        "truncated": False,
        "busy": busy,
        "error": None,
        "empty": empty[:MAX_RUNS],
    }


def _one(run_id, root):
    planned = revert_plan.plan_revert(run_id, root)
    items = {item["entry"]: item for item in revert_plan.intact(run_id, root)}
    intents = [items[entry]["intent"] for one in planned for entry in one["entries"]]
    undone = [intent["reverts"].partition("/")[0] for intent in intents if intent["reverts"]]
    return {
        "run_id": run_id,
        "first": min([intent["at"] for intent in intents] or [None]),
        "last": max([intent["at"] for intent in intents] or [None]),
        # only a run that does nothing else is a revert: a step that was rolled back undoes its
        # own run
        "reverts": (
            sorted(set(undone)) if len(undone) == len(intents) and run_id not in undone else []
        ),
        "paths": [shown(Stretch(one, items, run_id, root)) for one in planned],
        "error": None,
    }


def shown(stretch):
    """What a list shows of it."""
    return {name: stretch.told[name] for name in SHOWN}


class Stretch:
    """One file's changes by the run, and what their steps' records say of the component that it
    belongs to.
    """

    def __init__(self, one, items, run_id, root):
        self.path = one["path"]
        unit = one["real"].startswith(journal.UNIT)
        # no component has to start again for it
        self.alone = unit or one["real"].startswith(journal.LEVEL)
        self.state = one["state"]
        steps = []
        for entry in one["entries"]:
            step = items[entry]["intent"]["step"]
            if step not in steps:
                steps.append(step)
        records = [
            record for record in (proof.read(run_id, step, root) for step in steps) if record
        ]
        self.record = (
            records[0] if records and not any(record.get("error") for record in records) else None
        )
        self.component = self.record.get("component") if self.record and not unit else None
        self.former = (self.record.get("former") or {}).get("argv") if self.record else None
        expect = (self.record.get("expect") or {}) if self.record else {}
        self.restart = expect.get("restart")
        self.image = expect.get("image")
        self.guard = (self.record.get("guard") or {}) if self.record else {}
        self.told = dict(one, component=self.component, steps=steps)
