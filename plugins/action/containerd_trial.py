# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts the containerd of a host's disk in a trial, and adds what it did to the host's evidence.

Whatever fails is evidence too, never a failed task.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..module_utils.shared import argument_specs
from ..plugin_utils.evidence import contract
from ..plugin_utils.evidence import document as evidence_document
from ..plugin_utils.evidence.answers.node.next_start import NextStart, Place, Trial
from ..plugin_utils.evidence.decode import decode
from ..plugin_utils.transport.node_action import NodeAction, orphaned

COLLECTOR, REFUSED = "next_start", "refused"
STATES = ("served", "ended", "silent", REFUSED)
MOST_LINES, LONGEST = 20, 800


class ActionModule(NodeAction):
    """Ask one host for a trial start, where its evidence has a containerd that runs."""

    ENTRY = "plugins.module_utils.capture.containerd_trial:run"
    SHIP = ("plugins.module_utils.collectors.node",)
    MODULE = "kubemend.remediation.containerd_trial"
    SPEC = argument_specs.CONTAINERD_TRIAL

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Start it, and add the answer to the evidence that the host has in evidence_dir."""
        result, task_vars, args, host = self._begun(tmp, task_vars, self.SPEC)
        path = Path(args["evidence_dir"]) / evidence_document.file_name(host)
        result.update(changed=False, host=host, state="", reason="")
        try:
            document = evidence_document.read(path)
            if not runs_containerd(document):
                return {**result, "skipped": True, "reason": "no containerd with a unit runs there"}
            if self._task.check_mode or orphaned():
                return {**result, "skipped": True, "reason": "check mode starts nothing"}
            trial = self._trial(host, args, task_vars)
            document["collectors"][COLLECTOR]["data"]["trial"] = dataclasses.asdict(trial)
            evidence_document.write(document, args["evidence_dir"])
        except (OSError, evidence_document.EvidenceError, *evidence_document.UNFORESEEN) as error:
            # the diagnosis stands without a trial
            return {**result, "reason": evidence_document.one_line(error)}
        return {**result, "state": trial.state, "reason": trial.reason}

    def _trial(self, host: str, params: dict[str, Any], task_vars: dict[str, Any]) -> Trial:
        """Return what the host says of the trial start."""
        status, reason, answer = self._ask(host, params, task_vars)
        if status != "ok":
            return Trial(state=REFUSED, reason=evidence_document.one_line(reason or status))
        return bounded(answer)


def runs_containerd(document: Mapping[str, Any]) -> bool:
    """Return whether the evidence has a containerd that runs by a unit of its own."""
    record = contract.record(document, COLLECTOR)
    if record.get("status") != "ok" or not isinstance(record.get("data"), dict):
        return False
    answer = contract.answer(document, NextStart)
    names = [program.name for program in answer.programs]
    return answer.runtime_files is not None and "containerd" in names


def bounded(answer: Mapping[str, Any]) -> Trial:
    """Return a node's answer as it may be kept."""
    trial = decode(Trial, answer.get("trial") or {}).answer
    line, ends = evidence_document.one_line, evidence_document.ends
    if trial.state not in STATES:
        return Trial(state=REFUSED, reason="its answer says nothing of a trial start")
    place = None
    if trial.place is not None:
        place = Place(line(trial.place.path), trial.place.line, line(trial.place.key))
    return Trial(
        state=trial.state,
        reason=line(trial.reason),
        path=line(trial.path),
        program=line(trial.program),
        lines=tuple(ends(text, LONGEST) for text in trial.lines[-MOST_LINES:]),
        failures=tuple(ends(text, LONGEST) for text in trial.failures[-MOST_LINES:]),
        cri=trial.cri,
        place=place,
    )
