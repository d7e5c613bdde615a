# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the unit tests rely on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest

from tests.unit.support import child_process


def fail() -> None:
    raise RuntimeError("of the child")


def leave() -> None:
    sys.exit(3)


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("action", "status"), [(int, 0), (fail, 70), (leave, 70), (interrupt, 70)])
def test_a_child_ends_by_itself(action: Callable[[], object], status: int) -> None:
    parent = os.getpid()
    try:
        pid = child_process.fork(action)
        ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        if os.getpid() != parent:
            os._exit(99)  # the child came back: it may not go on as a second test run
    assert ended == status
