# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a run by its arguments, what became of its steps, and what the run comes to by
them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...module_utils.shared import step_kinds
from ..evidence import sources as evidence_sources
from ..faults import engine as judge
from ..models import cluster
from ..models import result as model
from ..planning import check_mode as looks
from ..planning import node_ready_wait as brought_back
from ..planning import plan
from ..planning.remedies import (
    REMEDIES,
    cpu_manager_reset,
    kernel_settings,
    maintenance,
)
from . import run_files as run_folder

WALKED = ("KM404",)  # also of processes that only the deep tier looks at


def plan_of(
    args: dict[str, Any], judged: model.Result, clusters: list[cluster.Cluster]
) -> tuple[plan.Step, ...]:
    """What the findings and the operator's own wishes ask for, with what forbids it."""
    consent = plan.Consent(
        args["max_risk"],
        frozenset(args["allow"]),
        _wishes(args),
        args["drain_timeout"],
        args["max_unavailable"],
        args["cpu_manager"] or {},
        args["limits"] or {},
        frozenset(args["profile"]),
    )
    wished = [
        *cpu_manager_reset.wishes(clusters, args["cpu_manager"] or {}, judge.KEY_DIGITS),
        *kernel_settings.wishes(clusters, consent.profile, judge.KEY_DIGITS),
    ]
    return plan.plan(
        [*judged.findings, *wished],
        clusters,
        evidence_sources.finder(args["evidence"]),
        consent,
        REMEDIES,
        judge.KEY_DIGITS,
        maintenance.probe if args["probe"] else None,
    )


def _wishes(args: dict[str, Any]) -> frozenset[str]:
    asked = {
        plan.CLEAN_UP: args["cleanup_rejected"],
        plan.PATCH: args["patch_workloads"],
        plan.PINNED: args["prove_pinning"],
    }
    return frozenset(name for name in asked if asked[name])


def became(
    args: dict[str, Any],
    planned: tuple[plan.Step, ...],
    judged: model.Result,
    clusters: list[cluster.Cluster],
) -> tuple[tuple[dict[str, Any], ...], tuple[int, str, str] | None, tuple[str, ...]]:
    """(what became of the steps, or would; what the run comes to by them; notes about that)."""
    folder = args["report_dir"]
    if args["mode"] == "verify":
        steps = run_folder.read_steps(folder)
        return (
            steps,
            run_folder.outcome(planned, steps, judged, run_folder.begun(folder)),
            not_back(planned, steps, clusters),
        )
    uncalled = cpu_manager_reset.uncalled(clusters, args["cpu_manager"] or {}, planned)
    if args["mode"] == "plan":  # check mode ends as the repair would
        answers = run_folder.read_looks(folder)
        outcome = looks.outcome(planned, answers) or run_folder.withheld(planned, "would not be")
        return (
            looks.refused(planned, answers),
            outcome,
            (*looks.notices(planned, answers), *uncalled),
        )
    withheld = args["mode"] == "repair" and not any(step.allowed for step in planned)
    return (), run_folder.withheld(planned) if withheld else None, uncalled


def not_back(
    planned: tuple[plan.Step, ...],
    steps: tuple[dict[str, Any], ...],
    clusters: list[cluster.Cluster],
) -> tuple[str, ...]:
    """Nodes that were brought back on their hosts, and that the API does not have so after it
    was waited for.
    """
    names, left = brought_back.nodes(planned, steps), {}
    for of in clusters:
        left.update(brought_back.waiting((of.answer("nodes") or {}).get("items"), names))
    return (
        (
            (
                "What keeps a kubelet down was mended, and the API has it otherwise still:"
                f" {brought_back.told(left)}; {brought_back.ADVICE}; what is found above tells what"
                " keeps it from that, if anything does."
            ),
        )
        if left
        else ()
    )


def with_command(
    finding: model.Finding, steps: tuple[plan.Step, ...], observing: bool = False
) -> model.Finding:
    """The exact command that repairs a finding, where nothing but the operator's consent is
    missing, or a playbook that only observes has it.
    """
    waiting = [
        step
        for step in steps
        if step.remedy not in (step_kinds.PROBE, plan.CLEAN_UP)
        and (step.code, step.cluster) == (finding.code, finding.cluster)
        and step.component in (None, finding.component, "kubelet")
        and (not step.allowed or (observing and step.risk > 0))
        and (
            finding.host in (None, step.host)
            or finding.node == step.node
            or step.remedy == step_kinds.RESTART_LEADER
        )
    ]
    if not waiting or not all(step.allowed or plan.only_risk(step) for step in waiting):
        return finding
    deep = (
        " -e kubemend_deep=true"
        if judge.CATALOGUE[finding.code].tier == "deep" or finding.code in WALKED
        else ""
    )
    return replace(
        finding,
        command=(
            "ansible-playbook -i INVENTORY kubemend.remediation.remediate -e"
            f" kubemend_faults={finding.code}{deep} -e"
            f" kubemend_max_risk={max(step.risk for step in waiting)}"
        ),
    )
