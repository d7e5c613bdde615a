# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings about units whose file hides another one."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import hidden_units
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.base import Detection
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.hidden_units import (
    HiddenUnit,
)

PATH, OTHER = "/etc/systemd/system/kubelet.service", "/usr/lib/systemd/system/kubelet.service"
UNITS = {"kubelet": HiddenUnit("kubelet.service", PATH, (OTHER,))}


@pytest.mark.parametrize(
    ("code", "component", "is_told"),
    [
        ("KM502", "kubelet", True),
        ("KM506", "kubelet", True),
        ("KM508", "containerd", False),
        ("KM402", "kubelet", False),
    ],
)
def test_both_files_are_named_where_the_unit_does_not_run(code, component, is_told):
    hit = Detection("it does not run", (), "see its log", "w1", component=component)
    found = hidden_units.with_file(hit, code, UNITS)
    assert [path in found.summary for path in (PATH, OTHER)] == [is_told] * 2
    assert ("daemon-reload" in found.remedy) is is_told
    assert [ref.path for ref in found.evidence] == [PATH] * is_told
