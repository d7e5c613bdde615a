# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was interrupted on a node, ended.

Every open change by its bytes, every unproven step by its proof or its way back.
"""

import time

from ..state import journal
from ..state import step_record as proof
from ..state.storage import ChangeError
from . import (
    executor as apply_step,
)
from . import (
    health_probe as prove,
)
from . import (
    interrupted_changes as recover,
)
from . import (
    preconditions as guard,
)
from .executor import (
    ALONE,
    DONE,
    FAILED,
    KUBELET,
    MANAGERS,
    REFUSED,
    REVERT,
    SERVICE,
    SKIPPED,
    UNCHANGED,
    answer_of,
    module_of,
)
from .handlers import api_steps as apply_api


class Recovery:
    """The step `recover`, on behalf of the executor that guards, records and proves it."""

    def __init__(self, executor):
        self.executor, self.step, self.params, self.root = (
            executor,
            executor.step,
            executor.params,
            executor.root,
        )

    def run(self):
        """End what was interrupted: every open change by its bytes, every unproven step by its
        proof or its way back.
        """
        waiting = self._at_work()
        end = time.monotonic() + apply_step.BACK_OFF
        while waiting and time.monotonic() < end:
            time.sleep(1)
            waiting = self._at_work()
        if waiting:
            raise guard.Refused(
                "run {} is still at work on {} (step {}); let it end and run again".format(
                    waiting[0]["run_id"], self.executor.host, waiting[0]["step"]
                )
            )
        ended = recover.recover_all(self.executor.as_step, self.step.get("only_run"))
        told = [
            "{} of {}: {}".format(
                one["path"],
                one["run_id"],
                one["result"] or "still open, for {}".format(one["error"]),
            )
            for one in ended
        ]
        if self.executor.as_step.check:
            return answer_of(SKIPPED, "check mode: " + UNCHANGED)
        from ..capture import level_window as log_level

        log_level.sweep(self.params["run_id"], self.root)
        worst, changed = (
            DONE if all(one["result"] for one in ended) else FAILED,
            any(one["result"] for one in ended),
        )
        for record in self._unproven():
            answer = self._resumed(record)
            changed = changed or answer["changed"]
            told.append(
                "step {} of {}: {}{}".format(
                    record["step"],
                    record["run_id"],
                    answer["state"],
                    answer["reason"] and " ({})".format(answer["reason"]),
                )
            )
            if answer["state"] in (FAILED, REFUSED):
                worst = FAILED
        return answer_of(
            worst, "; ".join(told) or "nothing was interrupted", changed, notes=self.executor.notes
        )

    def _unproven(self):
        only = self.step.get("only_run")
        return [record for record in proof.unproven(self.root) if only in (None, record["run_id"])]

    def _at_work(self):
        return [record for record in self._unproven() if record["running"]]

    def _resumed(self, record):
        """The answer of one record. What stands in its way now leaves it open, and none of the
        others.
        """
        try:
            return self._resumed_one(record)
        except (guard.Refused, ChangeError) as error:
            return answer_of(REFUSED, str(error), getattr(error, "changed", False))

    def _resumed_one(self, record):
        """One step that was begun by a program that is gone."""
        if not record.get("error") and record.get("remedy") in apply_api.SECONDS:
            state, reason = apply_api.resumed(record, self.params)
            if state:
                self.executor.end(record, state, reason)
            return answer_of(DONE if state else FAILED, reason)
        if not record.get("error") and record.get("remedy") in ALONE + SERVICE:
            state, reason = module_of(record["remedy"]).resumed(record, self.executor.as_step)
            if state:  # else it stays open, and the run after this one tries again
                self.executor.end(record, state, reason)
            return answer_of(
                FAILED if state in (None, proof.FAILED) else DONE,
                reason,
                state in (proof.PROVEN, proof.ROLLED_BACK),
            )
        if record.get("error") or not record.get("component"):
            return answer_of(FAILED, "its record cannot be read ({})".format(record.get("error")))
        if record.get("remedy") in (KUBELET, *MANAGERS):
            return self._kubelet_resumed(record)
        if record.get("remedy") == REVERT:
            self.executor.end(
                record, proof.FAILED, "interrupted before {} was proven".format(record["component"])
            )
            return answer_of(
                DONE, "a revert was interrupted; run it again to see what remains of it"
            )
        item = record["entry"]
        result = item["end"]["result"] if item and item["end"] else None
        if record["kind"] != "none" and result != journal.COMMITTED:
            self.executor.end(
                record,
                proof.NOT_DONE,
                (
                    "interrupted before it was written"
                    if result != journal.SUPERSEDED
                    else "somebody else wrote"
                ),
            )
            return answer_of(
                DONE,
                (
                    "nothing of it was written"
                    if result != journal.SUPERSEDED
                    else "somebody else's bytes were left"
                ),
            )
        entry = "{}/{}".format(record["run_id"], item["entry"]) if item else None
        if entry and self._undone(entry):
            self.executor.end(
                record,
                proof.ROLLED_BACK,
                "interrupted after the former bytes were put back",
                None,
                entry,
            )
            return answer_of(DONE, "its former bytes were back already")
        self.executor.credentials = guard.resume(
            dict(
                self.step,
                host=self.executor.host,
                guard=self.step.get("guard") or record.get("guard"),
            ),
            self.params,
        )
        known = record["former"] or {}
        former = next(
            (
                one
                for one in prove.instances(record["component"])
                if one.identity == (known.get("pid"), known.get("ticks"))
            ),
            None,
        )
        return self.executor.proved(record, {"entry": entry}, former, time.monotonic())

    def _kubelet_resumed(self, record):
        """A kubelet that was being restarted, or its state reset."""
        if record["remedy"] == KUBELET:
            from ..capture import kubelet_level

            state, reason = kubelet_level.resumed(
                record, self.executor.as_step, (self.step.get("guard") or {}).get("allow") or []
            )
        else:
            state, reason = module_of(record["remedy"]).resumed(record, self.executor.as_step)
        if state:
            self.executor.end(record, state, reason)
        return answer_of(FAILED if state in (None, proof.FAILED) else DONE, reason, True)

    def _undone(self, entry):
        run_ids = journal.run_ids(self.root)
        return any(
            item["intent"]
            and item["intent"]["reverts"] == entry
            and item["end"]
            and item["end"]["result"] == journal.COMMITTED
            for run_id in run_ids
            if run_id >= entry.partition("/")[0]
            for item in journal.read_run(run_id, self.root)
        )
