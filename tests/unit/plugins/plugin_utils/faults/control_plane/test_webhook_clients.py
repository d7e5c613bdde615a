# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's own pods that a webhook without a server keeps from their work."""

from __future__ import annotations

import pytest

from tests.unit.support import ended_pods, saying_pods, unmade_pods

NODES = [{"groups": [""], "resources": ["nodes"], "operations": ["UPDATE"], "scope": "*"}]
QUOTED = unmade_pods.MESSAGE.replace('"', '\\"')
LINE = f'E0712 08:31:12.114203 20411 cniserver.go:112] "failed" err="{QUOTED}"'
POD = "kube-ovn-cni-x7k2p"


def judged(world):
    codes = {"KM176", "KM550", "KM560"}
    return {item.code: item for item in world.judge(faults=codes, deep=True).findings}


def test_a_pod_that_ends_because_of_it_is_named(world):
    unmade_pods.add_dead_webhook(world, rules=NODES)
    ended_pods.end(world, pod=POD, container="cni-server", line=LINE)
    found = judged(world)
    assert f"({unmade_pods.WEBHOOK})" in found["KM176"].summary
    assert f"kube-system/{POD} on w1 ends again and again" in found["KM176"].summary
    assert "network whose agent it refuses" in found["KM176"].remedy
    assert "Nodes have no namespace" in found["KM176"].remedy
    assert found["KM176"].evidence[1].object == f"kube-system/{POD}"
    assert "KM176" in found["KM550"].because


def test_a_pod_that_repeats_it_is_named(world):
    unmade_pods.add_dead_webhook(world)
    saying_pods.say(world, LINE, pod="kube-proxy-bcdfg", container="kube-proxy")
    found = judged(world)
    assert "kube-system/kube-proxy-bcdfg on w1 repeats the refusal" in found["KM176"].summary
    assert "its own webhook refuses its pods" in found["KM176"].remedy
    assert "Nodes have" not in found["KM176"].remedy
    assert "KM176" in found["KM560"].because


@pytest.mark.parametrize("line", [LINE.replace(unmade_pods.WEBHOOK, "other.example.com"), "panic"])
def test_another_end_is_not_of_that_webhook(world, line):
    unmade_pods.add_dead_webhook(world)
    ended_pods.end(world, pod=POD, container="cni-server", line=line)
    found = judged(world)
    assert POD not in found["KM176"].summary
    assert "KM176" not in found["KM550"].because


def test_a_webhook_that_is_served_keeps_nobody_away(world):
    unmade_pods.add_dead_webhook(world, ready=2)
    ended_pods.end(world, pod=POD, container="cni-server", line=LINE)
    found = judged(world)
    assert "KM176" not in found
    assert "KM176" not in found["KM550"].because
