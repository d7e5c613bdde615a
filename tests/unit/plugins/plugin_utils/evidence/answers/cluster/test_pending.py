# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pods that do not start."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    pending,
)
from tests.unit.support import answers

PENDING = answers.recorded("v1.36.3-pods-pending", "m1.cluster", "pending")
FORGOTTEN = answers.recorded("v1.18.4-scheduler-forgets-node", "m1.cluster", "pending")


def test_how_many_pods_were_read():
    answer = answers.typed(pending.Pending, PENDING)
    assert (answer.total, answer.read, answer.taken) == (12, 16, 0)
    assert answer.full == ("lab-full",)
    assert answer.largest["cpu"] == 4000
    assert answer.largest["hugepages-2Mi"] == 0


def test_a_pod_that_the_scheduler_finds_no_node_for():
    item = answers.typed(pending.Pending, PENDING).items[1]
    assert (item.names, item.pods, item.owner) == (("cordoned",), 1, None)
    assert (item.namespace, item.since) == ("lab-jobs-1d1882", "2026-11-24T07:42:38Z")
    assert item.scheduler == "default-scheduler"
    assert item.message.startswith("0/5 nodes are available: 1 node(s) were unschedulable")
    assert item.off[:3] == ("lab-full", "m1", "m3")
    assert (item.targets, item.asks, item.unfit, item.asked) == ((), {}, False, False)
    assert item.tolerations[2].effect == "NoExecute"


def test_a_pod_of_a_daemon_set_is_for_one_node():
    (item,) = answers.typed(pending.Pending, FORGOTTEN).items
    assert item.owner == "DaemonSet/everywhere"
    assert item.targets == (("everywhere-ftzdc", "m3"),)
    assert item.off is None


def test_pods_that_no_scheduler_knows_or_a_gate_holds():
    answer = answers.typed(pending.Pending, PENDING)
    (unseen,), (gated,) = answer.unseen, answer.gated
    assert (unseen.scheduler, unseen.pods) == ("lab-nobody", 1)
    assert gated.namespace == "lab-jobs-1d1882"
    assert gated.gates == ("lab.example/wait",)
    assert gated.names == ("lab-jobs-1d1882/gated",)


def test_pods_of_a_node_that_is_absent_and_of_one_that_is_silent():
    absent, silent = answers.typed(pending.Pending, PENDING).bound
    assert (absent.node, absent.absent) == ("lab-no-such-node", True)
    assert (silent.node, silent.absent, silent.since) == ("m3", False, "2026-11-24T07:42:38Z")


def test_pods_that_are_no_list_are_unknown():
    decoded = answers.changed(pending.Pending, PENDING, "unseen", value="none")
    assert (decoded.malformed, decoded.answer.unseen) == (("unseen",), None)
    assert len(decoded.answer.gated) == 1


def test_whether_a_node_is_absent_is_no_number():
    decoded = answers.changed(pending.Pending, PENDING, "bound", 0, "absent", value=1)
    assert decoded.malformed == ("bound[0].absent",)
    assert (decoded.answer.bound[0].absent, decoded.answer.bound[0].pods) == (False, 1)


def test_a_target_without_its_node_is_dropped():
    decoded = answers.changed(pending.Pending, FORGOTTEN, "items", 0, "targets", value=[["a"]])
    assert decoded.malformed == ("items[0].targets[0]",)
    assert decoded.answer.items[0].targets == ()
