# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's own clock that tests set, and the runs and the controller that hold its lock."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.state import storage

RUN, OTHER, THIRD = "20261121T090000Z-1a2b3c", "20261121T100000Z-4d5e6f", "20261121T110000Z-aaaaaa"
US = {"machine_id": "c1", "boot_id": "b1", "pid": 42, "started": 1234, "more": "not kept"}


class Clock:
    """The node's own clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.boot = "boot-1"
        self.uptime = 5000.0
        monkeypatch.setattr(storage, "clock", lambda: (self.boot, self.uptime))
