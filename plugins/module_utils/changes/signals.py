# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Send a signal to exactly one process, never to another that has its pid since."""

import os
import signal

from ..system.component_process import gone


def terminate(instance):
    """Send SIGTERM to exactly this process."""
    send(instance, signal.SIGTERM)


def send(instance, number):
    """Send a signal to exactly this process, and return whether it was sent.

    Where the kernel supports it, a descriptor of the process is used, so that no process with a
    reused pid gets the signal.
    """
    opened = getattr(os, "pidfd_open", None)
    by_descriptor = getattr(signal, "pidfd_send_signal", None)
    try:
        if not (opened and by_descriptor):
            raise OSError
        fd = opened(instance.pid)
    except OSError:
        if gone(instance):
            return False
        os.kill(instance.pid, number)
        return True
    try:
        if gone(instance):
            return False
        by_descriptor(fd, number)
        return True
    finally:
        os.close(fd)
