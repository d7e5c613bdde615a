# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the operator sees while one task reads all hosts: a line per host, and the progress.

A task per host has these lines from Ansible's callback and from transport/progress.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from ...run import console
from .. import progress

Tell = Callable[[str], None]


class Lines:
    """Prints one line when a host has ended, and the progress at most every ten seconds."""

    def __init__(
        self,
        total: int,
        tell: Tell = console.tell,
        clock: Callable[[], float] = time.monotonic,
        interval: float = progress.INTERVAL,
    ) -> None:
        self._total, self._tell, self._clock, self._interval = total, tell, clock, interval
        self._read = self._failed = 0
        self._last = clock()

    def ended(self, host: str, status: str, reason: str) -> None:
        """Print how one host has ended."""
        if status == progress.READ:
            self._read += 1
        else:
            self._failed += 1
        text = f"kubemend: {host}: {status}"
        if reason:
            text += f": {reason}"
        self._tell(text)

    def waiting(self, since: Mapping[str, float]) -> None:
        """Print the progress where it is time to; since: {host: moment when it was asked}."""
        now = self._clock()
        if now - self._last < self._interval or not since:
            return
        self._last = now
        waiting = {host: max(now - moment, 0.0) for host, moment in since.items()}
        state = progress.Count(self._read, self._failed, waiting)
        self._tell(progress.sentence(state, self._total))


class Silence(Lines):
    """Prints nothing, where the report does not go to the terminal."""

    def __init__(self) -> None:
        super().__init__(0, tell=lambda _text: None)
