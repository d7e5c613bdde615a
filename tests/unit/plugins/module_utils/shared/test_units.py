# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of units agree with each other."""

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import units


def test_no_unit_is_a_kubelet_and_a_runtime() -> None:
    assert not set(units.KUBELET_UNITS) & set(units.RUNTIMES)


def test_units_of_a_snap_are_not_written_to() -> None:
    assert "snap.microk8s.daemon-kubelite.service" not in units.KUBELET_UNITS
    assert {"kubelet.service", "k3s.service", "k3s-agent.service"} <= set(units.KUBELET_UNITS)


def test_every_role_is_of_a_known_unit() -> None:
    runtimes = {name for name, role in units.ROLES if role == "runtime"}
    assert runtimes <= set(units.RUNTIMES)
    assert dict(units.ROLES)[units.KUBELET] == "kubelet"
