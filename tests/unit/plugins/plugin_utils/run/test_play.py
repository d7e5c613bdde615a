# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The play of a task."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ansible_collections.kubemend.remediation.plugins.plugin_utils.run.play import play_of


def action(task: Any) -> Any:
    return SimpleNamespace(_task=task)


def test_the_play_is_that_of_the_nearest_block() -> None:
    outer = SimpleNamespace(_play="play", _parent=None)
    task = SimpleNamespace(_parent=SimpleNamespace(_play=None, _parent=outer))
    assert play_of(action(task)) == "play"
    assert play_of(action(SimpleNamespace(_parent=None))) is None
