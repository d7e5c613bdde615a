# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the handler of a kind of step by the name in its row, also in packages above this one."""

from ..shared.step_kinds import KINDS

# What a recovery calls last, so that no leftover of a log capture stays: (run_id, root).
SWEEP = "capture.step_handlers:sweep"


def handler_of(name):
    """Return the handler of a kind of step, or None where its row names none.

    The handler is imported on demand, because most nodes never need one. KeyError is raised for an
    unknown kind.
    """
    place = KINDS[name].handler
    return named(place)() if place else None


def named(place):
    """Return the object that `package.module:name` below module_utils means."""
    module, _colon, name = place.partition(":")
    package = __name__.rsplit(".", 2)[0]
    return getattr(__import__(f"{package}.{module}", fromlist=[name]), name)
