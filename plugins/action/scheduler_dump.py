# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Capture the cache of the leading scheduler from its own log, and what it proves.

A failure never fails the run; it becomes a note.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..module_utils.capture import scheduler_dump
from ..module_utils.shared import argument_specs
from ..plugin_utils.capture import (
    log_merge,
)
from ..plugin_utils.capture import (
    outcome as capture_outcome,
)
from ..plugin_utils.capture import (
    plan as capture_plan,
)
from ..plugin_utils.capture import (
    scheduler as capture_scheduler,
)
from ..plugin_utils.evidence import document as evidence_document
from ..plugin_utils.evidence import sources as evidence_sources
from ..plugin_utils.evidence.answers.node.space import Spaces
from ..plugin_utils.evidence.decode import decode
from ..plugin_utils.faults import engine as fault_engine
from ..plugin_utils.models.scheduling import cache_dump
from ..plugin_utils.run import cluster_lock as run_cluster_lock
from ..plugin_utils.safe_io import atomic_file
from ..plugin_utils.safe_io.text import escape
from ..plugin_utils.transport.node_action import NodeAction, orphaned

MOST_LINES = 2000  # of those that matter


class ActionModule(NodeAction):
    """Do one state of the capture of a scheduler's cache.

    The states planned, noted and compared run on the controller only; the others ask one host.
    """

    ENTRY = "plugins.module_utils.capture.scheduler_dump:run"
    SHIP = ("plugins.module_utils.collectors.node",)
    MODULE = "kubemend.remediation.scheduler_dump"
    SPEC = argument_specs.SCHEDULER_DUMP
    HIDDEN = argument_specs.DUMP_OF_ACTION

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Do what `state` says of the scheduler's capture."""
        result, task_vars, args, host = self._begun(tmp, task_vars, self.SPEC)
        try:
            if args["state"] == "planned":
                outcome = self._plan(args)
            elif args["state"] == "noted":
                outcome = {
                    "hosts": [],
                    "note": (
                        "kubemend_capture: it was not finished:"
                        f" {evidence_document.one_line(args['reason'] or 'nothing says why', 400)}"
                    ),
                }
                self._note(args["report_dir"], outcome["note"])
            else:
                document = json.loads(
                    (
                        capture_outcome.place(args["report_dir"]) / capture_scheduler.DOCUMENT
                    ).read_text(encoding="utf-8")
                )
                if args["state"] == "compared":
                    outcome = self._compare(args, document)
                else:
                    outcome = self._one(host, args, document, task_vars)
        except (OSError, evidence_document.EvidenceError, *evidence_document.UNFORESEEN) as error:
            # the diagnosis stands without a capture
            outcome = {
                "hosts": [],
                "note": f"kubemend_capture: {args['state']}: {evidence_document.one_line(error)}",
            }
            self._note(args["report_dir"], outcome["note"])
        result.update({"changed": False, "state": args["state"], **outcome})
        return result

    def _plan(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Plan what is done to the leading scheduler, by the evidence of this run.

        Nothing is planned without consent, or in check mode.
        """
        folder, hosts, api = args["report_dir"], [], []
        for document in evidence_sources.stream([f"{folder}/evidence"]):
            if document.get("kind") == "cluster":
                api.append(document)
            else:
                hosts.append(fault_engine.extract(document))
        captures, notes = capture_scheduler.choose(
            fault_engine.assembled(hosts, api), args["level"], fault_engine.KEY_DIGITS
        )
        consent, begun = args["consent"], time.time()
        if consent != capture_scheduler.GO:
            reason = "it needs -e kubemend_max_risk=1"
            if consent == capture_scheduler.CHECK:
                reason = "check mode"
            notes += [
                f"kubemend_capture: nothing is captured ({reason}); it would be:"
                f" {capture_scheduler.wish(leader, args['seconds'])}"
                for leader in captures
            ]
            captures = []
        self._keep(
            folder,
            {
                "captures": captures,
                "notes": notes,
                "results": [],
                "begun": begun,
                "seconds": args["seconds"],
            },
        )
        return {
            "hosts": [leader["host"] for leader in captures],
            "seconds": args["seconds"],
            "begun": begun,
        }

    @staticmethod
    def _keep(folder: str, document: Mapping[str, Any]) -> None:
        capture_outcome.write(folder, capture_scheduler.DOCUMENT, document)

    def _note(self, folder: str, note: str) -> None:
        try:
            path = capture_outcome.place(folder) / capture_scheduler.DOCUMENT
            document: dict[str, Any] = {"captures": [], "notes": [], "results": []}
            if path.exists():
                document = json.loads(path.read_text(encoding="utf-8"))
            self._keep(folder, {**document, "notes": [*document["notes"], note]})
        except (OSError, *evidence_document.UNFORESEEN):
            pass  # the folder is gone or full: then the report says so

    def _one(
        self,
        host: str,
        args: Mapping[str, Any],
        document: dict[str, Any],
        task_vars: dict[str, Any],
    ) -> dict[str, Any]:
        """Ask the host of a leader, and keep its answer."""
        folder = args["report_dir"]
        leader = next(item for item in document["captures"] if item["host"] == host)
        if args["state"] == "dumped":
            return self._dump(leader, args, document, task_vars)
        self._ready(leader, *self._leader_answer(leader, args, task_vars))
        self._keep(folder, document)
        plan = capture_scheduler.levels(
            document["captures"], args["run_id"], document["seconds"], document["begun"]
        )
        capture_outcome.write(folder, capture_outcome.PLAN, capture_plan.dumped(plan))
        is_ready = leader["process_is"] == "ok"
        return {"host": host, "ready": is_ready, "raises": host in plan.raising}

    def _dump(
        self,
        leader: dict[str, Any],
        args: Mapping[str, Any],
        document: dict[str, Any],
        task_vars: dict[str, Any],
    ) -> dict[str, Any]:
        """Request the signal, if the lock and the process allow it."""
        folder, host = args["report_dir"], leader["host"]
        if leader["process_is"] != "ok" or self._task.check_mode:
            return {"skipped": True, "host": host, "sent": False}
        has_lock, sentence = False, "ansible-playbook was ended: nothing is sent"
        if not orphaned():
            has_lock, sentence = run_cluster_lock.holds(folder, args["run_id"], host)
        if not has_lock:
            leader.update(sent=False, sent_reason=evidence_document.one_line(sentence))
            self._keep(folder, document)
            return {"host": host, "sent": False}
        self._dumped(leader, *self._leader_answer(leader, args, task_vars))
        self._keep(folder, document)
        return {"host": host, "sent": leader["sent"]}

    def _leader_answer(
        self, leader: Mapping[str, Any], args: Mapping[str, Any], task_vars: dict[str, Any]
    ) -> tuple[str, Mapping[str, Any]]:
        """Return (why there is no answer or "", the answer) of a leader's host."""
        names = ("state", "run_id", "timeout", "kubeconfig", "kubectl", "report_dir")
        params = {name: args[name] for name in names}
        params["process"] = leader["process"]
        if args["state"] == "dumped":
            params["timeout"] += scheduler_dump.BUDGET
        status, reason, answer = self._ask(leader["host"], params, task_vars)
        problem = ""
        if status != "ok":
            problem = evidence_document.one_line(reason or status, evidence_document.MAX_REASON)
        return problem, answer

    @staticmethod
    def _ready(leader: dict[str, Any], problem: str, answer: Mapping[str, Any]) -> None:
        full = capture_plan.full(decode(Spaces, answer.get("space") or {}).answer)
        process = evidence_document.one_line(answer.get("process") or "it does not say", 400)
        if full:
            process = f"{full}: free some, its log would fill it"
        process = problem or process
        reason, offered = process, "refused"
        if process == "ok":
            reason = evidence_document.one_line(answer.get("reason") or "", 400)
            offered = str(answer.get("level"))
        leader.update(process_is=process, level_reason=reason, offered=offered)

    @staticmethod
    def _dumped(leader: dict[str, Any], problem: str, answer: Mapping[str, Any]) -> None:
        leader.update(
            sent=answer.get("sent") is True,
            sent_reason=problem or evidence_document.one_line(answer.get("reason") or "", 400),
        )

    def _compare(self, args: Mapping[str, Any], document: dict[str, Any]) -> dict[str, Any]:
        """Write the captured lines as files, and return what they prove."""
        folder = args["report_dir"]
        if not document["captures"]:
            return {"hosts": []}
        became = {}
        if self._planned(folder):
            ends = capture_outcome.became(folder, capture_outcome.read_plan(folder).targets)
            became = {end.target.host: end for end in ends}
        logs = list(log_merge.load(capture_outcome.place(folder) / "logs"))
        document["notes"] += [f"kubemend_capture: {notice}" for notice in log_merge.notices(logs)]
        for capture in document["captures"]:
            lines = log_merge.merge(item for item in logs if item.get("host") == capture["host"])
            files = _files(Path(folder), capture["host"], lines)
            result = capture_scheduler.result(
                capture,
                became.get(capture["host"]),
                [line.text for line in lines],
                args["run_id"],
                files,
            )
            document["results"].append(result)
            if result["level"]["restored"] is False:
                document["notes"].append(
                    f"kubemend_capture: the level of {capture_plan.SCHEDULER} of {capture['host']}"
                    f" is {result['level']['reason']}"
                )
        self._keep(folder, document)
        return {"hosts": [capture["host"] for capture in document["captures"]]}

    @staticmethod
    def _planned(folder: str) -> bool:
        return (capture_outcome.place(folder) / capture_outcome.PLAN).exists()


def _files(folder: Path, host: str, lines: list[log_merge.Line]) -> dict[str, str]:
    """Write the captured lines, the whole dump, and the relevant lines.

    Only the owner of these files may read them.
    """
    texts = [line.text for line in lines]
    chosen = set(cache_dump.matters(texts)[:MOST_LINES])
    dump = cache_dump.parse(texts)
    contents = {
        "lines": log_merge.render(lines),
        "dump": "".join(escape(line.replace("\t", "    ")) + "\n" for line in dump.lines),
        "matters": log_merge.render(line for line in lines if line.text in chosen),
    }
    paths = {}
    for name, text in contents.items():
        if text:
            path = (
                folder
                / capture_outcome.FOLDER
                / evidence_document.file_name(host, f".scheduler-{name}.txt")
            )
            atomic_file.replace(path, [text])
            paths[name] = str(path)
    return paths
