# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector package_changes: which packages of kubelet, runtime, kernel and network changed."""

import time

from ...system import package_log
from ..base import Absent, Denied

DAYS = 7


def collect(context):
    """Return {since, items} of the last days, by the logs of dpkg and dnf."""
    context.source = "/var/log/dpkg.log, /var/log/dnf.rpm.log"
    since = time.time() - DAYS * 86400
    rows, problem = package_log.changes(since)
    if problem is not None and not rows:
        if problem == "denied":
            raise Denied(problem)
        raise Absent(problem)
    return {"since": round(since, 3), "items": rows}
