# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limits of a host, as its evidence has them."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    limits as node_limits,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    limits as model_limits,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.limits import NR_OPEN
from tests.unit.support.facts import facts
from tests.unit.support.fake_limits import (
    LIMITS_D,
    Node,
)


@pytest.fixture
def node(world):
    return Node(world)


def test_whose_ceiling_it_is_and_where_the_lines_are(node):
    node.limits_d("# app\n* hard nofile 2000000\n@dba - nofile 3000000\nroot hard nofile 4096\n")
    found = node.finding("KM406")
    facts(found.summary, "*", "@dba", "2000000", "1048576 (fs.nr_open)")
    assert found.severity == "critical"
    assert found.risk == 1
    assert node.said("KM406").splitlines() == [
        f"{LIMITS_D}:2 * hard nofile 2000000",
        f"{LIMITS_D}:3 @dba - nofile 3000000",
        "/etc/pam.d/sshd:3 session required pam_limits.so",
    ]
    facts(found.remedy, "1048576", "the plan", "second login")
    node.seen["init"].update(cap_sys_resource=False, nofile=[1024, 4096])
    assert (
        "is above 4096 (the hard limit of PID 1, which has no CAP_SYS_RESOURCE)"
        in node.finding("KM406").summary
    )
    node.seen["kernel"][NR_OPEN] = "2048"  # bounds everybody
    assert "is above 2048 (fs.nr_open)" in node.finding("KM406").summary


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (7, 7),
        (0, 0),
        (-1, -1),
        (-2, None),
        (True, None),
        ("7", None),
        (7.0, None),
        (1 << 64, None),
        (None, None),
    ],
)
def test_a_number_of_a_node(value, number):
    answer = decode.decode(node_limits.Limits, {"threads": value}).answer
    assert model_limits.number(answer.threads) == number
