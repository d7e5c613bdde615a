# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run raised in the running kernel and in running processes, told by a revert, and lowered
where that is allowed.

Nothing of it is a file. Lowering takes from programs what they may have begun to use, so that it
needs a word of its own; to raise again what the run lowered takes nothing from anybody, and needs
none. A value that is not what the run left is somebody else's.
"""

from ...collectors.node import boot
from ...shared import step_kinds
from ...state import step_record as proof
from ...system import files, procfs
from .. import preconditions as guard
from ..handlers import kernel_setting
from ..handlers import service_limit as unit_limit

ALLOW = "revert_runtime"
RESTORE, RESTORED, REFUSED, KEPT, CONFLICT = "restore", "restored", "refused", "kept", "conflict"


class Value:
    """One running value: what it was before the run, and what the run left. read.

    Its value now, None where there is none any more.

    switch: it is no limit, and is never lowered. up: the run lowered it. unit: whose process has it
    by a restart, so that only another one takes it.
    """

    def __init__(self, name, path, former, left, read, write, switch=False, up=False, unit=None):
        self.up, self.unit = up, unit
        self.name, self.path, self.former, self.left, self.read, self.write, self.switch = (
            name,
            path,
            former,
            left,
            read,
            write,
            switch,
        )


def rows(run_id, root, allow, refused=(), act=False, kernel=kernel_setting.KERNEL):
    """A row, as of a file, for each value that is not yet what it was. refused.

    Files that keep what the run left. act: lower what may be.
    """
    found = []
    for value in values(run_id, root, kernel):
        now = value.read()
        if now is None or now == value.former:
            continue
        one = {
            "path": value.name,
            "state": KEPT,
            "result": KEPT,
            "changed": False,
            "component": None,
            "steps": [],
            "reason": None,
        }
        if value.switch:
            one["reason"] = f"it stays {now}: it is a switch that pods need, and no limit"
        elif value.unit:
            one["reason"] = (
                f"it stays {now} until systemctl daemon-reload and systemctl restart {value.unit}:"
                " a revert restarts no service"
            )
        elif now != value.left:
            one["reason"] = (
                f"it is {now}, neither what the run left ({value.left}) nor what was before"
                f" ({value.former}): somebody changed it since"
            )
            if ALLOW in allow or value.up:
                one.update(state=CONFLICT, result=REFUSED)
        elif value.path in refused:
            one["reason"] = f"it stays {now}, because {value.path} stays"
        elif ALLOW not in allow and not value.up:
            one["reason"] = (
                f"it stays {now}; it goes back to {value.former} with -e kubemend_run_id={run_id}"
                f" -e kubemend_allow={ALLOW}"
            )
        else:
            one.update(_put_back(value) if act else {"state": RESTORE})
        found.append(one)
    return found


def _put_back(value):
    """What became of one that may be brought back."""
    try:
        why = value.write()
    except (OSError, guard.Refused) as error:
        why = files.one_line(error)
    now = value.read()
    if now is not None and now != value.former:
        return {
            "state": RESTORE,
            "result": REFUSED,
            "reason": "it is {} and was not brought back to {} ({})".format(
                now, value.former, why or "nobody says why"
            ),
        }
    return {"state": RESTORE, "result": RESTORED, "changed": True}


def values(run_id, root, kernel=kernel_setting.KERNEL):
    """What the proven steps of a run raised; each once, from its first value to its last."""
    found = {}
    for record in proof.of_run(run_id, root):
        if (
            record.get("state") == proof.PROVEN
            and record.get("remedy") == step_kinds.KERNEL_SETTING
        ):
            fresh = _of_kernel(record, kernel)
        elif record.get("state") == proof.PROVEN and record.get("remedy") == step_kinds.UNIT_LIMIT:
            fresh = _of_processes(record)
        else:
            continue
        for one in fresh:
            found.setdefault(one.name, one)
    return list(found.values())


def _of_kernel(record, kernel):
    def reader(key):
        def read():
            try:
                return kernel_setting.read(key, kernel, record.get("host"))
            except guard.Refused:
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
            left,
            reader(key),
            writer(key, former[key]),
            key in boot.RUNNING,
            former[key] > left,
        )
        for key, left in sorted((record.get("settings") or {}).items())
        if key in former
    ]


def _of_processes(record):
    def reader(one):
        return lambda: (
            unit_limit.nofile(one["pid"]) if procfs.ticks(one["pid"]) == one["ticks"] else None
        )

    def writer(one):
        return lambda: unit_limit.told(one["pid"], one["former"])

    fresh = record.get("seen") or {}
    if record.get("restart") and fresh.get("pid") and fresh.get("ticks") is not None:
        return [
            Value(
                "open files of process %d (%s)" % (fresh["pid"], record.get("unit")),
                record.get("path"),
                record["processes"][0].get("former"),
                None,
                reader(fresh),
                None,
                unit=record.get("unit"),
            )
        ]
    # of the claim, not of the end: a step that was interrupted has no more
    those = [
        one
        for one in record.get("processes") or ()
        if one.get("former") and one.get("soft") is not None
    ]
    return [
        Value(
            "open files of process %d (%s)" % (one["pid"], record.get("unit")),
            record.get("path"),
            one["former"],
            unit_limit.aim(one["former"], one),
            reader(one),
            writer(one),
        )
        for one in those
    ]
