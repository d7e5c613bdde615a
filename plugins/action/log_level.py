# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans which log levels are raised, raises them, restores them, and reports the capture."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from ..module_utils.capture import level_window
from ..module_utils.shared import argument_specs
from ..plugin_utils.capture import (
    outcome as capture_outcome,
)
from ..plugin_utils.capture import (
    plan as capture_plan,
)
from ..plugin_utils.capture import (
    restart_steps,
)
from ..plugin_utils.capture.plan import Plan, Target
from ..plugin_utils.evidence import document as evidence_document
from ..plugin_utils.evidence import sources as evidence_sources
from ..plugin_utils.reports import capture as report_capture
from ..plugin_utils.run import cluster_lock as run_cluster_lock
from ..plugin_utils.run import console
from ..plugin_utils.run import inventory as run_inventory
from ..plugin_utils.transport import node_program
from ..plugin_utils.transport.node_action import NodeAction, orphaned


def _plain(targets: tuple[Target, ...]) -> list[dict[str, Any]]:
    return [asdict(target) for target in targets]


EACH_HOST, EACH_RESTART = 10, 45  # seconds that raising one host's usually takes, at most
# By the service, what was raised by restarts goes back after the controller would have done it: the
# lines are to be read before, since the
# logs of a pod go with it, and one host is to be restarted after the other.
READING, APART = 60, 75


def _seconds(plan: Plan, host: str) -> int:
    """Return the seconds after which the host's own service restores the levels.

    They begin when the host has raised its levels, and include the time for the hosts after it.
    """
    restarted = [
        name for name in plan.raising if any(target.step for target in plan.host_targets(name))
    ]
    behind = plan.raising[plan.raising.index(host) + 1 :]
    seconds = plan.seconds + sum(
        EACH_RESTART if name in restarted else EACH_HOST for name in behind
    )
    return seconds + READING + APART * restarted.index(host) if host in restarted else seconds


def _back_at(plan: Plan) -> float:
    """Return about when all levels are restored automatically, unless a run restores them before.

    The result is in seconds since the epoch.
    """
    raising, latest = 0, 0
    for host in plan.raising:
        raising += (
            EACH_RESTART if any(target.step for target in plan.host_targets(host)) else EACH_HOST
        )
        latest = max(latest, raising + _seconds(plan, host))
    return plan.begun + latest


def _halted(folder: str, plan: Plan, host: str) -> str | None:
    """Return why nothing else is restarted, or None.

    The reason is an earlier host whose restart is not verified.
    """
    for name in plan.raising[: plan.raising.index(host)]:
        answer, steps = (
            capture_outcome.noted(folder, name, capture_outcome.RAISED),
            [target for target in plan.host_targets(name) if target.step],
        )
        if steps and (
            answer is None
            or answer.problem
            or any(answer.targets.get(target.real, ("",))[0] == "unsure" for target in steps)
        ):
            return (
                f"nothing more is restarted, because what was restarted on {name} is not proven"
                " to run"
            )
    return None


