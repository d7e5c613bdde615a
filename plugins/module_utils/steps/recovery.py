# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends what was interrupted on a node.

The present bytes decide how an open change ends. An unverified step is verified or rolled back.
"""

import time

from ..shared import step_kinds, step_times
from ..shared.errors import PreconditionFailed
from ..shared.step_kinds import DONE, FAILED, REFUSED, kind_of
from ..state import journal, step_record
from ..state.storage import ChangeError
from . import interrupted_changes, registry
from .answers import answer_of, in_check_mode
from .handlers import manifest


class Recovery:
    """The step `recover`, on behalf of the executor that records and verifies it."""

    def __init__(self, executor):
        self.executor = executor
        self.step = executor.step
        self.params = executor.params
        self.root = executor.root

    def run(self):
        """End what was interrupted, and return the answer of the step."""
        self._wait_for_running()
        changes = interrupted_changes.recover_all(self.executor.context, self.step.get("only_run"))
        if self.executor.context.check:
            return in_check_mode()
        registry.named(registry.SWEEP)(self.params["run_id"], self.root)
        state = DONE if all(change["result"] for change in changes) else FAILED
        changed = any(change["result"] for change in changes)
        sentences = [_sentence_of_change(change) for change in changes]
        for record in self._unproven():
            answer = self._resumed(record)
            changed = changed or answer["changed"]
            sentences.append(_sentence_of_step(record, answer))
            if answer["state"] in (FAILED, REFUSED):
                state = FAILED
        reason = "; ".join(sentences) or "nothing was interrupted"
        return answer_of(state, reason, changed, notes=self.executor.notes)

    def _wait_for_running(self):
        """Wait for steps that still run; raise PreconditionFailed where one does not end."""
        end = time.monotonic() + step_times.BACK_OFF
        running = self._running()
        while running and time.monotonic() < end:
            time.sleep(1)
            running = self._running()
        if running:
            raise PreconditionFailed(
                "run {} is still at work on {} (step {}); let it end and run again".format(
                    running[0]["run_id"], self.executor.host, running[0]["step"]
                )
            )

    def _unproven(self):
        only = self.step.get("only_run")
        records = step_record.unproven(self.root)
        return [record for record in records if only in (None, record["run_id"])]

    def _running(self):
        return [record for record in self._unproven() if record["running"]]

    def _resumed(self, record):
        """Return the answer of one record. A refusal leaves it open, and none of the others."""
        try:
            return self._resumed_one(record)
        except (PreconditionFailed, ChangeError) as error:
            return answer_of(REFUSED, str(error), getattr(error, "changed", False))

    def _resumed_one(self, record):
        """End one step whose program is gone."""
        kind = kind_of(record.get("remedy"))
        needs_component = _is_on_kubelet(kind) or not kind.handler
        if record.get("error") or (needs_component and not record.get("component")):
            return answer_of(FAILED, "its record cannot be read ({})".format(record.get("error")))
        if kind.handler:
            return self._resumed_by_handler(record, kind)
        if record.get("remedy") == step_kinds.REVERT:
            self.executor.end(
                record,
                step_record.FAILED,
                "interrupted before {} was proven".format(record["component"]),
            )
            return answer_of(
                DONE, "a revert was interrupted; run it again to see what remains of it"
            )
        return self._resumed_by_manifest(record)

    def _resumed_by_handler(self, record, kind):
        """End a step by its handler; without a state it stays open for the next run."""
        state, reason = registry.handler_of(kind.name).recover(
            record, self.executor.context, self.params
        )
        if state:
            self.executor.end(record, state, reason)
        if kind.through_api:
            return answer_of(DONE if state else FAILED, reason)
        changed = state in (step_record.PROVEN, step_record.ROLLED_BACK) or _is_on_kubelet(kind)
        answer = FAILED if state in (None, step_record.FAILED) else DONE
        return answer_of(answer, reason, changed)

    def _resumed_by_manifest(self, record):
        """Verify the component of a step whose file was written, or restore the file."""
        item = record["entry"]
        result = item["end"]["result"] if item and item["end"] else None
        if record["kind"] != "none" and result != journal.COMMITTED:
            return self._unwritten(record, result)
        entry = "{}/{}".format(record["run_id"], item["entry"]) if item else None
        if entry and self._is_undone(entry):
            self.executor.end(
                record,
                step_record.ROLLED_BACK,
                "interrupted after the former bytes were put back",
                None,
                entry,
            )
            return answer_of(DONE, "its former bytes were back already")
        return manifest.ChangeComponent(self.executor).resume(record, entry)

    def _unwritten(self, record, result):
        """Record that the file was not written, or that foreign bytes stay."""
        reason, answer = "interrupted before it was written", "nothing of it was written"
        if result == journal.SUPERSEDED:
            reason, answer = "something else wrote", "other bytes were left"
        self.executor.end(record, step_record.NOT_DONE, reason)
        return answer_of(DONE, answer)

    def _is_undone(self, entry):
        """Return whether a later entry restored what this one changed."""
        first = entry.partition("/")[0]
        later = [run_id for run_id in journal.run_ids(self.root) if run_id >= first]
        return any(
            _reverts(item, entry)
            for run_id in later
            for item in journal.read_run(run_id, self.root)
        )


def _is_on_kubelet(kind):
    """Return whether the record of a step is of the kubelet, which was stopped or restarted."""
    return kind.check_mode == step_kinds.MANAGERS or kind.name == step_kinds.RAISE_KUBELET


def _reverts(item, entry):
    if not item["intent"] or not item["end"]:
        return False
    return item["intent"]["reverts"] == entry and item["end"]["result"] == journal.COMMITTED


def _sentence_of_change(change):
    result = change["result"] or "still open, for {}".format(change["error"])
    return "{} of {}: {}".format(change["path"], change["run_id"], result)


def _sentence_of_step(record, answer):
    sentence = "step {} of {}: {}".format(record["step"], record["run_id"], answer["state"])
    if answer["reason"]:
        sentence += " ({})".format(answer["reason"])
    return sentence
