# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Advice with the log of a host's own kubelet, in findings of hosts and of clusters."""

from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    address_holders,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    kubelet_logs,
    measured_state,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.base import Detection


@pytest.mark.parametrize(
    ("log", "remedy", "expected"),
    [
        (
            "journalctl -u k3s",
            "see journalctl -u kubelet | grep x",
            "see journalctl -u k3s | grep x",
        ),
        ("journalctl -u k3s", "(journalctl -u kubelet)", "(journalctl -u k3s)"),
        ("journalctl -u k3s", "journalctl -u kubelet.service", "journalctl -u kubelet.service"),
        ("journalctl -u kubelet", "see journalctl -u kubelet", "see journalctl -u kubelet"),
        ("cat /a.log", "see journalctl -u kubelet, then", "see cat /a.log, then"),
    ],
)
def test_the_log_that_an_advice_names(log, remedy, expected):
    hit = Detection("x", (), remedy, host="w1")
    assert kubelet_logs.with_log(hit, SimpleNamespace(kubelet_log=log)).remedy == expected


def test_findings_of_a_cluster_name_the_log_of_their_host():
    host = SimpleNamespace(
        kubelet_log="journalctl -u k3s-agent", address_holders=address_holders.AddressHolders()
    )
    hit = Detection("x", (), "see journalctl -u kubelet", host="w1")
    assert measured_state.of_cluster(hit, {}).remedy == hit.remedy
    with_host = measured_state.of_cluster(hit, {"w1": host})
    assert with_host.remedy == "see journalctl -u k3s-agent"
