# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macro of the control plane's components that are units of systemd."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    component_units,
    kubelet_end,
)

from . import clock
from .cluster import Evidence

SUB_STATES = {
    "active": "running",
    "activating": "auto-restart",
    "failed": "failed",
    "inactive": "dead",
}


def component_unit(
    evidence: Evidence,
    hosts: Iterable[str],
    component: str,
    name: str | None = None,
    state: str = "activating",
    sub: str | None = None,
    result: str = "exit-code",
    status: int = 1,
    restarts: int = 0,
    argv: Iterable[str] = (),
    files: Iterable[str] = (),
    lines: Iterable[str] = (),
    last: int = 30,
    again: Iterable[int] = (),
) -> None:
    """Let a component be a unit of systemd on hosts, with the end of its journal.

    lines: "program[pid]: text", oldest first; last: the age of the last one. again: the ages of
    restarts by systemd before them.
    """
    unit = name or f"{component}.service"
    for host in hosts:
        dated = _journal(evidence, host, unit, lines, last, again)
        row: dict[str, Any] = {
            "name": unit,
            "load_state": "loaded",
            "active_state": state,
            "sub_state": sub or SUB_STATES[state],
            "unit_file_state": "enabled",
            "result": result,
            "main_pid": 0,
            "need_daemon_reload": False,
            "n_restarts": restarts,
            "exec_main_status": status,
            "fragment_path": f"/etc/systemd/system/{unit}",
            "drop_in_paths": [],
            "component": component,
            "argv": list(argv) or [f"/usr/local/bin/{component}"],
            "environment_files": list(files),
            "wanted_by": ["multi-user.target"],
            "started_at": evidence.now - last,
            "ended_at": None,
            "begun_at": evidence.now - last,
            "said": [line for line in dated if " systemd[1]: " in line][-component_units.SAID :],
            "lines": kubelet_end.last(dated)[-component_units.KEPT :],
            "journal_error": None,
        }
        evidence.data(host, "component_units").setdefault("units", []).append(row)


def _journal(
    evidence: Evidence, host: str, unit: str, lines: Iterable[str], last: int, again: Iterable[int]
) -> list[str]:
    """Return the lines of a unit's journal with their time and host."""
    text = f"systemd[1]: {unit}: Scheduled restart job, restart counter is at "
    aged = [(age, text + f"{number}.") for number, age in enumerate(again, 1)]
    lines = list(lines)
    aged += [(last + (len(lines) - 1 - index) * 0.2, line) for index, line in enumerate(lines)]
    return [f"{clock.journal(evidence.now - age)} {host} {line}" for age, line in aged]
