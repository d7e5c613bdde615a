# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that a run raised in the running kernel and in processes: listed, and lowered if allowed.

No file holds these values. Programs may have begun to use the higher limits, so that lowering needs
a consent of its own. Raising a value that the run lowered takes nothing from a program, and needs
no consent. A value that is not the one that the run left is a foreign change.
"""

from ...collectors.node import boot
from ...shared import step_kinds
from ...state import step_record
from ...system import files, procfs
from .. import preconditions
from ..handlers import kernel_setting, service_limit

ALLOW = "revert_runtime"
RESTORE, RESTORED, REFUSED, KEPT, CONFLICT = "restore", "restored", "refused", "kept", "conflict"


class Value:
    """One running value: its number before the run, and the number that the run left.

    read: a function that returns the present number, None where the value no longer exists.
    switch: the value is no limit, and is never lowered.
    up: the run lowered the value.
    unit: the unit whose process got the value by a restart, so that only another restart removes
        it.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the fields of a value
        self, name, path, former, setting, read, write, switch=False, up=False, unit=None
    ):
        self.name = name
        self.path = path
        self.former = former
        self.left = setting
        self.read = read
        self.write = write
        self.switch = switch
        self.up = up
        self.unit = unit


def rows(run_id, root, allow, refused=(), act=False, kernel=kernel_setting.KERNEL):
    """Return a row, like that of a file, for each value that is not yet its former number.

    refused: files that keep what the run left.
    act: lower the values that may be lowered.
    """
    results = []
    for value in values(run_id, root, kernel):
        now = value.read()
        if now is None or now == value.former:
            continue
        row = {
            "path": value.name,
            "state": KEPT,
            "result": KEPT,
            "changed": False,
            "component": None,
            "steps": [],
            "reason": None,
        }
        is_allowed = ALLOW in allow or value.up
        fixed = _fixed(value, now)
        if fixed:
            row["reason"] = fixed
        elif now != value.left:
            row["reason"] = (
                f"it is {now}, neither what the run left ({value.left}) nor what was before"
                f" ({value.former}): it was changed since"
            )
            if is_allowed:
                row.update(state=CONFLICT, result=REFUSED)
        elif value.path in refused:
            row["reason"] = f"it stays {now}, because {value.path} stays"
        elif not is_allowed:
            row["reason"] = (
                f"it stays {now}; it goes back to {value.former} with -e kubemend_run_id={run_id}"
                f" -e kubemend_allow={ALLOW}"
            )
        else:
            row.update(_put_back(value, act))
        results.append(row)
    return results


def _fixed(value, now):
    """Return why no revert ever changes a value, or None."""
    if value.switch:
        return f"it stays {now}: it is a switch that pods need, and no limit"
    if value.unit:
        return (
            f"it stays {now} until systemctl daemon-reload and systemctl restart {value.unit}: a"
            " revert restarts no service"
        )
    return None


def _put_back(value, act):
    """Restore a value that may be restored if `act` says so; return the result."""
    if not act:
        return {"state": RESTORE}
    try:
        problem = value.write()
    except (OSError, preconditions.PreconditionFailed) as error:
        problem = files.one_line(error)
    now = value.read()
    if now is None or now == value.former:
        return {"state": RESTORE, "result": RESTORED, "changed": True}
    return {
        "state": RESTORE,
        "result": REFUSED,
        "reason": (
            f"it is {now} and was not put back to {value.former} ({problem or 'no reason given'})"
        ),
    }


def values(run_id, root, kernel=kernel_setting.KERNEL):
    """Return what the verified steps of a run raised, each value once."""
    by_name = {}
    for record in step_record.of_run(run_id, root):
        for value in _values_of(record, kernel):
            by_name.setdefault(value.name, value)
    return list(by_name.values())


def _values_of(record, kernel):
    if record.get("state") != step_record.PROVEN:
        return []
    if record.get("remedy") == step_kinds.KERNEL_SETTING:
        return _of_kernel(record, kernel)
    if record.get("remedy") == step_kinds.UNIT_LIMIT:
        return _of_processes(record)
    return []


def _of_kernel(record, kernel):
    def reader(key):
        def read():
            try:
                return kernel_setting.read(key, kernel, record.get("host"))
            except preconditions.PreconditionFailed:
                return None

        return read

    def writer(key, number):
        def write():
            with open(kernel_setting.place(key, kernel), "wb", buffering=0) as file:
                file.write(b"%d\n" % number)

        return write

    former = record.get("former_settings") or {}
    return [
        Value(
            f"{key} of the running kernel",
            record.get("path"),
            former[key],
            setting,
            reader(key),
            writer(key, former[key]),
            key in boot.RUNNING,
            former[key] > setting,
        )
        for key, setting in sorted((record.get("settings") or {}).items())
        if key in former
    ]


def _of_processes(record):
    def reader(process):
        def read():
            if procfs.ticks(process["pid"]) != process["ticks"]:
                return None
            return service_limit.nofile(process["pid"])

        return read

    def writer(process):
        return lambda: service_limit.set_nofile(process["pid"], process["former"])

    fresh = record.get("seen") or {}
    if record.get("restart") and fresh.get("pid") and fresh.get("ticks") is not None:
        return [
            Value(
                _name(fresh, record),
                record.get("path"),
                record["processes"][0].get("former"),
                None,
                reader(fresh),
                None,
                unit=record.get("unit"),
            )
        ]
    # of the claim, not of the end: a step that was interrupted has no more
    processes = [
        process
        for process in record.get("processes") or ()
        if process.get("former") and process.get("soft") is not None
    ]
    return [
        Value(
            _name(process, record),
            record.get("path"),
            process["former"],
            service_limit.aim(process["former"], process),
            reader(process),
            writer(process),
        )
        for process in processes
    ]


def _name(process, record):
    return f"open files of process {process['pid']:d} ({record.get('unit')})"
