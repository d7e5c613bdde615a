# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods are those of a network plugin, and what a kernel lacks for Cilium."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.engine import (
    evaluate_clusters,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import network_agents
from tests.unit.support import waiting_pods


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (None, []),
        ({}, []),
        ({"NET_CLS_ACT": "m", "BPF": "y"}, []),
        ({"NET_CLS_ACT": None}, []),
        ({"NET_CLS_ACT": "n", "UNKNOWN": "n"}, ["CONFIG_NET_CLS_ACT"]),
    ],
)
def test_options_that_are_off(options, names):
    assert network_agents.switched_off(options) == names


@pytest.mark.parametrize(
    ("owner", "state", "clause", "command"),
    [
        ("DaemonSet/weave-net", "CrashLoopBackOff", "its container ? ends", "--all-containers"),
        ("DaemonSet/kube-flannel-ds", "ContainerCreating", None, None),
        ("DaemonSet/kube-proxy", "CrashLoopBackOff", None, None),
        ("ReplicaSet/cilium-operator", "CrashLoopBackOff", None, None),
    ],
)
def test_only_a_plugin_that_fails_is_named(world, owner, state, clause, command):
    waiting_pods.wait(world, "w1", owner, 1, state)
    documents = [*world.documents.values(), world.api]
    cluster = evaluate_clusters(documents, faults=frozenset())[1][0]
    agent = network_agents.failing(cluster, "w1", None)
    assert (agent is not None) is (clause is not None)
    if agent is not None:
        assert clause in agent.clause
        assert command in agent.command
