# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The condition NetworkUnavailable of a Node that is ready: KM514."""

from __future__ import annotations

import pytest

from tests.unit.support.api_nodes import judged, node, silent

LONG_AGO, JUST_NOW = "2027-01-15T07:40:00Z", "2027-01-15T07:55:00Z"


def of_network(reason, since, message=None):
    return {
        "type": "NetworkUnavailable",
        "status": "True",
        "reason": reason,
        "message": message,
        "since": since,
    }


@pytest.mark.parametrize(
    ("reason", "since", "words"),
    [
        ("NoRouteCreated", LONG_AGO, "--configure-cloud-routes=false"),
        ("CalicoIsDown", LONG_AGO, "network plugin"),
        (None, LONG_AGO, "network plugin"),
        ("NoRouteCreated", JUST_NOW, None),  # its pods have just started
        ("NoRouteCreated", None, None),
    ],
)
def test_a_node_whose_network_is_said_to_be_unavailable(world, reason, since, words):
    item = node(world, "w1")
    item["conditions"] = [*item["conditions"], of_network(reason, since, "no route")]
    verdicts, found = judged(world, "KM514")
    assert verdicts == {"KM514": "present" if words else "clear"}
    for hit in found:
        assert (hit.host, hit.node, hit.severity) == ("w1", "w1", "warning")
        assert (reason or "no route") in hit.summary
        assert words in hit.remedy
        assert [proof.object for proof in hit.evidence] == ["Node w1"]


def test_the_network_of_a_node_that_is_not_ready_follows_from_that(world):
    silent(world, "w1")
    node(world, "w1")["conditions"].append(of_network("CalicoIsDown", LONG_AGO))
    assert judged(world, "KM514") == ({"KM514": "clear"}, [])
