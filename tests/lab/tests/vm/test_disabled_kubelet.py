# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node whose kubelet is disabled loses its power, and stays unreachable after its boot.

Its kernel is its own, so that the power cut is one: what was not on the disk is lost.
"""

from __future__ import annotations

from tests.lab.support import machines
from tests.lab.support.repairing import CONSENT, codes, ended

REMEDIES = ["enable_kubelet", "start_kubelet"]
UNREACHABLE = "node.kubernetes.io/unreachable"


def test_a_disabled_kubelet_is_enabled_and_started(cluster, play, node):
    cluster.exec(node, "systemctl disable -q kubelet && sync")
    cluster.cut_power(node)
    assert machines.unit(cluster, node, "kubelet") == ("disabled", "inactive")
    machines.wait_not_ready(cluster, node)
    cluster.wait(lambda: UNREACHABLE in machines.taints(cluster, node), 120, "the taints")

    done, report = play("--check", *CONSENT, name="node_unreachable")
    assert (done.returncode, [step["remedy"] for step in report["plan"]]) == (0, REMEDIES), (
        done.stdout[-4000:]
    )
    assert {step["host"] for step in report["plan"]} == {node}
    assert machines.unit(cluster, node, "kubelet") == ("disabled", "inactive")

    done, report = play(*CONSENT, name="node_unreachable")
    assert (done.returncode, ended(report), codes(report)) == (0, ["done"] * 2, set()), done.stdout[
        -4000:
    ]
    assert machines.unit(cluster, node, "kubelet") == ("enabled", "active")
    assert (machines.is_ready(cluster, node), machines.taints(cluster, node)) == (True, set())

    cluster.restart_node(node)
    assert machines.unit(cluster, node, "kubelet") == ("enabled", "active")
    done, report = play(*CONSENT, name="node_unreachable")
    assert (done.returncode, report["plan"], codes(report)) == (0, [], set()), done.stdout[-4000:]
