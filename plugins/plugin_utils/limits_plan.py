# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: a kernel setting raised, as a step: only what a fault proved to be exhausted, or not to last."""

from __future__ import annotations

import re

from ansible_collections.kubemend.remediation.plugins.module_utils import kernel_setting
from ansible_collections.kubemend.remediation.plugins.plugin_utils import fencing, node_limits
from ansible_collections.kubemend.remediation.plugins.plugin_utils.plan import Scene, Step, left_out

RISK = 1


def raised(scene: Scene) -> Step | None:
    """KM401, KM402, KM403, KM405 and KM407: the setting that the finding names, to its target, never below what anything says already."""
    key, limits = scene.finding.component or "", node_limits.read(scene.document)
    running = limits.kernel.get(key)
    if running is None or key not in node_limits.WATCHED:
        return None
    target = int(scene.consent.limits.get(key, node_limits.TARGETS.get(key, 0)))
    exhausted = any(short.key == key for short in limits.shortages())
    value = max([running, *node_limits.asked_for(limits, key), target if exhausted else 0])
    blocked, note = node_limits.later(limits, key, value)
    if blocked and value > running:
        blocked += f"; until then sysctl -w {key}={value} helps, up to the next boot"
    if exhausted and value <= running:
        blocked = f"{key} is {running} already, and it is used up: {_more(key)}"
    return _step(scene, key, running, value, fencing.why(scene) or blocked, note)


def _more(key: str) -> str:
    return f"find out who holds so many, or ask for more with -e {node_limits.VARIABLES[key]}=NUMBER"


def _step(scene: Scene, key: str, running: int, value: int, blocked: str | None, note: str) -> Step:
    finding = scene.finding
    where = finding.host or ""
    label = re.sub(r"[^A-Za-z0-9.-]+", "-", f"{where}-{kernel_setting.REMEDY.replace('_', '-')}-{key}")
    diff = f"--- {node_limits.FILE}\n+++ {node_limits.FILE}\n+{key} = {value}\n" + (f"the kernel: {running} -> {value}\n" if value > running else "")
    return Step(label, where, finding.code, kernel_setting.REMEDY, RISK, node_limits.FILE, key, finding.node,
                blocked_by=left_out(scene, where) or blocked, note=note, diff=diff, limit=60,
                change={"kind": kernel_setting.REMEDY, "path": node_limits.FILE, "settings": {key: value}}, expect={"component": None})


REMEDIES = dict.fromkeys(("KM401", "KM402", "KM403", "KM405", "KM407"), raised)
