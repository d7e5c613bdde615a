# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The functions of the call trace that the kernel prints below a lockup, a hung task or an oops.

A function of a module has its name in brackets, and each BPF program is a function of its own:
bpf_prog_, a digest and its name. Lines with a question mark do not count: they are leftovers on the
stack.
"""

import re

MAX_CALLS, MAX_LINES = 24, 120
SECONDS = 3.0  # within which one trace is printed
_NAME = (
    rb"([A-Za-z_][\w.]{1,100})\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8}(?: \[([\w-]{1,60})[^\]]{0,60}\])?"
)
_ADDRESS = rb"(?:\[<[0-9a-f]{8,16}>\] {1,3}){0,2}"
_CALL = re.compile(rb"^(?:RIP: [0-9a-f]{4}:|(?:pc|lr) : | {0,4})" + _ADDRESS + _NAME)
_END = re.compile(rb"^---\[ end trace")


class CallTraces:
    """Give a row the trace that follows its line."""

    def __init__(self):
        self._row, self._until, self._left, self._is_new = None, 0.0, 0, True

    def begin(self, row, moment):
        """Expect the trace of a line of this row."""
        self._row, self._until = row, moment + SECONDS
        self._left, self._is_new = MAX_LINES, True

    def take(self, moment, text):
        """Add the function that a line names, if it is one of the trace."""
        if self._row is None:
            return
        self._left -= 1
        if self._left < 0 or moment > self._until or _END.match(text):
            self._row = None
            return
        match = _CALL.match(text)
        if match is None:
            return
        if self._is_new:  # a trace of an earlier line stays where the newest has none
            self._row["trace"], self._is_new = [], False
        calls = self._row["trace"]
        name = b" ".join(part for part in (match.group(1), match.group(2)) if part)
        call = name.decode("ascii")
        if len(calls) < MAX_CALLS and call not in calls:
            calls.append(call)
