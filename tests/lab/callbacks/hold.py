# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A callback that holds ansible-playbook just before a task, so that a test can kill it there.

LAB_HOLD_AT names the task (NAME#2: the second), and the file LAB_HOLD_FILE shows that it is held.
"""

from __future__ import annotations

import os
import pathlib
import time

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: hold
type: aggregate
short_description: Holds a run before a task.
description: For the lab's tests of interrupted runs.
"""


class CallbackModule(CallbackBase):
    """Called in the main process, before any worker is made for the task."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "hold"
    CALLBACK_NEEDS_ENABLED = True

    seen = 0

    def v2_playbook_on_task_start(self, task, is_conditional):
        name, _mark, time_of = os.environ["LAB_HOLD_AT"].partition("#")
        self.seen += task.get_name().endswith(name)
        if self.seen == int(time_of or 1):
            pathlib.Path(os.environ["LAB_HOLD_FILE"]).write_text("held", encoding="utf-8")
            time.sleep(600)
