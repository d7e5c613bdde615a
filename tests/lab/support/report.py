# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a test may expect of a report on a machine of any speed."""

from __future__ import annotations

# Errors that a component repeats for four minutes.
REPEATED = ("KM118", "KM529")
# Restarts and events within the last hour, and an etcd that a busy machine makes slow: no incident
# of the lab makes them.
OF_MACHINE = ("KM117", "KM144", "KM563")
# Faults of what was within the last minutes or the last hour: the next audit may differ.
OF_THE_MOMENT = ("KM114", *OF_MACHINE, *REPEATED)


def findings(report: dict) -> list[dict]:
    """Return the findings without those that depend on how long a test takes.

    Earlier tests and a busy machine make components restart. Where an incident lasts for minutes,
    components repeat what it makes them say; alone, that is a finding.
    """
    items = [
        item
        for item in report["findings"]
        if (item["code"], item.get("severity")) != ("KM114", "warning")
        and item["code"] not in OF_MACHINE
    ]
    others = [item for item in items if item["code"] not in REPEATED]
    return others or items
