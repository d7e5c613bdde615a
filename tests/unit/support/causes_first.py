# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find steps of a plan that treat a consequence while its cause stays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import Finding
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.plan import Step

# Steps that repair the cause itself, though the plan names the consequence.
REPAIRS_THE_CAUSE = {("restart_leader", "KM201"): "the scheduler that starts reads all Nodes again"}


def causes_left(findings: Iterable[Finding], steps: Sequence[Step]) -> list[tuple[str, str, str]]:
    """Return (step, its fault, cause) of allowed steps before which nothing repairs a cause."""
    findings = list(findings)
    left = []
    for number, step in enumerate(steps):
        if step.allowed:
            earlier = [other for other in steps[:number] if other.cluster == step.cluster]
            repaired = {other.code for other in earlier if other.allowed}
            causes = {code for finding in _reasons(findings, step) for code in finding.because}
            left += [
                (step.remedy, step.code, code)
                for code in sorted(causes - repaired)
                if (step.remedy, code) not in REPAIRS_THE_CAUSE
            ]
    return left


def _reasons(findings: Iterable[Finding], step: Step) -> list[Finding]:
    """Return the findings for which a step is planned."""
    of_fault = [one for one in findings if (one.code, one.cluster) == (step.code, step.cluster)]
    near = [one for one in of_fault if step.host in one.everywhere or step.node == one.node]
    return [one for one in near if one.component == step.component] or near or of_fault
