# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps for what a reboot undid.

A step sets a kernel setting or a module in a managed file, and in the running kernel.
"""

from __future__ import annotations

from ....module_utils.shared.step_kinds import KERNEL_MODULE
from ...models import boot as model_boot
from ...models import persistent_sysctl
from ...models.boot import NodeBoot, Problem
from ...parsers import sysctl_d
from .. import fencing
from ..plan import RemedyContext, Step, all_of, label, left_out
from . import kernel_settings


def persisted(scene: RemedyContext) -> Step | None:
    """KM520: the setting or the module that the finding names."""
    node = model_boot.read(scene.document)
    one = next(
        (one for one in model_boot.problems(node) if one.name == scene.finding.component), None
    )
    if one is None or not model_boot.is_repairable(one) or node.limits is None:
        return None
    running = node.number(one.name)
    if one.wanted is None:
        return _module(scene, one)
    if running is None:
        return None
    later = persistent_sysctl.later(node.limits, one.name, one.wanted)
    blocked = kernel_settings.until_then(
        later.blocked or _other_name(node, one), one.name, running, one.wanted
    )
    return kernel_settings.step_of(
        scene, one.name, running, max(running, one.wanted), fencing.why(scene) or blocked, later
    )


def _module(scene: RemedyContext, one: Problem) -> Step:
    """Return the step that names a module in the managed file, and loads it."""
    finding, path = scene.finding, model_boot.FILE
    where = finding.host or ""
    diff = f"--- {path}\n+++ {path}\n+{one.name}\n" + (
        "the kernel: modprobe " + one.name + "\n" if one.now else ""
    )
    return Step(
        label(where, KERNEL_MODULE.replace("_", "-"), one.name),
        where,
        finding.code,
        KERNEL_MODULE,
        kernel_settings.RISK,
        path,
        one.name,
        finding.node,
        blocked_by=all_of(left_out(scene, where), fencing.why(scene)),
        diff=diff,
        limit=60,
        note="a revert takes the line away and leaves the module loaded",
        change={"kind": KERNEL_MODULE, "path": path, "module": one.name},
        expect={"component": None},
    )


def _other_name(node: NodeBoot, one: Problem) -> str | None:
    """Return a line that sets the same under another name, and may be written later."""
    if one.name != model_boot.IP_FORWARD or node.limits is None:
        return None
    found = sysctl_d.at_boot(node.limits.records, (model_boot.FORWARDING,)).get(
        model_boot.FORWARDING
    )
    if found is None or persistent_sysctl.accepted_number(found.key, found.value) != 0:
        return None
    return (
        f"{persistent_sysctl.place(found)} says {found.key} = 0, which is the same setting: take"
        " that line away"
    )


REMEDIES = {"KM520": persisted}
