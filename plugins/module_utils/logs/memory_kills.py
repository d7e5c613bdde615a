# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which processes the kernel killed for want of memory, and when, as its own log has them.

A kubelet that starts again reads the kernel's log from its beginning and reports each of them
again as a new event: only the kernel's log has the time.
"""

import re

from ..shared.memory_kills import CGROUP, MACHINE, MAX_KILLS
from .repeated_lines import printable

# Before 4.20 a line of its own names the process that the kernel chose, which may not be the one
# that it then kills.
PAIR_SECONDS = 5
# The name of a program may have any byte, a parenthesis too.
_KILLED = re.compile(
    rb"^(?:(Memory cgroup out of memory|Out of memory)[^:\n]{0,60}: )?"
    rb"(Kill|Killed) process (\d{1,10}),? (?:UID \d{1,10}, )?\((.{0,64}?)\)"
    rb"(?:,? UID |,? total-vm:| score |$)"
)
_SCOPES = {b"Memory cgroup out of memory": CGROUP, b"Out of memory": MACHINE}


class MemoryKills:
    """The newest kills of a log, oldest first."""

    def __init__(self):
        self.rows = []
        self._scope, self._since = "", 0.0

    def take(self, moment, text):
        """Add the kill that a line of the kernel tells, if it tells one."""
        match = _KILLED.match(text)
        if match is None:
            return
        reason, verb, pid, program = match.groups()
        if reason is not None:
            self._scope, self._since = _SCOPES[reason], moment
        elif moment - self._since > PAIR_SECONDS:
            self._scope = ""
        if verb == b"Kill":
            return
        self.rows.append(
            {
                "pid": int(pid),
                "program": printable(program.decode("utf-8", "replace")),
                "at": round(moment, 3),
                "scope": self._scope,
            }
        )
        del self.rows[:-MAX_KILLS]
