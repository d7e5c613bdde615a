# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a run by its arguments, the results of its steps, and the run's outcome by them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...module_utils.shared import step_kinds
from ..evidence import sources
from ..evidence.answers.cluster.nodes import Nodes
from ..faults import CATALOGUE, engine
from ..models import cluster
from ..models import result as model_result
from ..planning import check_mode, node_ready_wait, plan
from ..planning.remedies import (
    REMEDIES,
    cpu_manager_reset,
    kernel_settings,
    maintenance,
)
from . import command_line, run_files, verification

WALKED = ("KM404",)  # also of processes that only the deep tier looks at
OPTIONAL = (step_kinds.PROBE, plan.CLEAN_UP)  # steps that no finding calls for


def plan_of(
    args: dict[str, Any], judged: model_result.Result, clusters: list[cluster.Cluster]
) -> tuple[plan.Step, ...]:
    """Return the steps for the findings and the requested settings, with what forbids them.

    A waived finding is accepted as it is: nothing is planned for it.
    """
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
    requested = [
        *cpu_manager_reset.wishes(clusters, args["cpu_manager"] or {}, engine.KEY_DIGITS),
        *kernel_settings.wishes(clusters, consent.profile, engine.KEY_DIGITS),
    ]
    probe = None
    if args["probe"]:
        probe = maintenance.probe
    return plan.plan(
        [*(item for item in judged.findings if item.waived is None), *requested],
        clusters,
        sources.finder(args["evidence"]),
        consent,
        REMEDIES,
        engine.KEY_DIGITS,
        probe,
    )


def _wishes(args: dict[str, Any]) -> frozenset[str]:
    requested = {
        plan.CLEAN_UP: args["cleanup_rejected"],
        plan.PATCH: args["patch_workloads"],
        plan.PINNED: args["prove_pinning"],
    }
    return frozenset(name for name in requested if requested[name])


def became(
    args: dict[str, Any],
    planned: tuple[plan.Step, ...],
    judged: model_result.Result,
    clusters: list[cluster.Cluster],
) -> tuple[tuple[dict[str, Any], ...], tuple[int, str, str] | None, tuple[str, ...]]:
    """Return (the results of the steps, actual or predicted; the run's outcome; notes)."""
    folder = args["report_dir"]
    if args["mode"] == "verify":
        steps = run_files.read_steps(folder)
        return (
            verification.with_checks(planned, steps, judged, _read_at(args)),
            run_files.outcome(planned, steps, judged, run_files.begun(folder)),
            not_back(planned, steps, clusters),
        )
    uncalled = cpu_manager_reset.uncalled(clusters, args["cpu_manager"] or {}, planned)
    if args["mode"] == "plan":  # check mode ends as the repair would
        answers = run_files.read_looks(folder)
        return (
            check_mode.refused(planned, answers),
            check_mode.outcome(planned, answers) or run_files.withheld(planned, "would not be"),
            (*check_mode.notices(planned, answers), *uncalled),
        )
    if args["mode"] == "repair" and not any(step.allowed for step in planned):
        return (), run_files.withheld(planned), uncalled
    return (), None, uncalled


def _read_at(args: dict[str, Any]) -> Callable[[str], str | None]:
    """Return a function that tells when the evidence of a host was read."""
    find = sources.finder(args["evidence"])

    def read_at(host: str) -> str | None:
        moment = find(host).get("collected_at")
        return moment if isinstance(moment, str) else None

    return read_at


def not_back(
    planned: tuple[plan.Step, ...],
    steps: tuple[dict[str, Any], ...],
    clusters: list[cluster.Cluster],
) -> tuple[str, ...]:
    """Return a note about nodes that recovered on their hosts, and not in the API."""
    names = node_ready_wait.nodes(planned, steps)
    remaining: dict[str, str] = {}
    for item in clusters:
        remaining.update(node_ready_wait.waiting(item.typed(Nodes).items, names))
    if not remaining:
        return ()
    return (
        "What keeps a kubelet down was fixed, and the API has it otherwise still:"
        f" {node_ready_wait.clause(remaining)}; {node_ready_wait.ADVICE}; what is found above shows"
        " what keeps it from that, if anything does.",
    )


def with_command(
    finding: model_result.Finding,
    steps: tuple[plan.Step, ...],
    observing: bool = False,
    hosts: str = " -i INVENTORY",
) -> model_result.Finding:
    """Return a finding with the exact command that repairs it.

    It gets the command only if the operator's consent is all that is missing, or if the playbook
    only observes.

    Args:
        finding: that may be repaired.
        steps: of the plan.
        observing: whether the playbook changes nothing.
        hosts: the options that name the hosts of the run (command_line.options).
    """
    waiting = [step for step in steps if _repairs(step, finding) and _waits(step, observing)]
    if not waiting or not all(step.allowed or plan.only_risk(step) for step in waiting):
        return finding
    deep = ""
    if _is_deep(finding.code):
        deep = " -e kubemend_deep=true"
    risk = max(step.risk for step in waiting)
    variables = f"-e kubemend_faults={finding.code}{deep} -e kubemend_max_risk={risk}"
    return replace(finding, command=command_line.command("remediate", hosts, variables))


def repair_command(
    steps: tuple[plan.Step, ...], observing: bool, hosts: str = " -i INVENTORY"
) -> str:
    """Return the command that does all steps which only wait for consent; "" without any.

    Args:
        steps: of the plan.
        observing: whether the playbook changes nothing.
        hosts: the options that name the hosts of the run (command_line.options).
    """
    able = [step for step in steps if _waits_for_consent(step, observing)]
    if not able:
        return ""
    codes = {code for step in able for code in step.codes}
    deep = ""
    if any(_is_deep(code) for code in codes):
        deep = "-e kubemend_deep=true "
    risk = max(step.risk for step in able)
    return command_line.command("remediate", hosts, f"{deep}-e kubemend_max_risk={risk}")


def _waits_for_consent(step: plan.Step, observing: bool) -> bool:
    """Tell whether only the operator's consent is missing for a step that repairs."""
    if not step.risk or step.remedy in OPTIONAL or not _waits(step, observing):
        return False
    return step.allowed or plan.only_risk(step)


def _is_deep(code: str) -> bool:
    """Tell whether a fault needs the deep tier."""
    return code in WALKED or (code in CATALOGUE and CATALOGUE[code].tier == "deep")


def _repairs(step: plan.Step, finding: model_result.Finding) -> bool:
    """Tell whether a step is one that repairs this finding, which no waiver accepts as it is."""
    if finding.waived is not None or step.remedy in OPTIONAL:
        return False
    if finding.code not in step.codes or step.cluster != finding.cluster:
        return False
    if step.component not in (None, finding.component, "kubelet"):
        return False
    if finding.host in (None, step.host) or finding.node == step.node:
        return True
    return step.remedy == step_kinds.RESTART_LEADER


def _waits(step: plan.Step, observing: bool) -> bool:
    """Tell whether a step is not done in this run; a playbook that observes does none with risk."""
    return not step.allowed or (observing and step.risk > 0)