class ActionModule(NodeAction):
    """Do one state of a log capture.

    The states planned, shown and reported run on the controller only; the others ask one host.
    """

    ENTRY = "plugins.module_utils.capture.level_window:run"
    EXPIRE = "plugins.module_utils.capture.level_window:expire"
    SHIP = ("plugins.module_utils.collectors.node", "plugins.module_utils.capture")
    MODULE = "kubemend.remediation.log_level"
    SPEC = argument_specs.LOG_LEVEL
    HIDDEN = argument_specs.LEVEL_OF_ACTION

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Do what `state` says of the capture's levels."""
        result, task_vars, args, host = self._begun(tmp, task_vars, self.SPEC)
        try:
            if args["state"] == "planned":
                run_inventory.note_unheard(
                    f"{args['report_dir']}/evidence",
                    args["hosts"],
                    args["api_hosts"],
                    task_vars.get("hostvars"),
                )
                outcome = self._plan(args)
            elif args["state"] == "shown":
                outcome = self._show(args)
            elif args["state"] == "reported":
                outcome = self._report(args)
            else:
                outcome = getattr(self, "_" + args["state"])(
                    host, args, task_vars, capture_outcome.read_plan(args["report_dir"])
                )
        except capture_plan.CaptureError as error:
            outcome = {"failed": True, "exit_reason": error.reason, "msg": str(error)}
        except OSError as error:
            outcome = {
                "failed": True,
                "exit_reason": "input",
                "msg": f"{error.filename or args['report_dir']} cannot be used: {error.strerror}.",
            }
        except (ValueError, KeyError, TypeError) as error:
            outcome = {
                "failed": True,
                "exit_reason": "input",
                "msg": (
                    f"{args['report_dir']} holds no plan of a capture:"
                    f" {evidence_document.one_line(error)}."
                ),
            }
        result.update({"changed": False, "state": args["state"], **outcome})
        return result

    def _plan(self, args: Mapping[str, Any]) -> dict[str, Any]:
        folder = args["report_dir"]
        documents = evidence_sources.stream([f"{folder}/evidence"])
        try:
            plan = capture_plan.plan(
                args["run_id"],
                documents,
                tuple(args["components"]),
                args["level"],
                args["seconds"],
                args["pod"],
            )
        except capture_plan.CaptureError as error:
            nothing = Plan(
                args["run_id"],
                args["seconds"],
                args["level"],
                tuple(args["components"]),
                notes=tuple(args["notices"]),
                begun=time.time(),
            )
            report_capture.refused(folder, nothing, str(error), error.reason, args["formats"])
            raise
        plan = replace(plan, notes=plan.notes + tuple(args["notices"]))
        capture_outcome.write(folder, capture_outcome.PLAN, capture_plan.dumped(plan))
        return {"hosts": list(plan.raising)}

    def _probed(
        self, host: str, args: Mapping[str, Any], task_vars: dict[str, Any], plan: Plan
    ) -> dict[str, Any]:
        params = self._params(
            "probed",
            args,
            plan.host_targets(host),
            args["timeout"] + level_window.budget(_plain(plan.host_targets(host))),
        )
        answer = capture_outcome.note(
            args["report_dir"], host, capture_outcome.PROBED, *self._ask(host, params, task_vars)
        )
        return {
            "host": host,
            "offered": sum(state == "offered" for state, _reason in answer.targets.values()),
        }

    def _show(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Show on the console what will be raised; in check mode that is all.

        An error is raised where no level can be raised.
        """
        folder = args["report_dir"]
        plan = capture_outcome.read_plan(folder)
        offered, without, refused = capture_outcome.offered(folder, plan)
        by_restart, refusals = restart_steps.add(
            without, evidence_sources.stream([f"{folder}/evidence"]), args["allow"], args["run_id"]
        )
        offered += by_restart
        plan = replace(
            plan, targets=offered, refused=plan.refused + refused + refusals, begun=time.time()
        )
        capture_outcome.write(folder, capture_outcome.PLAN, capture_plan.dumped(plan))
        if plan.refused and not offered:
            sentence = (
                f"No level can be raised: {'; '.join(plan.refused)}. Capture what they log now with"
                f" -e kubemend_capture_level={min(self._present(folder, plan), default=0)}."
            )
            report_capture.refused(folder, plan, sentence, formats=args["formats"])
            raise capture_plan.CaptureRefused(sentence)
        self._tell(
            args,
            report_capture.planned(plan, self._task.check_mode, _back_at(plan), console.width()),
        )
        go = not self._task.check_mode
        return {
            "go": go,
            "hosts": list(plan.raising) if go else [],
            "seconds": plan.seconds,
            "begun": plan.begun,
            "needles": list(plan.needles),
            "logging": {host: list(names) for host, names in plan.logging.items() if names},
            "lock_seconds": (
                max((_seconds(plan, host) for host in plan.raising), default=0)
                + sum(level_window.budget(_plain(plan.host_targets(host))) for host in plan.raising)
            ),
        }

    @staticmethod
    def _present(folder: str, plan: Plan) -> list[int]:
        present_levels: list[int] = []
        for document in evidence_sources.stream([f"{folder}/evidence"]):
            if document.get("kind") != "cluster":
                levels = capture_plan.look(document).levels
                present_levels += [
                    level for name, level in levels.items() if name in plan.components
                ]
        return present_levels

    def _raised(
        self, host: str, args: Mapping[str, Any], task_vars: dict[str, Any], plan: Plan
    ) -> dict[str, Any]:
        folder, targets = args["report_dir"], plan.host_targets(host)
        if self._task.check_mode:
            return {"skipped": True, "host": host}
        has_lock, sentence = False, "ansible-playbook was ended: nothing more is raised"
        if not orphaned():
            has_lock, sentence = run_cluster_lock.holds(folder, args["run_id"], host)
        if not has_lock:
            capture_outcome.note(folder, host, capture_outcome.RAISED, "refused", sentence, {})
            return {"host": host, "failed": True, "exit_reason": "refused", "msg": sentence}
        program = node_program.build(
            self.EXPIRE, self.SHIP, {"run_id": args["run_id"]}, node_program.mark()
        )
        budget = level_window.budget(_plain(targets))
        params = self._params("raised", args, targets, budget)
        seconds = _seconds(plan, host)
        params.update(
            program=base64.b64encode(program).decode("ascii"),
            seconds=seconds,
            halt=_halted(folder, plan, host),
            lock={"seconds": args["ttl"] + seconds + budget},
        )
        answer = capture_outcome.note(
            folder, host, capture_outcome.RAISED, *self._ask(host, params, task_vars)
        )
        count = sum(state == "raised" for state, _reason in answer.targets.values())
        # what has no answer, or no sure one, may be raised too: its lines are waited for
        return {
            "host": host,
            "changed": count > 0,
            "raised": count,
            "waits": any(
                answer.targets.get(target.real, ("unsure",))[0] != "refused" for target in targets
            ),
        }

    def _restored(
        self, host: str, args: Mapping[str, Any], task_vars: dict[str, Any], plan: Plan
    ) -> dict[str, Any]:
        """Restore the levels, even if the request to raise them got no answer.

        The report has each failure, and the host itself tries again.
        """
        folder = args["report_dir"]
        if self._task.check_mode:
            return {"skipped": True, "host": host}
        params = self._params(
            "restored",
            args,
            plan.host_targets(host),
            level_window.budget(_plain(plan.host_targets(host))),
        )
        answer = capture_outcome.note(
            folder, host, capture_outcome.RESTORED, *self._ask(host, params, task_vars)
        )
        count = sum(state == "restored" for state, _reason in answer.targets.values())
        return {"host": host, "changed": count > 0, "restored": count}

    def _params(
        self, state: str, args: Mapping[str, Any], targets: tuple[Target, ...], timeout: int
    ) -> dict[str, Any]:
        return {
            "state": state,
            "run_id": args["run_id"],
            "targets": _plain(targets),
            "timeout": timeout,
            "kubeconfig": args["kubeconfig"],
            "kubectl": args["kubectl"],
            "report_dir": args["report_dir"],
            "cluster_uid": next(
                (target.cluster_uid for target in targets if target.cluster_uid), None
            ),
        }

    def _report(self, args: Mapping[str, Any]) -> dict[str, Any]:
        folder = args["report_dir"]
        if self._task.check_mode:
            return {"exit_reason": "ok"}
        report = report_capture.make(
            folder, capture_outcome.read_plan(folder), console.width(), args["formats"]
        )
        self._tell(args, report.text)
        result: dict[str, Any] = {
            "exit_reason": report.reason,
            "report_dir": folder,
            "lines": report.lines,
        }
        if report.sentence:
            result.update(failed=True, msg=evidence_document.one_line(report.sentence, 1000))
        return result

    @staticmethod
    def _tell(args: Mapping[str, Any], text: str) -> None:
        if args["terminal"]:
            console.show(text)
