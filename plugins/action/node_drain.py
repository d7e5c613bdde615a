# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drains a node on request: the step `drain` without a plan around it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any

from ..module_utils.shared import argument_specs, step_kinds, step_times
from ..plugin_utils.transport.node_action import NodeAction
from ..plugin_utils.transport.patience import PATIENCE, checked, patiently

REMEDIES = {"drained": step_kinds.DRAIN, "uncordoned": step_kinds.UNCORDON}


class ActionModule(NodeAction):
    """Drain or uncordon one node, with the program of a plan's step on the same kind of host.

    The step is checked and journalled, and continues when the connection is lost.
    """

    ENTRY = "plugins.module_utils.steps.executor:run"
    SHIP = ("plugins.module_utils.collectors.node", "plugins.module_utils.capture")
    MODULE = "kubemend.remediation.node_drain"
    SPEC = argument_specs.NODE_DRAIN
    HIDDEN = argument_specs.STEP_OF_ACTION

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Drain or uncordon the node, and return the task's result."""
        result, task_vars, args, host = self._begun(tmp, task_vars, self.SPEC)
        low = [name for name in ("drain_timeout", "max_unavailable") if args[name] < 1]
        if low:
            result.update(
                failed=True, changed=False, msg=f"{low[0]} is {args[low[0]]}; it must be 1 or more."
            )
            return result
        params = _params(args, host, bool(self._task.check_mode))
        status, reason, answer = patiently(lambda query: self._ask(host, query, task_vars), params)
        record: dict[str, Any] = {
            "state": step_kinds.FAILED,
            "reason": reason,
            "changed": status == "unreachable",
        }
        if status == "ok":
            record = checked(answer)
        reason = _as_options(record["reason"])
        result.update(
            host=host,
            run_id=params["run_id"],
            changed=record["changed"],
            reason=reason,
            name=args["name"],
        )
        if record["state"] not in (step_kinds.DONE, step_kinds.SKIPPED):
            lead = f"{args['name']} is not {args['state']}"
            result.update(failed=True, msg=reason if lead in reason else f"{lead}: {reason}")
        return result


def _as_options(reason: str) -> str:
    """Return the reason with the names of this module's options.

    The reason of a step has the names of the playbooks' variables.
    """
    return reason.replace("kubemend_allow: [", "allow: [").replace(
        "kubemend_max_unavailable", "max_unavailable"
    )


def _params(args: Mapping[str, Any], host: str, check: bool) -> dict[str, Any]:
    """Return what the node gets: a run of one step, which the lock of another run refuses."""
    run_id = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(3)}"
    remedy = REMEDIES[args["state"]]
    change = {
        "kind": remedy,
        "node": args["name"],
        "timeout": args["drain_timeout"],
        "max_unavailable": args["max_unavailable"],
        "allow": args["allow"],
        "reason": args["reason"],
        "held": True,
    }
    step = {
        "id": f"01-{remedy}-{args['name']}",
        "host": host,
        "code": [],
        "remedy": remedy,
        "target": args["name"],
        "change": change,
    }
    return {
        "run_id": run_id,
        "step": step,
        "lock": None,
        "check": check,
        "timeout": int(step_times.budget(step)) + 1,
        "name": args["name"],
        "patience": None if check or remedy != step_kinds.DRAIN else PATIENCE,
        "kubeconfig": args["kubeconfig"],
        "kubectl": args["kubectl"],
    }
