# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faults that before_reboot names come true where a kernel of the node's own boots again."""

from __future__ import annotations

from tests.lab.support import machines, next_start
from tests.lab.support.next_start import NO_NUMBER, PLANTED


def test_what_a_reboot_breaks_is_named_before_and_comes_true(cluster, play, node):
    next_start.plant(cluster, node)
    consent = ("-e", "kubemend_probe=true", "-e", "kubemend_max_risk=1")
    done, report = play(*consent, "-e", "kubemend_fail_on=critical", name="before_reboot")
    found = {(item["code"], item["component"]) for item in report["findings"]}
    assert found == PLANTED, done.stdout[-6000:]
    assert {item["host"] for item in report["findings"]} == {node}
    assert (done.returncode, report["steps"]) == (2, [])
    (refusal,) = [item for item in report["findings"] if item["code"] == "KM703"]
    assert any(word in str(refusal["evidence"]) for word in NO_NUMBER), refusal

    cluster.restart_node(node, healthy=False)
    machines.wait_not_ready(cluster, node)
    next_start.see(cluster, node)
