# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does one step of a run's plan on its host, after every earlier step has ended."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..module_utils.shared import argument_specs, step_kinds, step_times
from ..plugin_utils.evidence import document
from ..plugin_utils.planning import check_mode
from ..plugin_utils.planning.plan import Step
from ..plugin_utils.run import cluster_lock as run_cluster_lock
from ..plugin_utils.run import console, run_files
from ..plugin_utils.transport.node_action import NodeAction, orphaned
from ..plugin_utils.transport.patience import PATIENCE, checked, patiently

VANISHED = (
    "{host} was lost while the step was under way ({reason}): the node may still be finishing it or"
    " putting the former bytes back, and the next run finds out which"
)


class ActionModule(NodeAction):
    """Send the plan's step to its node, and write its result to steps.jsonl."""

    ENTRY = "plugins.module_utils.steps.executor:run"
    SHIP = ("plugins.module_utils.collectors.node", "plugins.module_utils.capture")
    MODULE = "kubemend.remediation.apply_step"
    SPEC = argument_specs.APPLY_STEP
    HIDDEN = argument_specs.STEP_OF_ACTION

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Do one step of the plan on its host, or inspect it in check mode."""
        result, task_vars, args, host = self._begun(tmp, task_vars, self.SPEC)
        folder, identity = args["report_dir"], args["id"]
        if self._task.check_mode:
            result.update(self._look(folder, identity, host, args, task_vars))
            return result
        if orphaned():  # nothing is noted either: the next run may have taken the folder over
            reason = "ansible-playbook was ended"
            result.update(
                changed=False,
                failed=True,
                host=host,
                id=identity,
                state=step_kinds.REFUSED,
                reason=reason,
                msg=f"{host} is not begun: {reason}",
            )
            return result
        record = {"id": identity, "host": host, **self._record(args, host, task_vars)}
        try:
            _append(folder, record)
        except OSError as error:
            reason = record["reason"] or record["state"]
            record["reason"] = f"{reason}; {folder}/steps.jsonl cannot be written: {error.strerror}"
            if record["state"] == step_kinds.DONE:
                record["state"] = step_kinds.FAILED
        result.update({name: record[name] for name in ("changed", "host", "id", "state", "reason")})
        if record["state"] != step_kinds.DONE:
            result.update(
                failed=True,
                msg=f"step {identity} on {host} is {record['state']}: {record['reason']}",
            )
        return result

    def _record(
        self, args: Mapping[str, Any], host: str, task_vars: dict[str, Any]
    ) -> dict[str, Any]:
        """Do the step, and return its result, or why it is not sent."""
        folder, identity = args["report_dir"], args["id"]
        step = None
        try:
            run_id = _run_id(folder)
            step = _step_of(run_files.read_plan(folder), identity)
            refusal = _refusal(folder, run_id, step, identity, host, args["locked"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            refusal = f"the plan in {folder} cannot be read ({document.one_line(error)})"
        if refusal or step is None:
            return {"state": step_kinds.REFUSED, "reason": refusal, "changed": False}
        return self._apply(folder, run_id, step, host, args, task_vars)

    def _look(
        self,
        folder: str,
        identity: str,
        host: str,
        args: Mapping[str, Any],
        task_vars: dict[str, Any],
    ) -> dict[str, Any]:
        """Inspect in check mode what the step inspects last; no task changes anything or fails."""
        not_asked = {
            "changed": False,
            "skipped": True,
            "host": host,
            "id": identity,
            "state": step_kinds.SKIPPED,
            "reason": "check mode",
        }
        try:
            run_id = _run_id(folder)
            step = _step_of(check_mode.askable_steps(run_files.read_plan(folder)), identity)
        except (OSError, ValueError, KeyError, TypeError):
            return not_asked
        if step is None or step.host != host or orphaned():
            return not_asked
        params = {
            "run_id": run_id,
            "step": _plain(step),
            "lock": None,
            "check": True,
            "timeout": step_times.CHECK_MODE + int((step.change or {}).get("ready_seconds") or 0),
            "kubeconfig": args["kubeconfig"],
            "kubectl": args["kubectl"],
            "id": step.id,
            "report_dir": folder,
            "patience": None,
        }
        status, reason, answer = self._ask(host, params, task_vars)
        if status == "ok":
            record = checked(answer)
            record["reason"] = check_mode.answer_text(record["reason"])
            if record["state"] in (step_kinds.DONE, step_kinds.ROLLED_BACK):
                record.update(
                    state=step_kinds.FAILED,
                    reason=(
                        f"{host} does not answer as a node in check mode does; find out what runs"
                        " there"
                    ),
                )
        else:  # the repair would not begin it either
            record = {
                "state": step_kinds.REFUSED,
                "reason": f"{host} could not be asked: {reason}",
                "changed": False,
            }
        record = {
            "id": identity,
            "host": host,
            "state": record["state"],
            "reason": record["reason"],
        }
        with suppress(OSError):  # then the report says that no host was asked
            run_files.note_look(folder, record)
        return {"changed": False, **record}

    def _apply(
        self,
        folder: str,
        run_id: str,
        step: Step,
        host: str,
        args: Mapping[str, Any],
        task_vars: dict[str, Any],
    ) -> dict[str, Any]:
        """Send the step; from then on, only the end of this step lets another one begin."""
        plain = _plain(step)
        budget = int(step_times.budget(plain)) + 1
        lock = {"controller": None, "seconds": args["ttl"] + budget} if args["locked"] else None
        params = {
            "run_id": run_id,
            "step": plain,
            "lock": lock,
            "check": False,
            "timeout": budget,
            "kubeconfig": args["kubeconfig"],
            "kubectl": args["kubectl"],
            "id": step.id,
            "report_dir": folder,
            "patience": PATIENCE if step.remedy == step_kinds.DRAIN else None,
        }
        _sync(Path(folder) / run_files.BEGUN, step.id + "\n")
        started = time.monotonic()
        tell = console.tell if args["terminal"] else _silent
        if not step_kinds.kind_of(step.remedy).settles_at_once:
            tell(begun(step, budget))
        status, reason, answer = patiently(
            lambda query: self._ask(host, query, task_vars), params, tell
        )
        if status == "unreachable" or (
            status == "error" and "python" not in answer and not _never_ran(reason)
        ):
            return {
                "state": step_kinds.FAILED,
                "reason": VANISHED.format(host=host, reason=reason),
                "changed": True,
                "seconds": round(time.monotonic() - started, 2),
                "seen": {},
                "lost": True,
            }
        if status == "error":
            return {"state": step_kinds.REFUSED, "reason": reason, "changed": False}
        return checked(answer)


def _run_id(folder: str) -> Any:
    return json.loads((Path(folder) / "plan.json").read_text(encoding="utf-8"))["run_id"]


def _step_of(steps: Iterable[Step], identity: str) -> Step | None:
    return next((step for step in steps if step.id == identity), None)


def _plain(step: Step) -> dict[str, Any]:
    """Return the step as its node takes it."""
    return {
        **asdict(step),
        "code": [step.code],
        "expect": {**(step.expect or {}), "component": step.component},
    }


def begun(step: Step, seconds: int) -> str:
    """Return what is waited for now, how long at most, and the effect of an interruption.

    Ansible prints nothing until the step has ended.
    """
    if step.remedy == step_kinds.DRAIN:
        action, effect = (
            f"drains {step.node}",
            (
                f"{step.host} continues with it, and {step.node} may stay cordoned until the next"
                " run, which continues from there or uncordons it"
            ),
        )
    else:
        action, effect = (
            "does and verifies this step",
            f"{step.host} continues by itself, and the next run finishes or undoes the step",
        )
    return document.one_line(
        f"kubemend: {step.id}: {step.host} {action}, at most {seconds} s. If you interrupt it"
        f" (Ctrl-C), {effect}.",
        600,
    )


def _silent(_text: str) -> None:
    """Print nothing, for an operator who wants no output on the terminal."""


def _refusal(
    folder: str, run_id: str, step: Step | None, identity: str, host: str, locked: bool
) -> str:
    """Return why nothing is sent, or an empty text."""
    if step is None:
        return f"the plan of run {run_id} has no step {identity}"
    if not step.allowed:
        return step.blocked_by or "the plan does not allow it"
    if step.host != host:
        return f"the plan has it for {step.host}, not for {host}"
    begun = Path(folder) / run_files.BEGUN
    if begun.exists():
        return (
            f"step {document.one_line(begun.read_text(encoding='utf-8'), 80)} was begun before it"
            " and never ended"
        )
    refusal = _refused_by_earlier(folder, step)
    if refusal or not locked:
        return refusal
    has_lock, sentence = run_cluster_lock.decide(
        run_cluster_lock.noted(folder), run_id, step.cluster
    )
    return "" if has_lock else sentence


def _refused_by_earlier(folder: str, step: Step) -> str:
    """Return which earlier step of the run forbids this one, or an empty text."""
    path = Path(folder) / "steps.jsonl"
    if not path.exists():
        return ""
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            earlier = json.loads(line)
            state, identity = earlier["state"], earlier["id"]
        except (ValueError, KeyError, TypeError):
            return "what became of a step before it cannot be read"
        if state != step_kinds.DONE and not _as_before(step, identity, state, folder):
            return f"step {identity} before it is {state}"
        if identity == step.id:
            return "it was done already in this run"
    return ""


def _as_before(step: Step, identity: str, state: str, folder: str) -> bool:
    """Return whether the node is back in service although its drain was of no use.

    The reset of the node was refused or rolled back, so that it has its former configuration.
    """
    ends = (step_kinds.REFUSED, step_kinds.ROLLED_BACK)
    if step.remedy != step_kinds.UNCORDON or state not in ends:
        return False
    earlier = _step_of(run_files.read_plan(folder), identity)
    if earlier is None or earlier.remedy != step_kinds.RESET_STATE:
        return False
    return earlier.node == step.node


def _never_ran(reason: str) -> bool:
    """Return whether the program did not begin, because the node has no usable Python."""
    return "has no Python 3.6 or newer" in reason


def _append(folder: str, record: Mapping[str, Any]) -> None:
    """Write one line to the disk, before the next step may begin."""
    path = Path(folder) / "steps.jsonl"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
        file.flush()
        os.fsync(file.fileno())
    begun = Path(folder) / run_files.BEGUN
    with suppress(FileNotFoundError):
        if begun.read_text(encoding="utf-8").strip() == record["id"]:
            begun.unlink()


def _sync(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
