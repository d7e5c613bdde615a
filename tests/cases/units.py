# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macros of units: a kubelet that does not run, journals as the collectors choose from them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    failed_units,
    kubelet_end,
    kubelet_log,
    runtime,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    failed_units as names,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import cri

from . import clock
from .cluster import Evidence

PID = re.compile(r"^[\w.-]+\[(\d+)\]: ")
SUB_STATES = {"activating": "auto-restart", "failed": "failed", "inactive": "dead"}


def kubelet_down(
    evidence: Evidence,
    host: str,
    state: str = "activating",
    result: str = "exit-code",
    status: int = 1,
    restarts: int = 0,
) -> None:
    """Let the kubelet's unit not run: activating, failed or inactive."""
    kubelet = evidence.data(host, "kubelet")
    kubelet.update(process=None, argv_source="unit")
    kubelet["healthz"].update(status=None, body=None, error="Connection refused")
    changed = {"active_state": state, "sub_state": SUB_STATES[state], "result": result}
    changed["exec_main_status"] = status
    kubelet["unit"].update(changed, n_restarts=restarts, main_pid=0)
    limits = evidence.data(host, "limits")
    limits["processes"] = [row for row in limits["processes"] if row["role"] != "kubelet"]
    next(row for row in limits["units"] if row["name"] == kubelet["unit"]["name"]).update(changed)
    devices = evidence.data(host, "devices")
    if devices.get("kubelet_socket"):
        devices["kubelet_socket"]["answers"] = False
    evidence.data(host, "unit_start")["units"] = [as_started(kubelet["unit"], evidence.now)]


def journal(
    evidence: Evidence,
    host: str,
    lines: Iterable[str],
    unit: str | None = None,
    last: int = 30,
    every: float = 0.2,
    lives: int = 1,
) -> None:
    """Let a unit's journal end with these lines, each "program[pid]: text".

    The collectors of today choose from them. unit: the kubelet's where none is named. last: the age
    of the last line, in seconds. lives: how often the program ended with the same lines.
    """
    lines = [line for life in range(lives)[::-1] for line in _of_life(list(lines), 40 * life)]
    first = evidence.now - last - every * (len(lines) - 1)
    dated = [
        f"{clock.journal(first + every * number)} {host} {line}"
        for number, line in enumerate(lines)
    ]
    log = evidence.data(host, "kubelet_log")
    log["lines"] = log["lines"] + kubelet_log.chosen("\n".join(dated))
    own = evidence.data(host, "kubelet")["unit"]["name"]
    if (unit or own) == own:
        _at_start(evidence, host, dated)
    _of_start(evidence, host, unit or own, dated)
    if (unit or own) == own:
        _of_kubelet(evidence, host, own, dated)
    else:
        _of_runtime(evidence, host, unit or own, dated)
        _of_failed(evidence, host, unit or own, dated)


def kubelet_started(evidence: Evidence, host: str, ago: int, restarts: int = 0) -> None:
    """Let the kubelet run for so many seconds."""
    kubelet = evidence.data(host, "kubelet")
    kubelet["process"]["started_at"] = evidence.now - ago
    kubelet["unit"]["n_restarts"] = restarts
    evidence.data(host, "devices")["kubelet_socket"]["made"] = evidence.now - ago


def _of_life(lines: list[str], back: int) -> list[str]:
    """Return the lines with the process ids of an earlier life."""
    pids = {found for line in lines for found in PID.findall(line)} - {"1"}
    for pid in pids if back else ():
        lines = [line.replace(pid, str(int(pid) - back)) for line in lines]
    return lines


def _at_start(evidence: Evidence, host: str, dated: list[str]) -> None:
    """Add what the kubelet that runs complained of at its start."""
    kubelet, log = evidence.data(host, "kubelet"), evidence.data(host, "kubelet_log")
    if kubelet["process"] is None:
        return
    started = kubelet["process"]["started_at"]
    first, last = kubelet_log.start(kubelet["unit"]["name"], started)
    begin, end = clock.journal(first), clock.journal(last)
    said = [line for line in dated if begin <= line.partition(" ")[0] <= end]
    log["at_start"] = log.get("at_start", []) + kubelet_log.complaints("\n".join(said))


def _of_start(evidence: Evidence, host: str, unit: str, dated: list[str]) -> None:
    """Add what systemd said of a unit that does not run."""
    said = [line for line in dated if " systemd[1]: " in line]
    started = evidence.record(host, "unit_start")
    if said and started["status"] == "ok":
        for row in started["data"]["units"]:
            if row["name"] == unit:
                row["said"] = said[-20:]


def _of_kubelet(evidence: Evidence, host: str, unit: str, dated: list[str]) -> None:
    kubelet = evidence.data(host, "kubelet")
    if kubelet_end.is_relevant(kubelet["unit"], kubelet["process"], evidence.now):
        kept = kubelet_end.last(dated)
        evidence.data(host, "kubelet_end").update(unit=unit, lines=kept)


def _of_runtime(evidence: Evidence, host: str, unit: str, dated: list[str]) -> None:
    data = evidence.data(host, "runtime")
    rows = data["units"]
    if cri.UNIMPLEMENTED in (data["calls"] or {}).values():
        failures = [line for line in dated if runtime.UNLOADED in line]
        data["plugin_failures"] = failures[-runtime.KEPT :]
    row = next((row for row in rows if row["name"] == unit), None)
    if row and runtime.ended(row):
        own = [line for line in dated if " systemd[1]: " not in line]
        row["said"] = [line[: runtime.LONGEST] for line in own[-runtime.KEPT :]]


def _of_failed(evidence: Evidence, host: str, unit: str, dated: list[str]) -> None:
    """Add a unit that failed by systemd's own words, where its collector asks for it."""
    result = re.search(r"Failed with result '([\w-]+)'", "\n".join(dated))
    if result is None or names.group(unit) != "runtime":
        return
    data = evidence.data(host, "failed_units")
    data["failed"] = data.get("failed", 0) + 1
    data.setdefault("units", []).append(
        {
            "name": unit,
            "type": "simple",
            "load_state": "loaded",
            "active_state": "failed",
            "sub_state": "failed",
            "unit_file_state": "enabled",
            "result": result.group(1),
            "exec_main_status": 1,
            "n_restarts": 5,
            "fragment_path": f"/etc/systemd/system/{unit}",
            "ended_at": evidence.now - 20,
            "bound_to": [],
            "lines": kubelet_end.last(dated)[-failed_units.KEPT :],
            "error": None,
        }
    )


def as_started(unit: dict[str, Any], now: float) -> dict[str, Any]:
    """Return what systemd checks before it starts the unit: everything is met."""
    return {
        "name": unit["name"],
        "load_state": "loaded",
        "load_error": "",
        "active_state": unit["active_state"],
        "sub_state": unit["sub_state"],
        "result": unit["result"],
        "exec_main_status": unit["exec_main_status"],
        "manual_start": True,
        "condition_result": True,
        "condition_at": None,
        "assert_result": True,
        "assert_at": None,
        "ended_at": now - 30,
        "checks": [],
        "checks_from": "busctl",
        "paths": [],
        "needs": [],
        "said": [],
        "after": None,
    }
