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

LIST = ("systemctl", "list-units", "--all", "--plain", "--no-legend", "--no-pager")
FAILED = (*LIST, "--state=failed,auto-restart")
# A unit that is bound to another one is stopped with it, and starts no more by itself.
STOPPED = (*LIST, "--state=inactive", "*device-plugin*.service")
BINDINGS = ("BindsTo", "PartOf", "Requires")
PROPERTIES = (*systemd.PROPERTIES, *BINDINGS, "Type", "InactiveEnterTimestampMonotonic")
MAX_BYTES, MAX_LISTED, MAX_UNITS, LINES, KEPT = 65536, 200, 8, 60, 20


def collect(context):
    """Return {failed, units}: how many units failed in all, and what those say that are needed.

    Units of device plugins are there too that ran and were stopped although they are enabled.
    A row is that of systemd.unit with {type, ended_at, bound_to, lines, error}; lines: the last
    ones of its journal, oldest first; ended_at: in seconds since the epoch; bound_to: the services
    with which it is stopped.
    """
    context.source = "systemctl list-units --state=failed, journalctl"
    lists = command.run_together([list(FAILED), list(STOPPED)], context.seconds(3), MAX_BYTES)
    listed, stopped = [_listed(*answer) for answer in lists]
    named = [name for name in listed if failed_units.group(name)] + stopped
    return {"failed": len(listed), "units": _rows(named[:MAX_UNITS], context)}


def _listed(text, error):
    """Return the names of the units that systemctl lists, by what it printed or why it did not."""
    if isinstance(error, command.Silent) and not error.complaint:
        return []
    if isinstance(error, command.Silent):
        raise Absent(error.complaint) from error
    if isinstance(error, OSError):
        raise Absent(str(error)) from error
    if error is not None:
        raise Failed(str(error)) from error
    return names(text)


def names(text):
    """Return the names of the units that systemctl lists; some releases put a mark before each."""
    units = []
    for line in text.split("\n")[:MAX_LISTED]:
        words = [word for word in line.split() if word.rpartition(".")[0]]
        if words and words[0].isprintable():
            units.append(words[0][:255])
    return units


def _rows(units, context):
    if not units:
        return []
    try:
        blocks = systemd.show(units, PROPERTIES, context.seconds(4))
    except command.CommandError as error:
        raise Failed(str(error)) from error
    rows = (_row(blocks.get(name) or {}, context) for name in units)
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
