# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print which findings came, stayed and went over the runs of ~/.kubemend/runs."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ..plugin_utils.reports import trend as trend_report
from ..plugin_utils.run import console, trend

SPEC = {"newest": {"type": "int", "default": trend.SHOWN}}


class ActionModule(ActionBase):
    """Read earlier reports on the controller only, without a connection to a host."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Print the trend, and return the ids of the runs that were read."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        args = self.validate_argument_spec(argument_spec=SPEC)[1]
        history = trend.read(max(args["newest"], 1))
        console.show(trend_report.render(history, console.width()))
        names = {row.run_id for cluster in history.clusters for row in cluster.rows}
        result.update(changed=False, runs=sorted(names), older=history.older)
        return result
