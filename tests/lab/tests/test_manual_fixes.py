# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Causes of a node that is lost, or will be at its next boot, which the operator has to repair.

Each is told apart, with its proof, and nothing is touched.
"""

from __future__ import annotations

import pytest

from tests.lab.support import incident
from tests.lab.support.repairing import broken
from tests.lab.support.report import findings

RISK = ("-e", "kubemend_max_risk=3")
# What the finding says, and what is done about it.
TOLD = {
    "kubelet-certificate-over": (
        "has expired: the API server refuses the kubelet that runs",
        "kubeadm kubeconfig user",
    ),
    "runtime-config-emptied": ("config.toml", "SystemdCgroup = true"),
    "runtime-metadata": ("meta.db", "containerd"),
    "firewall-enabled": (
        "firewalld is off, and comes back with the next boot",
        "--add-port=10250/tcp",
    ),
}


@pytest.mark.parametrize("name", sorted(TOLD))
def test_what_a_person_has_to_mend_is_told_and_left_alone(cluster, play, name):
    one = incident.by_name(name)
    with broken(cluster, name, target="w1"):
        done, report = play(*RISK, name="node_unreachable")
        found = {(item["code"], item["host"], item["component"]): item for item in findings(report)}
        assert set(found) == one.expect(cluster, "w1"), done.stdout[-4000:]
        # The differential has one cause: what else is found is there because of it.
        (finding,) = [item for item in found.values() if not item["because"]]
        assert all(
            item["because"] == [finding["code"]] for item in found.values() if item is not finding
        ), report["findings"]
        summary, remedy = TOLD[name]
        assert summary in finding["summary"], finding
        assert remedy in finding["remedy"], finding
        assert (report["plan"], report["steps"]) == ([], []), report["plan"]
