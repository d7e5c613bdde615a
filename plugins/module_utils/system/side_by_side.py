# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of one function side by side, for questions that wait most of their time.

The module threading takes 3 ms to import.
"""

import _thread
import contextlib


def results(function, calls):
    """Return what a function returns for each of these tuples of arguments, in their order.

    Each call bounds its own time. The first error is raised when all calls have ended.
    """
    outcomes = [(None, None)] * len(calls)

    def call(number):
        try:
            outcomes[number] = function(*calls[number]), None
        except Exception as error:  # pylint: disable=broad-except
            outcomes[number] = None, error

    ends = [_started(call, number) for number in range(1, len(calls))]
    if calls:
        call(0)
    for end in ends:
        end.acquire()
    errors = [error for _result, error in outcomes if error is not None]
    if errors:
        raise errors[0]
    return [result for result, _error in outcomes]


def _started(call, number):
    """Start a call in a thread, and return the lock that is free when it has ended."""
    end = _thread.allocate_lock()
    end.acquire()

    def work():
        try:
            call(number)
        finally:
            end.release()

    _thread.start_new_thread(work, ())
    return end


class Bell:
    """Wakes one thread that waits for what other threads do."""

    def __init__(self):
        self.lock = _thread.allocate_lock()
        self.lock.acquire()

    def ring(self):
        """Wake the thread that waits, or the next one that does."""
        with contextlib.suppress(RuntimeError):  # it rings already
            self.lock.release()

    def wait(self, seconds):
        """Wait until it rings, or for so many seconds."""
        self.lock.acquire(timeout=seconds)
