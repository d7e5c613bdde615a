# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of a step to the controller."""

from ..shared.step_kinds import (
    CHECK_MODE_LEAD,
    DONE,
    FAILED,
    REFUSED,
    ROLLED_BACK,
    SKIPPED,
    UNCHANGED,
)
from ..state import step_record, storage

# How a step ends whose record ended so.
STATE_OF_RECORD = {
    step_record.PROVEN: DONE,
    step_record.ROLLED_BACK: ROLLED_BACK,
    step_record.NOT_DONE: REFUSED,
    step_record.FAILED: FAILED,
}


def answer_of(state, reason, changed=False, observation=None, entry=None, notes=()):
    """Return the answer of a step."""
    return {
        "state": state,
        "reason": storage.one_line(reason or "", 1000),
        "changed": changed,
        "seconds": 0.0,
        "seen": observation or {},
        "journal": entry,
        "notes": list(notes),
    }


def in_check_mode(text=UNCHANGED, would_change=False, notes=()):
    """Return the answer of a step in check mode that nothing refuses."""
    return answer_of(SKIPPED, CHECK_MODE_LEAD + text, would_change, notes=notes)
