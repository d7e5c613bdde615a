# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a step may take on its node, in seconds."""

from .step_kinds import DRAIN, RECOVER, RESTORE_LEVELS, kind_of

LIMIT = 120
# The kubelet waits up to 5 minutes before it starts a container again that ended, also when a
# manifest comes back.
BACK_OFF = 330
PRECONDITIONS = 60
# Longer than the period of the kubelet's inspection of its whole directory, which is 20.
WATCHED = 22.0
CHECK_MODE = 120
DRAIN_TIMEOUT = 900


def limit_of(step):
    """Return the seconds in which the step must be verified."""
    limit = step.get("limit") or LIMIT
    if (step.get("expect") or {}).get("restart") == "signal":
        return max(limit, BACK_OFF)
    return limit


def api_seconds_of(step):
    """Return the seconds after which a step through the API has ended, whatever happens."""
    seconds = kind_of(step["remedy"]).seconds
    if step["remedy"] != DRAIN:
        return seconds
    return seconds + ((step.get("change") or {}).get("timeout") or DRAIN_TIMEOUT)


def budget(step):
    """Return the seconds after which the step has ended in any case.

    They cover the preconditions, the verification, and a rollback with its own verification.
    """
    name = step.get("remedy")
    kind = kind_of(name)
    # what was interrupted may have been of any kind, and several
    if name == RECOVER:
        return PRECONDITIONS + 4 * BACK_OFF
    if name == RESTORE_LEVELS:
        return max(2 * PRECONDITIONS, step.get("limit") or 0)
    if kind.through_api:
        return PRECONDITIONS + api_seconds_of(step)
    if kind.settles_at_once:
        return PRECONDITIONS + (step.get("limit") or LIMIT)
    return PRECONDITIONS + 2 * max(limit_of(step), BACK_OFF) + WATCHED
