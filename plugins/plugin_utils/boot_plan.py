# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: a kernel setting that Kubernetes needs, as a step: in our file of sysctl.d, and in the running kernel."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils import fencing, limits_plan, node_boot, node_limits, sysctl_files
from ansible_collections.kubemend.remediation.plugins.plugin_utils.node_boot import NodeBoot, Problem
from ansible_collections.kubemend.remediation.plugins.plugin_utils.plan import Scene, Step


def mended(scene: Scene) -> Step | None:
    """KM520: the setting that the finding names."""
    node = node_boot.read(scene.document)
    one = next((one for one in node_boot.problems(node) if one.name == scene.finding.component), None)
    running = node.number(one.name) if one else None
    if one is None or one.wanted is None or running is None or node.limits is None:
        return None
    blocked, note = node_limits.later(node.limits, one.name, one.wanted)
    blocked = blocked or _other_name(node, one)
    if blocked and running < one.wanted:
        blocked += f"; until then sysctl -w {one.name}={one.wanted} helps, up to the next boot"
    return limits_plan.step_of(scene, one.name, running, max(running, one.wanted), fencing.why(scene) or blocked, note)


def _other_name(node: NodeBoot, one: Problem) -> str | None:
    """A line that sets the same under another name, which may be written later than ours."""
    if one.name != node_boot.IP_FORWARD or node.limits is None:
        return None
    found = sysctl_files.at_boot(node.limits.records, (node_boot.FORWARDING,)).get(node_boot.FORWARDING)
    if found is None or node_limits.taken(found.key, found.value) != 0:
        return None
    return f"{node_limits.place(found)} says {found.key} = 0, which is the same setting: take that line away"


REMEDIES = {"KM520": mended}
