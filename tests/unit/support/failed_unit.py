# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units that failed, and the only reason that refuses their start."""

from ansible_collections.kubemend.remediation.plugins.module_utils.shared.start_refusal import (
    refusals,
)

NAME = "kubelet.service"
IDLE = {
    "name": NAME,
    "load_state": "loaded",
    "active_state": "inactive",
    "sub_state": "dead",
    "result": "success",
    "exec_main_status": 0,
}


def failed(status, result="exit-code", **more):
    return dict(
        IDLE,
        active_state="failed",
        sub_state="failed",
        result=result,
        exec_main_status=status,
        **more,
    )


def only_refusal(facts, record=None):
    (found,) = refusals(record or {}, facts)
    return found
