# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a kubelet ended at boot because nothing orders it after its container runtime. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...evidence import contract
from ...evidence.answers.node.runtime import Runtime
from ...evidence.answers.node.system import System
from ...evidence.answers.node.unit_start import UnitStart
from ...parsers import systemd_unit
from . import exit_cause
from . import status as kubelet_status
from .status import KubeletStatus

BOOT_SECONDS = 600
RUNS = ("active", "reloading")


def before_runtime(document: Mapping[str, Any], status: KubeletStatus) -> str:
    """Return the unit of the runtime that a kubelet did not wait for at this boot, or "".

    The kubelet stays down although the runtime runs now. One that systemd starts again (Restart=)
    needs no order.
    """
    if not _ended_for_runtime(status) or not _ended_at_boot(document, status):
        return ""
    units = contract.answer(document, UnitStart).units
    after = next((unit.after for unit in units if unit.name == status.unit.name), None)
    running = [
        unit.name
        for unit in contract.answer(document, Runtime).units
        if unit.active_state in RUNS and not unit.absent
    ]
    if after is None or not running or not set(running).isdisjoint(after):
        return ""
    return running[0]


def _ended_for_runtime(status: KubeletStatus) -> bool:
    """Tell whether the runtime's absence ended a kubelet that systemd does not start again."""
    death = status.death
    if death is None or not death.certain or death.cause != exit_cause.RUNTIME:
        return False
    return status.state.kind in (systemd_unit.FAILED, systemd_unit.GAVE_UP)


def _ended_at_boot(document: Mapping[str, Any], status: KubeletStatus) -> bool:
    system = contract.answer(document, System)
    moment = kubelet_status.moment(status.death.line if status.death else "")
    if moment is None or system.clock is None or system.uptime_s is None:
        return False
    return 0 <= moment - (system.clock - system.uptime_s) < BOOT_SECONDS
