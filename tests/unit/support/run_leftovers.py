# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence of what an earlier run left: a cordon, and a log level that is still raised."""

from __future__ import annotations

RUN = "20261121T090000Z-1a2b3c"
CORDON = {"run": RUN, "reason": "drain", "at": "2026-11-21T09:00:00Z", "held": False}


def cordon_worker(world, **more):
    world.api["collectors"]["nodes"]["data"]["items"].append(
        {
            "name": "w1",
            "devices": {},
            "addresses": [],
            "ready": "True",
            "unschedulable": True,
            "cordon": {**CORDON, **more},
        }
    )


def raised_level(overdue, **more):
    return {
        "run_id": RUN,
        "entry": "001-raise",
        "path": "log level of kubelet of w1",
        "real": "level:kubelet/w1",
        "level": "6",
        "former": "0",
        "at": "2026-11-21T09:00:00Z",
        "overdue": overdue,
        **more,
    }
