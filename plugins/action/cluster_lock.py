# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes, keeps and releases the lock of a cluster on one node; decides which run holds it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..module_utils.shared import argument_specs, step_times
from ..module_utils.state import lock
from ..plugin_utils.evidence import document
from ..plugin_utils.planning.plan import Step
from ..plugin_utils.run import cluster_lock as run_cluster_lock
from ..plugin_utils.run import run_files
from ..plugin_utils.transport.node_action import NodeAction

NOT_ASKED = (
    "it was not asked, because Ansible could not begin with it or with one before it, as it says"
    " above: correct what the inventory says of that one"
)


class ActionModule(NodeAction):
    """Do one part of the cluster lock on one node; the answer goes into the report directory.

    Only the run that holds the lock goes into a variable.
    """

    ENTRY = "plugins.module_utils.changes.cluster_lock:run"
    MODULE = "kubemend.remediation.cluster_lock"
    SPEC = argument_specs.CLUSTER_LOCK
    HIDDEN = argument_specs.LOCK_OF_ACTION

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Do what `state` says to the lock of one node."""
        result, task_vars, args, host = self._begun(tmp, task_vars, self.SPEC)
        folder, state = args["report_dir"], args["state"]
        try:
            run_id = args["run_id"] or _run_id(folder)
            if state == "decided":
                result.update(_decided(folder, run_id, args["cluster"]))
                return result
            seconds = min(args["ttl"] + _seconds(folder, args["step"]), lock.MAX_SECONDS)
            params = {
                "state": state,
                "run_id": run_id,
                "controller": run_cluster_lock.controller(os.getppid()),
                "take": args["take"],
                "seconds": seconds,
                "timeout": args["timeout"],
                "check": self._task.check_mode,
                "report_dir": folder,
            }
            if state == "released" and run_files.unsettled(folder):
                # It is unknown whether that step still runs: the lock's own time, or the next run
                # of this controller, ends it.
                result.update(changed=False, host=host, held=True, by=run_id, status="ok")
                return result
            self._member = args["members"] is None or host in args["members"]
            answer = self._noted(host, params, args, task_vars)
        except (OSError, ValueError, KeyError, TypeError) as error:
            result.update(
                failed=True,
                changed=False,
                msg=f"{folder} cannot be used: {document.one_line(error)}",
            )
            return result
        result.update(
            changed=self._changed, host=host, held=answer.held, by=answer.by, status=answer.status
        )
        # no reason to fail, and nothing to call well
        if state == "released" and answer.status != "ok":
            warning = (
                f"The lock of run {run_id} on {host} was not given back"
                f" ({answer.reason or answer.status}): it ends with its time, and the next run"
                " of this controller takes it over."
            )
            result.update(skipped=True, warnings=[warning])
        return result

    def _noted(
        self, host: str, params: dict[str, Any], args: dict[str, Any], task_vars: dict[str, Any]
    ) -> run_cluster_lock.Held:
        """Ask the node, and note its answer in the report directory."""
        folder, state = args["report_dir"], args["state"]
        if state == "acquired":
            _expect(folder, args["members"] or [], args["unable"])
        answer = self._lock(host, params, folder, task_vars)
        if state != "released":
            run_cluster_lock.note(folder, answer)
        return answer

    _changed = False

    def _lock(
        self, host: str, params: dict[str, Any], folder: str, task_vars: dict[str, Any]
    ) -> run_cluster_lock.Held:
        cluster = _cluster_of(folder, host)
        answer = self._once(host, cluster, params, task_vars)
        owner = self._owner
        is_refused = params["state"] == "acquired" and not answer.held
        # its process was one of this very controller and is gone: nothing waits for it
        if is_refused and answer.by and run_cluster_lock.gone(owner, params["controller"]):
            answer = self._once(host, cluster, {**params, "take": answer.by}, task_vars)
        return answer

    _owner: Mapping[str, Any] = MappingProxyType({})
    _member = True

    def _once(
        self, host: str, cluster: str | None, params: dict[str, Any], task_vars: dict[str, Any]
    ) -> run_cluster_lock.Held:
        status, reason, answer = self._ask(host, params, task_vars)
        lock = answer.get("lock")
        owner = lock.get("controller") if isinstance(lock, dict) else None
        self._owner = owner if isinstance(owner, dict) else {}
        self._changed = self._changed or answer.get("changed") is True
        return run_cluster_lock.parse_answer(
            host, cluster, status, reason, answer, params["run_id"], self._member
        )


def _expect(folder: str, members: list[str], unable: list[str]) -> None:
    """Note each member of the cluster as not asked, before the first one is asked.

    The loop may end at a host with which Ansible cannot begin, and never reach the hosts after it.
    """
    known_hosts = {item.host for item in run_cluster_lock.noted(folder)}
    for host in members:
        if host not in known_hosts:
            status, reason = "error", NOT_ASKED
            if host in unable:
                status, reason = "unreachable", document.NEVER_BEGAN
            cluster = _cluster_of(folder, host)
            run_cluster_lock.note(
                folder, run_cluster_lock.Held(host, cluster, status, reason=reason)
            )


def _decided(folder: str, run_id: str, cluster: str | None) -> dict[str, Any]:
    """Return one verdict over every cluster that was asked, or over one of them."""
    answers = run_cluster_lock.noted(folder)
    clusters: list[str | None] = [cluster]
    if not cluster:
        clusters = [*sorted({item.cluster for item in answers if item.cluster})] or [None]
    verdicts = [run_cluster_lock.decide(answers, run_id, name) for name in clusters]
    refused = [sentence for has_lock, sentence in verdicts if not has_lock]
    notes = [sentence for has_lock, sentence in verdicts if has_lock and sentence]
    result: dict[str, Any] = {"changed": False, "held": not refused, "notes": notes}
    if refused:
        result.update(failed=True, exit_reason="locked", msg=refused[0])
    return result


def _seconds(folder: str, step: str | None) -> int:
    """Return how long this step may last, or without a step all allowed steps in a row.

    Each step also renews its own node's lock.
    """
    try:
        steps = run_files.read_plan(folder)
    except FileNotFoundError:
        return 0
    if step:
        chosen = [item for item in steps if item.id == step]
    else:
        chosen = [item for item in steps if item.allowed]
    return sum(_budget(item) for item in chosen)


def _budget(step: Step) -> int:
    return 1 + int(
        step_times.budget(
            {
                "remedy": step.remedy,
                "limit": step.limit,
                "expect": step.expect,
                "change": step.change,
            }
        )
    )


def _run_id(folder: str) -> Any:
    """Return the run of the plan in the report directory."""
    return json.loads((Path(folder) / "plan.json").read_text(encoding="utf-8"))["run_id"]


def _cluster_of(folder: str, host: str) -> str | None:
    """Return the cluster that a host's evidence proves, by the key that the plan uses."""
    path = Path(folder) / "evidence" / document.file_name(host)
    try:
        key = json.loads(path.read_text(encoding="utf-8")).get("cluster_key")
    except (OSError, ValueError, AttributeError):
        return None
    return key[: _digits()] if isinstance(key, str) else None


def _digits() -> int:
    from ..plugin_utils.faults import engine as fault_engine

    return fault_engine.KEY_DIGITS
