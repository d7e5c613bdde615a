# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pods that a kubelet rejected, and the pods of their nodes."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    rejected,
)
from tests.unit.support import answers

OVERSUBSCRIBED = answers.recorded("v1.36.3-cpu-oversubscribed", "m1.cluster", "rejected")
PLUGIN_GONE = answers.recorded("v1.18.4-gpu-plugin-gone", "m1.cluster", "rejected")


def test_pods_that_two_schedulers_put_on_one_node():
    answer = answers.typed(rejected.Rejected, OVERSUBSCRIBED)
    assert answer.total == len(answer.items) == answer.nodes["w1"].rejected == 2
    assert {(item.reason, item.node, item.wanted) for item in answer.items} == {
        ("OutOfcpu", "w1", 3)
    }
    assert [pod.compute["cpu"] for pod in answer.nodes["w1"].pods] == [800, 800]
    assert answer.nodes["w1"].plugins == ()


def test_a_device_plugin_that_does_not_start():
    (plugin,) = answers.typed(rejected.Rejected, PLUGIN_GONE).nodes["w1"].plugins
    assert (plugin.namespace, plugin.name) == ("lab-jobs-d2c3e3", "plugin")
    (container,) = plugin.containers
    assert (container.ready, container.restarts, container.exit_code) == (False, 1, 1)
    assert (container.waiting, container.message) == ("CrashLoopBackOff", "too many open files\n")


def test_a_container_whose_readiness_is_a_text():
    place = ("nodes", "w1", "plugins", 0, "containers", 0, "ready")
    decoded = answers.changed(rejected.Rejected, PLUGIN_GONE, *place, value="false")
    assert decoded.malformed == ("nodes.w1.plugins[0].containers[0].ready",)
    (container,) = decoded.answer.nodes["w1"].plugins[0].containers
    assert (container.ready, container.exit_code) == (None, 1)


def test_nodes_are_by_name_and_no_list():
    decoded = answers.changed(rejected.Rejected, PLUGIN_GONE, "nodes", value=["w1"])
    assert (decoded.malformed, decoded.answer.nodes) == (("nodes",), None)
    assert len(decoded.answer.items) == 4
