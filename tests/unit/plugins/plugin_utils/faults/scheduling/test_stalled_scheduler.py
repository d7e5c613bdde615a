# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scheduler that keeps its lease and takes no pods; test_unschedulable.py has the verdicts."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.scheduling import (
    stalled_scheduler,
)


@pytest.mark.parametrize(
    ("paths", "unit"),
    [
        ((), None),
        (("/etc/kubernetes",), None),
        (("/var/snap/microk8s",), "snap.microk8s.daemon-kubelite"),
        (("/var/lib/rancher/rke2", "/var/lib/rancher/k3s"), "rke2-server"),
        (("/var/lib/k0s",), "k0scontroller"),
    ],
)
def test_the_unit_that_has_the_scheduler(paths, unit):
    assert stalled_scheduler._unit(paths) == unit
