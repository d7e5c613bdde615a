# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector component_units: units of systemd that run the control plane, or should.

A cluster whose components are static pods has none. It costs there the names of unit files alone.
"""

import os
import time

from ...shared import units
from ...system import command, files, procfs, systemd
from ..base import Absent, Failed
from . import instances, kubelet_end, unit_start

PROPERTIES = (
    *systemd.PROPERTIES,
    "Type",
    "ExecMainStartTimestampMonotonic",
    "InactiveEnterTimestampMonotonic",
    "InactiveExitTimestampMonotonic",
    "WantedBy",
    "RequiredBy",
)
UNITS = 12
RECENT = 3600  # seconds: whether one that was started within these is restarted again and again
# Of a program that starts its components itself, and logs for them, systemd sees no end of theirs.
SUPERVISOR = "k0s"
LINES, KEPT, SAID = 2000, 250, 60  # of the journal: read, kept; and kept of systemd's own


def collect(context):
    """Return {units: rows}: how each unit is, and its journal where it does not run well."""
    names = candidates((context.data.get("instances") or {}).get("processes") or ())
    rows = _rows(names, context)
    if not rows:
        raise Absent("no unit of a control plane component")
    context.source = "systemctl show, journalctl"
    for row in rows:
        if is_relevant(row, time.time()):
            row.update(_journal(row["name"], context))
    return {"units": rows}


def _rows(names, context):
    """Return the facts of those of these units that run a component."""
    if not names:
        return []
    try:
        blocks = systemd.show(names, PROPERTIES, context.seconds(4))
    except command.CommandError as error:
        raise Failed(str(error)) from error
    return [row for row in (_row(blocks.get(name) or {}) for name in names) if row]


def candidates(processes, folders=unit_start.DROPINS):
    """Return the names of units that may run a component: by unit files, then by processes."""
    names = set()
    for folder in folders:
        names.update(name for name in files.names(folder) if _is_named(name))
    running = {
        process["unit"]
        for process in processes
        if process.get("unit") and not process.get("pod_uid") and not process.get("container_id")
    }
    return (sorted(names) + sorted(running - names))[:UNITS]


def _is_named(name):
    if not name.endswith(".service") or "@" in name:
        return False
    return name in units.CONTROL_PLANE or any(part in name for part in instances.COMPONENTS)


def _row(block):
    """Return the facts of a unit; None for one that is not there or runs no component."""
    unit = systemd.unit(block)
    if unit is None or block.get("Type", [""])[0] == "oneshot":
        return None
    argv = systemd.command_line(block)
    component = component_of(unit["name"], argv)
    if component is None:
        return None
    unit.update(
        component=component,
        unit_file_state=_enabled(unit),
        argv=files.masked_argv(argv),
        environment_files=systemd.environment_paths(block)[:8],
        wanted_by=" ".join(block.get("WantedBy", []) + block.get("RequiredBy", [])).split()[:8],
        said=[],
        lines=[],
        journal_error=None,
    )
    for key, name in (
        ("started_at", "ExecMainStartTimestampMonotonic"),
        ("ended_at", "InactiveEnterTimestampMonotonic"),
        ("begun_at", "InactiveExitTimestampMonotonic"),
    ):
        unit[key] = unit_start.moment(procfs.number(block.get(name, [""])[0]))
    return unit


def component_of(name, argv):
    """Return what a unit runs: by its program, else by its own name; None for anything else."""
    program = os.path.basename((argv or [""])[0])
    if program == "hyperkube":
        return procfs.component("hyperkube", argv)
    if program in instances.COMPONENTS:
        return program
    return units.CONTROL_PLANE.get(name)


def _enabled(unit):
    try:
        return systemd.enabled(unit["name"])
    except command.CommandError:
        return unit["unit_file_state"]


def is_relevant(row, now):
    """Return whether the journal of a unit matters.

    It does where the unit does not run, was restarted of late, or starts components itself.
    """
    if row["active_state"] not in unit_start.RUNS:
        # One that was not started since the boot has said nothing.
        return row["active_state"] != "inactive" or row["begun_at"] is not None
    if row.get("component") == SUPERVISOR:
        return True
    if row["n_restarts"] == 0 or row["started_at"] is None:
        return False
    return now - row["started_at"] < RECENT


def _journal(name, context):
    """Return {said, lines, journal_error}: systemd's own lines of a unit, and those of all."""
    own_lines = unit_start.systemd_lines(name, context.seconds(2), SAID, ("_PID=1",))
    try:
        text = kubelet_end.read(name, context.seconds(3), LINES)
    except command.CommandError as error:
        return {"said": own_lines, "journal_error": str(error)}
    lines = kubelet_end.last(text.split("\n")[::-1])[-KEPT:]
    reason = None
    if os.geteuid() != 0 and not any("]: " in line for line in lines):
        reason = "denied"
    return {"said": own_lines, "lines": lines, "journal_error": reason}
