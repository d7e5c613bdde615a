# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The common frame of the handlers of all kinds of steps.

A step is checked, recorded and begun once. Then it writes, verifies what it wrote, and rolls it
back where the verification fails. Each end is recorded. A handler defines these parts for its kind.
"""

from ..changes import step_claim
from ..shared.errors import PreconditionFailed
from ..shared.step_kinds import kind_of
from ..state import step_record
from ..state.storage import ChangeError

BEGUN_BEFORE = "it was begun before (a connection that was made twice)"


class Step:
    """One step of a plan on this node.

    context: the run and the plan's step on whose behalf something is changed.
    plan: the step as the plan has it.
    params: the parameters of the program.
    """

    def __init__(self, context, plan, host, params=None):
        self.context = context
        self.plan = plan
        self.host = host
        self.params = params or {}
        self.kind = kind_of(plan["remedy"])
        self.change = plan["change"]
        self.path = self.change.get("path")
        self.expect = plan.get("expect") or {}
        self.guard = plan.get("guard") or {}

    @property
    def allow(self):
        """What the operator allowed, as words of kubemend_allow."""
        return self.guard.get("allow") or []


def outcome(context, state, reason, observation=None):
    """Record how a step ended, and return (state of its record, reason, what was seen)."""
    return step_claim.ended(context, state, reason, observation)


def state_after(error):
    """Return how a record ends whose write raised this error: failed where bytes were changed."""
    if getattr(error, "changed", False):
        return step_record.FAILED
    return step_record.NOT_DONE


class StepHandler:
    """One kind of step: what must hold before it, what it does, and how it ends.

    Subclasses define check, and either apply, verify and roll_back, or perform.
    """

    def run(self, step):
        """Do the step once, and return (state of its record, reason, what was seen)."""
        try:
            facts = self.check(step)
            record = self.record_of(step, facts)
            if step_claim.claim(step.context, record) is not None:
                return step_record.FAILED, BEGUN_BEFORE, {}
        except (PreconditionFailed, ChangeError) as error:
            return self.refuse(step, error)
        return self.perform(step, record)

    def check(self, step):
        """Return what the record holds besides; raise PreconditionFailed or ChangeError."""
        raise NotImplementedError

    def record_of(self, step, facts):
        """Return what the next run needs if this program is killed before the step has ended."""
        return dict(
            {
                "component": None,
                "host": step.host,
                "remedy": step.kind.name,
                "limit": step.kind.seconds,
                "kind": "none",
                "path": step.path,
                "expect": {},
                "guard": step.plan.get("guard"),
                "former": None,
            },
            **facts,
        )

    def refuse(self, _step, error):
        """Return the result of a step whose preconditions do not hold."""
        return step_record.NOT_DONE, str(error), {}

    def perform(self, step, record):
        """Write, then complete what is written; return the result."""
        try:
            applied = self.apply(step, record)
        except (ChangeError, OSError) as error:
            return outcome(step.context, state_after(error), self.explain_unwritten(step, error))
        return self.complete(step, record, applied)

    def complete(self, step, record, applied):
        """Verify what was written, and roll it back where it has no effect."""
        reason = self.verify(step, record)
        if reason is None:
            return outcome(
                step.context, step_record.PROVEN, None, self.describe(step, record, applied)
            )
        state, reason, observation = self.roll_back(step, record, applied, reason)
        return outcome(step.context, state, reason, observation)

    def apply(self, step, record):
        """Write, and return what a rollback needs; raise ChangeError or OSError."""
        raise NotImplementedError

    def explain_unwritten(self, step, error):
        """Return the sentence about a write that failed."""
        raise NotImplementedError

    def verify(self, _step, _record):
        """Return why the step has no effect, or None.

        A written file needs no further verification.
        """
        return

    def describe(self, _step, _record, _applied):
        """Return what was seen of a step that is verified."""
        return

    def roll_back(self, _step, _record, _applied, reason):
        """Undo what apply did; return (state of the record, reason, what was seen)."""
        return step_record.FAILED, reason, None

    def recover(self, record, context=None, params=None):
        """End a step that was interrupted: (state of its record, reason).

        The state is None where the step stays open and the next run tries again.
        """
        raise NotImplementedError
