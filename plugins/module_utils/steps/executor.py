# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one step of a plan on its node: check, write, verify, or restore the former bytes.

One program does all of it, so that no connection is needed between the write and its verification.
The work is done by a process in a session of its own. It continues when the controller or the
connection is lost.
"""

import time

from ..changes import journal_entry, node_lock, step_claim
from ..shared import step_kinds
from ..shared.errors import PreconditionFailed
from ..shared.step_kinds import (
    FAILED,
    REFUSED,
    RUNNING,
    UNCHANGED,
    kind_of,
)
from ..shared.step_times import budget, limit_of
from ..state import step_record, storage
from ..state.storage import ROOT, ChangeError
from ..system import detached, files
from . import registry
from .answers import STATE_OF_RECORD, answer_of, in_check_mode
from .base import Step
from .handlers import manifest


def run(params):
    """Return {state, reason, changed, seconds, seen, journal, notes}.

    `work` runs in a process that continues when this one ends.

    patience: seconds after which a running step returns the state RUNNING, with its progress as the
        reason. The next call waits for it again.
    """
    try:
        return detached.run(work, params, params.get("patience")) or answer_of(
            FAILED,
            "the program ended on the node without an answer (killed, or out of memory); the next"
            " run finds out what became of the step",
        )
    except detached.AtWork:
        root = params.get("root") or ROOT
        record = step_record.read(params["run_id"], params["step"]["id"], root) or {}
        return answer_of(RUNNING, record.get("progress"), True)


def work(params):
    """Do the step in this process, and return its answer. Never raises."""
    begin = time.monotonic()
    try:
        answer = _Executor(params).run()
    except PreconditionFailed as error:
        answer = answer_of(REFUSED, str(error))
    except ChangeError as error:
        answer = answer_of(FAILED if error.changed else REFUSED, str(error), changed=error.changed)
    except OSError as error:
        answer = answer_of(
            FAILED,
            "the step ended, because {} cannot be used: {}; the next run finds out what became"
            " of it".format(
                files.one_line(error.filename or "a file of this node"), storage.way_out(error)
            ),
        )
    except Exception as error:  # pylint: disable=broad-except
        answer = answer_of(
            FAILED,
            f"the step ended in an unforeseen way ({type(error).__name__}:"
            f" {files.one_line(error)}); the next run finds out what became of it",
        )
    answer["seconds"] = round(time.monotonic() - begin, 2)
    return answer


class _Executor:
    """One step of one run on this node."""

    def __init__(self, params):
        step = params["step"]
        self.params = params
        self.step = step
        self.kind = kind_of(step.get("remedy"))
        self.expect = step.get("expect") or {}
        self.change = step.get("change") or {}
        self.host = step.get("host") or "this host"
        self.component = self.expect.get("component")
        self.root = params.get("root") or ROOT
        self.lock = params.get("lock")
        self.context = journal_entry.StepContext(
            params["run_id"],
            step["id"],
            "{}: {}".format(step.get("remedy"), step.get("target") or self.change.get("path")),
            ", ".join(_listed(step.get("code"))) or "asked for",
            self.root,
            bool(params.get("check")),
            bool(self.lock),
        )
        self.notes = []

    def run(self):
        """Return the answer."""
        if not self.kind.in_plan:
            raise PreconditionFailed(
                "a step of the kind {} is not done on a node by this program".format(
                    files.one_line(self.step.get("remedy"), 40)
                )
            )
        if not self.context.check:
            earlier = self._earlier(
                step_record.read(self.params["run_id"], self.step["id"], self.root)
            )
            if earlier:
                return earlier
            self.renew_lock(strict=True)
        if self.kind.name == step_kinds.RECOVER:
            from . import recovery  # which needs this module

            return recovery.Recovery(self).run()
        if self.kind.name == step_kinds.RESTORE_LEVELS:
            return self._restore_levels()
        if self.kind.through_api:
            return self._through_api()
        if self.kind.handler:
            return self._by_handler()
        return manifest.ChangeComponent(self).run()

    def _through_api(self):
        """Change objects of the API: nothing of this host changes but its journal."""
        handler = registry.handler_of(self.kind.name)
        step = Step(self.context, self.step, self.host, self.params)
        if self.context.check:
            would_change, text = handler.predict(step) or (False, UNCHANGED)
            return in_check_mode(text, would_change, self.notes)
        record, earlier = self.begin(None)
        if earlier:
            return earlier
        done = self.perform(record, lambda: handler.do(step))
        state = step_record.FAILED
        if done["proven"]:
            state = step_record.PROVEN
        elif done.get("rolled_back"):
            state = step_record.ROLLED_BACK
        self.end(record, state, done["reason"], None, done["entry"], changed=done["changed"])
        return answer_of(
            STATE_OF_RECORD.get(state, FAILED),
            done["reason"],
            done["changed"],
            None,
            done["entry"],
            self.notes,
        )

    def begin(self, former):
        """Return (the record of the step, None), or (None, the answer of who began it before)."""
        record = self._record(former)
        earlier = self._earlier(step_claim.claim(self.context, record))
        return record, earlier

    def perform(self, record, change):
        """Return what the change returns; record how the step ended where it raises ChangeError."""
        try:
            return change()
        except ChangeError as error:
            if not error.changed:
                self.end(record, step_record.NOT_DONE, str(error))
            else:  # Who asks for this step again is told this.
                step_claim.tell(
                    self.params["run_id"], self.step["id"], str(error), self.root, "ended_so"
                )
            raise

    def renew_lock(self, strict):
        """Renew the run's lock on this node for as long as the step may last.

        strict: the run must hold the lock now.
        """
        if not self.lock:
            return
        if strict:
            with self.context.exclusive():
                pass
        node_lock.renew(
            self.params["run_id"], max(self.lock.get("seconds") or 0, budget(self.step)), self.root
        )

    def _earlier(self, record):
        """Return the answer of an earlier attempt at this step, or None.

        Ansible may open a connection twice, and then starts the step twice.
        """
        if record is None:
            return None
        patience = self.params.get("patience")
        end = time.monotonic() + (patience or budget(self.step))
        while _is_running(record) and time.monotonic() < end:
            time.sleep(0.5)
            record = step_record.read(self.params["run_id"], self.step["id"], self.root)
        if patience and _is_running(record):
            return answer_of(RUNNING, record.get("progress"), True)
        return answer_of(
            STATE_OF_RECORD.get(record["state"], FAILED),
            _reason_of(record),
            record.get("changed", record["state"] != step_record.NOT_DONE),
            record.get("seen"),
            record.get("journal"),
        )

    def _record(self, former):
        """Return what the next run needs if this program is killed before the step has ended."""
        process = None
        if former:
            process = {
                "pid": former.pid,
                "ticks": former.ticks,
                "argv": files.masked_argv(former.argv),
            }
        return {
            "run_id": self.params["run_id"],
            "step": self.step["id"],
            "component": self.component,
            "host": self.host,
            "remedy": self.step["remedy"],
            "expect": self.expect,
            "limit": limit_of(self.step),
            "path": self.change.get("path"),
            "kind": self.change.get("kind") or "none",
            "guard": self.step.get("guard"),
            "node": self.change.get("node"),
            "cluster_uid": self.change.get("cluster_uid"),
            "allow": self.change.get("allow"),
            "held": self.change.get("held"),
            "former": process,
        }

    def end(self, record, state, reason, observation=None, entry=None, **more):
        """Record how a step ended, if the record can be written."""
        try:
            step_claim.end(
                record["run_id"],
                record["step"],
                state,
                reason,
                self.root,
                seen=observation,
                journal=entry,
                ended_by=self.params["run_id"],
                **more,
            )
        except (OSError, ValueError, ChangeError) as error:
            self.notes.append(f"{storage.one_line(error)}; the next run does that (KM902)")

    def _by_handler(self):
        """Do a step whose handler has its own preconditions and verification."""
        step = Step(self.context, self.step, self.host, self.params)
        try:
            state, reason, observation = registry.handler_of(self.kind.name).run(step)
        except step_claim.Looked:
            return in_check_mode()
        return answer_of(
            STATE_OF_RECORD.get(state, FAILED), reason, state != step_record.NOT_DONE, observation
        )

    def _restore_levels(self):
        """Restore what captures raised from here, where their own service failed or is gone."""
        if self.context.check:
            return in_check_mode()
        allow = (self.step.get("guard") or {}).get("allow") or []
        handler = registry.handler_of(self.kind.name)
        return answer_of(*handler.restore_all(self.params["run_id"], self.root, allow))


def _is_running(record):
    return record["state"] == step_record.AWAITED and step_record.alive(record)


def _reason_of(record):
    """Return why a step ended so; of an interrupted one what was said of it."""
    if record["state"] != step_record.AWAITED:
        return record.get("reason")
    return record.get("ended_so") or (
        "this step was begun at {} and interrupted; the next run finishes or undoes it".format(
            record.get("at")
        )
    )


def _listed(value):
    if isinstance(value, (list, tuple)):
        return [str(item) for item in value]
    return [str(value)] if value else []
