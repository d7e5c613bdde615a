# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector failed_units: units of systemd that failed, of those that pods and their nodes need.

The kubelet, its runtime and the control plane have collectors of their own. Where nothing failed,
it costs one systemctl.
"""

from ...shared import failed_units
from ...system import command, systemd
from ..base import Absent, Failed
from . import kubelet_end, unit_start

STATES = ("failed", "auto-restart", "inactive")
LIST = ["systemctl", "list-units", "--all", "--plain", "--no-legend", "--no-pager"]
# A unit that is bound to another one is stopped with it, and starts no more by itself.
STOPPED = "device-plugin"
BINDINGS = ("BindsTo", "PartOf", "Requires")
PROPERTIES = (*systemd.PROPERTIES, *BINDINGS, "Type", "InactiveEnterTimestampMonotonic")
MAX_BYTES, MAX_LISTED, MAX_UNITS, LINES, KEPT = 1048576, 200, 8, 60, 20


def collect(context):
    """Return {failed, units}: how many units failed in all, and what those say that are needed.

    Units of device plugins are there too that ran and were stopped although they are enabled.
    A row is that of systemd.unit with {type, ended_at, bound_to, lines, error}; lines: the last
    ones of its journal, oldest first; ended_at: in seconds since the epoch; bound_to: the services
    with which it is stopped.
    """
    context.source = "systemctl list-units --state=failed, journalctl"
    failed, stopped = units(_list(context))
    named = [name for name in failed if failed_units.group(name)] + stopped
    return {"failed": len(failed), "units": _rows(named[:MAX_UNITS], context)}


def _list(context):
    """Return what systemctl lists of the units that failed, and of those that do not run."""
    try:
        return command.run([*LIST, "--state=" + ",".join(STATES)], context.seconds(3), MAX_BYTES)
    except command.Silent as error:
        if error.complaint:
            raise Absent(error.complaint) from error
        return ""
    except OSError as error:
        raise Absent(str(error)) from error
    except command.CommandError as error:
        raise Failed(str(error)) from error


def units(text):
    """Return (names of the units that failed, names of the device plugins that do not run).

    A row is the unit's name, three states and a text; some releases put a mark before each.
    """
    failed, stopped = [], []
    for name, states in filter(None, map(_listed, text.split("\n"))):
        if STATES[0] in states or STATES[1] in states:
            failed.append(name)
        if STATES[2] in states and STOPPED in name and name.endswith(".service"):
            stopped.append(name)
    return failed[:MAX_LISTED], stopped[:MAX_LISTED]


def _listed(line):
    """Return (the name of a unit, its three states) of a row, None for another line."""
    words = line.split()
    while words and not words[0].rpartition(".")[0]:
        del words[0]
    if not words or not words[0].isprintable():
        return None
    return words[0][:255], words[1:4]


def _rows(named, context):
    if not named:
        return []
    try:
        blocks = systemd.show(named, PROPERTIES, context.seconds(4))
    except command.CommandError as error:
        raise Failed(str(error)) from error
    rows = (_row(blocks.get(name) or {}, context) for name in named)
    return [row for row in rows if row is not None]


def _row(block, context):
    unit = systemd.unit(block)
    if unit is None:
        return None
    moment = block.get("InactiveEnterTimestampMonotonic", [""])[0]
    unit.update(type=block.get("Type", [""])[0][:20], ended_at=None, lines=[], error=None)
    if moment.isdigit() and int(moment):
        unit["ended_at"] = unit_start.moment(int(moment))
    if unit["active_state"] == "inactive" and not _was_stopped(unit):
        return None
    unit["bound_to"] = _bindings(block)
    try:
        text = kubelet_end.read(unit["name"], context.seconds(2), LINES)
        unit["lines"] = kubelet_end.last(text.split("\n")[::-1])[-KEPT:]
    except command.CommandError as error:
        unit["error"] = str(error)[:200]
    return unit


def _was_stopped(unit):
    """Return whether a unit that is enabled ran since the boot, and does not run now."""
    is_enabled = unit["unit_file_state"] in ("enabled", "static")
    return is_enabled and unit["type"] != "oneshot" and unit["ended_at"] is not None


def _bindings(block):
    """Return the services with which a unit is stopped."""
    services = " ".join(value for key in BINDINGS for value in block.get(key, [])).split()
    return sorted({name[:120] for name in services if name.endswith(".service")})[:8]
