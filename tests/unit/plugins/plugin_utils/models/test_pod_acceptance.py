# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a kubelet runs by now, against what it rejected."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.devices import Node, Pod
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.pod_acceptance import (
    accepted_since,
    served_again,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    admission_message,
)

NOW = datetime(2027, 1, 15, 8, tzinfo=timezone.utc)
LATER = NOW + timedelta(seconds=60)
POD = Pod(
    "n/a",
    "u-a",
    "ReplicaSet/a",
    "u-o",
    "s",
    False,
    {"cpu": 1000},
    NOW,
    None,
    None,
    None,
    refusal=admission_message.Refusal("cpu"),
    rejected_at=NOW,
    qos="Guaranteed",
)
RUNS = replace(POD, name="n/b", uid="u-b", rejected_at=None, started=LATER, runs=True)


def node(*pods):
    return Node("w1", None, {"v/card": (1, 1)}, pods=list(pods))


@pytest.mark.parametrize(
    ("changes", "accepted"),
    [
        ({}, True),
        ({"started": NOW}, False),
        ({"started": None}, False),
        ({"runs": False}, False),
        ({"deleted": LATER}, False),
        ({"owner_uid": "u-x"}, True),
        ({"owner_uid": "u-x", "qos": "Burstable"}, False),
        ({"owner_uid": "u-x", "requests": {"cpu": 500}}, False),
    ],
)
def test_only_a_later_pod_that_asks_for_no_less_counts(changes, accepted):
    assert accepted_since(node(replace(RUNS, **changes)), POD) is accepted


def test_a_rejection_without_a_known_kind_needs_a_pod_of_its_owner():
    refused = replace(POD, refusal=admission_message.Refusal("other"))
    assert accepted_since(node(RUNS), refused)
    assert not accepted_since(node(replace(RUNS, owner_uid="u-x")), refused)


def test_devices_that_no_kubelet_missed_are_not_served_again():
    refused = replace(
        POD, refusal=admission_message.Refusal("unhealthy", "v/card"), requests={"v/card": 1}
    )
    assert not served_again(node(), refused)
