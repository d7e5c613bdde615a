# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes a pod may be placed on by its node affinity."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi import (
    node_affinity,
)

LABELS = {"m1": {"zone": "a", "size": "3"}, "w1": {"zone": "b"}, "w2": {"size": "9"}}


def chosen(selector=None, *terms):
    spec = {"nodeSelector": selector}
    if terms:
        spec["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}
            }
        }
    return spec


def by(key, operator, *values):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("spec", "off"),
    [
        ({}, []),
        (chosen({"zone": "a"}), ["w1", "w2"]),
        (chosen({"zone": "c"}), ["m1", "w1", "w2"]),
        (chosen({}, by("zone", "In", "a", "b")), ["w2"]),
        (chosen({}, by("zone", "NotIn", "a")), ["m1"]),
        (chosen({}, by("zone", "Exists")), ["w2"]),
        (chosen({}, by("zone", "DoesNotExist")), ["m1", "w1"]),
        (chosen({}, by("size", "Gt", "5")), ["m1", "w1"]),
        (chosen({}, by("size", "Lt", "5")), ["w1", "w2"]),
        (chosen({}, by("size", "Lt", "x")), ["m1", "w1", "w2"]),
        (chosen({}, by("zone", "In", "a"), by("zone", "In", "b")), ["w2"]),
        (chosen({}, {}), ["m1", "w1", "w2"]),
        (chosen({}, by("zone", "Near", "a")), None),
        (chosen({}, by("zone", "Near", "a"), by("zone", "Exists")), None),
        (
            chosen(
                {}, {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["w1"]}]}
            ),
            ["m1", "w2"],
        ),
        (chosen({"zone": "a"}, by("size", "Exists")), ["w1", "w2"]),
    ],
)
def test_which_nodes_a_pod_does_not_ask_for(spec, off):
    assert node_affinity.Matcher(LABELS).left_out(spec) == off
    assert node_affinity.Matcher(None).left_out(spec) is None


def test_of_many_nodes_only_the_pod_that_was_asked_for_is_compared():
    matcher = node_affinity.Matcher(
        {f"w{number}": {} for number in range(node_affinity.MAX_NODES + 1)}
    )
    assert matcher.left_out(chosen({"a": "b"})) is None
    assert len(matcher.left_out(chosen({"a": "b"}), True)) == node_affinity.MAX_NODES + 1
