# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A child process of a test, which never goes on as a second test run."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable


def fork(action: Callable[[], object]) -> int:
    """Run the action in a child and return its pid. The exit status is 0, or 70 on an error."""
    pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        action()
        status = 0
    except BaseException:  # pylint: disable=broad-except  # whatever it is, pytest may not see it
        traceback.print_exc()
    finally:
        os._exit(status)
