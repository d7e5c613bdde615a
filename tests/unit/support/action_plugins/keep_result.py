# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a value of a play to a file of the controller, without a module and its Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):  # type: ignore[misc]
    """Write `value` as JSON to `path`; nothing in check mode."""

    _requires_connection = False

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Write the file and return nothing of it."""
        if not self._task.check_mode:
            text = json.dumps(self._task.args["value"])
            Path(self._task.args["path"]).write_text(text, encoding="utf-8")
        return {**super().run(tmp, task_vars), "changed": False}
