# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts, components and times of a cluster."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import cluster

NOW = 1800000000.0


def asked(world, **off):
    """Every host asked at NOW and answered two seconds later; off: {host.

    Seconds by which its clock is ahead}.
    """
    for name, document in world.documents.items():
        ahead = off.get(name, 0.0)
        document.update(asked_at=NOW, received_at=NOW + 2)
        document["collectors"]["system"]["data"]["clock"] = NOW + 1 + ahead


def judged(world, *codes):
    result = world.judge(faults=frozenset(codes or ("KM526",)))
    verdicts = {item.code: item.verdict for item in result.verdicts}
    verdicts.update({item.code: "not judged" for item in result.not_judged})
    return verdicts["KM526"], list(result.findings)


@pytest.mark.parametrize(
    "change",
    [
        {"asked_at": "x"},
        {"asked_at": True},
        {"received_at": NOW - 5},
        {"received_at": float("nan")},
        {"asked_at": 0},
        {"received_at": 1e300},
    ],
)
def test_times_that_make_no_sense_are_none(world, change):
    asked(world)
    world.documents["w1"].update(change)
    assert cluster.host_of(world.documents["w1"]).clock is None
    assert judged(world)[0] == "not judged"
