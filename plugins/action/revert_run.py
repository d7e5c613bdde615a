# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists what can be reverted on a host, selects a run, reverts it there, and reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ..module_utils.shared import argument_specs
from ..module_utils.shared.version import TOOL_VERSION
from ..module_utils.steps.revert import run as revert_run
from ..plugin_utils.evidence import document as evidence_document
from ..plugin_utils.models.result import Result
from ..plugin_utils.reports import actions as report_actions
from ..plugin_utils.reports import json_report, revert
from ..plugin_utils.reports.run_info import Run
from ..plugin_utils.run import (
    cluster_lock as run_cluster_lock,
)
from ..plugin_utils.run import (
    console,
)
from ..plugin_utils.run import (
    inventory as run_inventory,
)
from ..plugin_utils.run import (
    revert as run_revert,
)
from ..plugin_utils.safe_io import atomic_file
from ..plugin_utils.transport.node_action import NodeAction, orphaned


class ActionModule(NodeAction):
    """Revert on one host at a time; the answer goes into the report directory.

    Only states and counts go into the result.
    """

    ENTRY = "plugins.module_utils.steps.revert.run:run"
    SHIP = ("plugins.module_utils.collectors.node", "plugins.module_utils.capture")
    MODULE = "kubemend.remediation.revert_run"
    SPEC = argument_specs.REVERT_RUN
    HIDDEN = argument_specs.REVERT_OF_ACTION

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Do what `state` says of the revert on one host."""
        result, task_vars, args, host = self._begun(tmp, task_vars, self.SPEC)
        try:
            if args["state"] == "listed":
                outcome = self._list(host, args, task_vars)
            elif args["state"] == "chosen":
                outcome = self._choose(args, task_vars["hostvars"])
            elif args["state"] == "reverted":
                outcome = self._revert(host, args, task_vars)
            else:
                outcome = self._report(args)
        except OSError as error:
            outcome = {
                "failed": True,
                "changed": False,
                "exit_reason": "input",
                "msg": f"{error.filename or args['report_dir']} cannot be used: {error.strerror}.",
            }
        result.update(outcome)
        return result

    def _list(
        self, host: str, args: Mapping[str, Any], task_vars: dict[str, Any]
    ) -> dict[str, Any]:
        params = {
            "state": "listed",
            "timeout": args["timeout"],
            "report_dir": args["report_dir"],
            "run_id": args["run_id"],
        }
        # the preconditions are reported without doing anything
        if self._task.check_mode and args["reverts"]:
            params.update(
                reverts=args["reverts"],
                allow=args["allow"],
                host=host,
                kubeconfig=args["kubeconfig"],
            )
        status, reason, answer = self._ask(host, params, task_vars)
        run_revert.write(
            args["report_dir"],
            host,
            run_revert.LISTED,
            {"host": host, "status": status, "reason": reason, "answer": answer},
        )
        listing = run_revert.listing(host, status, reason, answer)
        return {
            "changed": False,
            "host": host,
            "state": "listed",
            "status": listing.status,
            "runs": len(listing.runs),
            "files": sum(len(run.files) for run in listing.runs),
        }

    def _choose(self, args: Mapping[str, Any], hostvars: Any) -> dict[str, Any]:
        """Return the hosts with something to revert; none in check mode.

        A host that was asked and has no list never began. It counts as silent, not as excluded.
        """
        for host in run_revert.listings(args["report_dir"], args["asked"])[1]:
            never = {
                "host": host,
                "status": "error",
                "reason": run_inventory.unheard(hostvars, host),
                "answer": {},
            }
            run_revert.write(args["report_dir"], host, run_revert.LISTED, never)
        listings = run_revert.listings(args["report_dir"], args["hosts"])[0]
        choice = run_revert.choose(listings, args["reverts"])
        count = run_revert.components(listings, choice.run_id)
        hosts = [] if self._task.check_mode else list(choice.hosts)
        return {
            "changed": False,
            "state": "chosen",
            "run": choice.run_id if hosts else None,
            "hosts": hosts,
            "seconds": sum(int(revert_run.budget(count[host])) + 1 for host in hosts),
        }

    def _revert(
        self, host: str, args: Mapping[str, Any], task_vars: dict[str, Any]
    ) -> dict[str, Any]:
        folder = args["report_dir"]
        if self._task.check_mode:
            return {"changed": False, "skipped": True, "host": host, "state": "skipped"}
        listings = run_revert.listings(folder, args["hosts"])[0]
        choice = run_revert.choose(listings, args["reverts"])
        refusal = self._refusal(host, args, choice)
        if refusal:
            return {
                "changed": False,
                "failed": True,
                "host": host,
                "state": "refused",
                "msg": f"{host} is not begun: {refusal}",
            }
        budget = int(revert_run.budget(run_revert.components(listings, choice.run_id)[host])) + 1
        params = {
            "state": "reverted",
            "run_id": args["run_id"],
            "reverts": choice.run_id,
            "host": host,
            "allow": args["allow"],
            "timeout": budget,
            "kubeconfig": args["kubeconfig"],
            "lock": {"seconds": args["ttl"] + budget} if args["locked"] else None,
            "report_dir": folder,
        }
        run_revert.write(folder, host, run_revert.BEGUN, {"run_id": args["run_id"]})
        status, reason, answer = self._ask(host, params, task_vars)
        run_revert.write(
            folder,
            host,
            run_revert.DONE,
            {"host": host, "status": status, "reason": reason, "answer": answer},
        )
        done = run_revert.outcome(host, status, reason, answer)
        result: dict[str, Any] = {
            "changed": answer.get("changed") is True,
            "host": host,
            "state": done.state,
        }
        result.update(
            {name: sum(file.state == name for file in done.files) for name in run_revert.RESULTS}
        )
        if done.state != "done":
            result.update(
                failed=True,
                msg=(
                    f"the revert of run {choice.run_id} on {host} is {done.state}; the report"
                    " says why"
                ),
            )
        return result

    def _refusal(self, host: str, args: Mapping[str, Any], choice: run_revert.Choice) -> str:
        """Return why this host is not begun, or an empty text.

        A worker of Ansible can outlive ansible-playbook, so that this is checked here too.
        """
        if orphaned():
            return "ansible-playbook was ended"
        if choice.problem or host not in choice.hosts:
            return choice.problem or f"it knows no run {choice.run_id}"
        refusal = _begun_before(host, args["report_dir"], choice)
        if refusal or not args["locked"]:
            return refusal
        has_lock, sentence = run_cluster_lock.holds(args["report_dir"], args["run_id"], host)
        return "" if has_lock else sentence

    def _report(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Write the report, and show it; it fails the run where not all was done."""
        folder = args["report_dir"]
        listings, not_asked = run_revert.listings(folder, args["hosts"])
        choice = run_revert.choose(listings, args["reverts"])
        done = run_revert.outcomes(folder, choice.hosts)
        is_possible = bool(choice.hosts) and not done and not self._task.check_mode
        stopped = _stopped(folder, args["run_id"]) if is_possible and args["locked"] else ""
        report = run_revert.Report(
            listings, args["reverts"], choice, done, self._task.check_mode, not_asked, stopped
        )
        text = revert.render(report)
        reason, sentence = run_revert.verdict(report)
        outcome = "refused" if reason == "locked" else reason
        run = Run(
            args["run_id"],
            _started(args["run_id"]),
            evidence_document.now(),
            "revert",
            folder,
            TOOL_VERSION,
            outcome=(2 if sentence else 0, outcome, sentence),
        )
        document = {**json_report.render(Result(), run), "revert": revert.for_programs(report)}
        for name, written in (
            ("report.txt", text),
            ("report.json", json.dumps(document, indent=1) + "\n"),
        ):
            atomic_file.replace(Path(folder) / name, [written])
        report_actions.write(
            folder,
            args["formats"],
            run,
            text,
            report_actions.of_revert(run, report, (revert.WOULD, revert.BECAME)),
        )
        if args["terminal"]:
            console.show(text)
        result: dict[str, Any] = {
            "changed": False,
            "state": "reported",
            "exit_reason": reason,
            "report_dir": folder,
            "run": choice.run_id,
        }
        if sentence:
            result.update(failed=True, msg=evidence_document.one_line(sentence, 1000))
        return result


def _begun_before(host: str, folder: str, choice: run_revert.Choice) -> str:
    """Return what forbids to begin a host after those before it, or an empty text."""
    for before in run_revert.outcomes(folder, choice.hosts):
        if before.host == host:
            return "it was begun already in this run"
        if before.state != "done" and not before.alone:
            return f"{before.host} before it is {before.state}; once that is fixed, run again"
    return ""


def _stopped(folder: str, run_id: str) -> str:
    """Return why no host was begun, by the locks, or an empty text."""
    has_lock, sentence = run_cluster_lock.decide(run_cluster_lock.noted(folder), run_id)
    return "" if has_lock else sentence


def _started(run_id: str) -> str:
    """Return when this run began, as its id says."""
    try:
        return datetime.strptime(run_id[:16], "%Y%m%dT%H%M%SZ").strftime("%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return evidence_document.now()
