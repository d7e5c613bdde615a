# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a reboot undoes, and no step brings back."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import (
    persistent_sysctl,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    boot as remedie_boot,
)
from tests.unit.plugins.plugin_utils.faults.node.test_boot import Node as BootNode

CONF, OURS, UFW, PROFILE = (
    "/etc/sysctl.d/50-app.conf",
    persistent_sysctl.FILE,
    "/etc/ufw/sysctl.conf",
    "/usr/lib/tuned/mine/tuned.conf",
)


def row(key, value, path=PROFILE, line=4):
    return {"path": path, "line": line, "key": key, "value": value}


def networkd(*rows):
    return {"networkd": list(rows)}


NETWORK = "/etc/systemd/network/10-wan.network"


@pytest.fixture
def booted(world):
    return BootNode(world)


def test_forwarding_that_networkd_brings_is_no_loss(booted):
    booted.sysctl(("/etc/sysctl.d/other.conf", "vm.swappiness = 1\n")).load().without_netfilter()
    assert booted.judged("KM520")[0] == "present"
    booted.limits["late"] = networkd(row("IPForward", "yes", NETWORK))
    assert booted.judged("KM520")[0] == "clear"
    assert remedie_boot.REMEDIES
