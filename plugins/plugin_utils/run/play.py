# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The play that a task is in."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase


def play_of(action: ActionBase) -> Any:
    """Return the play of a task, or None."""
    block = action._task
    while block is not None and getattr(block, "_play", None) is None:
        block = getattr(block, "_parent", None)
    return getattr(block, "_play", None)
