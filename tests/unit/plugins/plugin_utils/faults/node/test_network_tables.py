# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's tables of connections and neighbours: KM535. Tables."""

from __future__ import annotations

import pytest

from tests.unit.support import network_evidence


@pytest.fixture
def answered(world):
    network_evidence.network(world)
    return world


def judged(world):
    result = world.judge(faults={"KM535"})
    verdicts = {item.host: item.verdict for item in result.verdicts}
    found = [item for item in result.findings if item.host == "w1"]
    return verdicts.get("w1", "not judged"), found


@pytest.mark.parametrize(
    ("count", "most", "severity"),
    [
        (1000, 131072, None),
        (117000, 131072, None),
        (118000, 131072, "warning"),
        (131072, 131072, "critical"),
        (None, 131072, None),
        (5, 0, None),
        (5, None, None),
    ],
)
def test_connections(answered, count, most, severity):
    answered.data("w1", "network")["conntrack"] = {"count": count, "max": most}
    _verdict, found = judged(answered)
    assert [item.severity for item in found] == [severity] * bool(severity)
    assert [item.component for item in found] == ["nf_conntrack_max"] * bool(severity)


@pytest.mark.parametrize(
    ("entries", "severity"), [(20, None), (1000, "warning"), (1024, "critical"), (None, None)]
)
def test_neighbours(answered, entries, severity):
    answered.data("w1", "network")["neighbours"][0]["entries"] = entries
    _verdict, found = judged(answered)
    assert [item.severity for item in found] == [severity] * bool(severity)


def test_past_overflows_alone_are_no_fault(answered):
    answered.data("w1", "network")["neighbours"][0]["overflows"] = 7
    assert judged(answered) == ("clear", [])


def test_a_collector_that_failed_is_unknown(answered):
    answered.documents["w1"]["collectors"]["network"] = {"status": "error", "data": None}
    assert judged(answered) == ("unknown", [])


def test_a_machine_without_kubelet(answered):
    answered.documents["w1"]["collectors"]["network"] = {"status": "absent", "data": None}
    assert judged(answered)[0] == "not_applicable"
