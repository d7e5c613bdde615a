# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command for the log of a node's kubelet."""

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    log_command,
)


@pytest.mark.parametrize(
    ("unit", "command"),
    [
        ({"name": "kubelet.service"}, "journalctl -u kubelet"),
        ({"name": "k3s-agent.service"}, "journalctl -u k3s-agent"),
        (
            {"name": "snap.microk8s.daemon-kubelite.service"},
            "journalctl -u snap.microk8s.daemon-kubelite",
        ),
        ({"name": "rke2-server.service"}, "cat /var/lib/rancher/rke2/agent/logs/kubelet.log"),
        ({"name": "x; reboot"}, "journalctl -u UNIT"),
        (None, "journalctl -u kubelet"),
    ],
)
def test_the_command_for_the_log_of_a_kubelet(world, unit, command):
    kubelet = world.data("w1", "kubelet")
    kubelet["unit"] = unit and {**kubelet["unit"], **unit}
    assert log_command.read(world.documents["w1"]) == command
