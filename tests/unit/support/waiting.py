# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How tests wait: for the event itself, with a limit that only a test that hangs ever reaches."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT = 120  # a machine of two cores with ten other things to do is this slow, and no slower


def until(met: Callable[[], object], seconds: float = LIMIT, pause: float = 0.02) -> bool:
    """Wait until it is so, and return whether it is."""
    end = time.monotonic() + seconds
    while not met():
        if time.monotonic() >= end:
            return bool(met())
        time.sleep(pause)
    return True


class Clock:
    """`time` for code under test that waits: it passes as that code sleeps, and not otherwise."""

    def __init__(self) -> None:
        self.now = time.time()

    def time(self) -> float:
        return self.now

    monotonic = time

    def sleep(self, seconds: float) -> None:
        time.sleep(0)  # tests/fault_injection interrupt whoever waits
        self.now += seconds
