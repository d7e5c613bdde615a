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
    problem = next(
        (
            problem
            for problem in model_boot.problems(node)
            if problem.name == scene.finding.component
        ),
        None,
    )
    if problem is None or not model_boot.is_repairable(problem) or node.limits is None:
        return None
    running = node.number(problem.name)
    if problem.wanted is None:
        return _module(scene, problem)
    if running is None:
        return None
    later = persistent_sysctl.later(node.limits, problem.name, problem.wanted)
    blocked = kernel_settings.until_then(
        later.blocked or _other_name(node, problem), problem.name, running, problem.wanted
    )
    return kernel_settings.step_of(
        scene,
        problem.name,
        running,
        max(running, problem.wanted),
        fencing.refusal(scene) or blocked,
        later,
    )


def _module(scene: RemedyContext, problem: Problem) -> Step:
    """Return the step that names a module in the managed file, and loads it."""
    finding, path = scene.finding, model_boot.FILE
    host = finding.host or ""
    diff = f"--- {path}\n+++ {path}\n+{problem.name}\n" + (
        "the kernel: modprobe " + problem.name + "\n" if problem.now else ""
    )
    return Step(
        label(host, KERNEL_MODULE.replace("_", "-"), problem.name),
        host,
        finding.code,
        KERNEL_MODULE,
        kernel_settings.RISK,
        path,
        problem.name,
        finding.node,
        blocked_by=all_of(left_out(scene, host), fencing.refusal(scene)),
        diff=diff,
        limit=60,
        note="a revert takes the line away and leaves the module loaded",
        change={"kind": KERNEL_MODULE, "path": path, "module": problem.name},
        expect={"component": None},
    )


def _other_name(node: NodeBoot, problem: Problem) -> str | None:
    """Return a line that sets the same under another name, and may be written later."""
    if problem.name != model_boot.IP_FORWARD or node.limits is None:
        return None
    setting = sysctl_d.at_boot(node.limits.records, (model_boot.FORWARDING,)).get(
        model_boot.FORWARDING
    )
    if setting is None or persistent_sysctl.accepted_number(setting.key, setting.value) != 0:
        return None
    return (
        f"{persistent_sysctl.place(setting)} says {setting.key} = 0, which is the same setting:"
        " take that line away"
    )


REMEDIES = {"KM520": persisted}
