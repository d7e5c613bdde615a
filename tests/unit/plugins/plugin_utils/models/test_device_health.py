# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of a device plugin that are about the health of its devices."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import device_health


@pytest.mark.parametrize(
    ("line", "is_of_health"),
    [
        ("XidCriticalError: Xid=69 on Device=GPU-1, the device will go", True),
        ("'nvidia.com/gpu' device marked unhealthy: GPU-1", True),
        ("all devices are healthy", False),
        ("oxide layer", False),
    ],
)
def test_lines_about_the_health_of_devices(line, is_of_health):
    assert bool(device_health.OF_HEALTH.search(line)) is is_of_health


def test_without_a_host_there_is_no_plugin():
    assert device_health.plugin(None, "nvidia.com/gpu") is None
