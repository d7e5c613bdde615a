# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a unit runs, by its name."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    unit_enablement,
    units,
)


@pytest.mark.parametrize("unit", units.RUNTIMES)
def test_a_runtime_has_the_name_of_its_unit(unit: str) -> None:
    assert unit_enablement.component_of(unit) + ".service" == unit


@pytest.mark.parametrize("unit", units.KUBELET_UNITS)
def test_every_other_unit_runs_the_kubelet(unit: str) -> None:
    assert unit_enablement.component_of(unit) == unit_enablement.KUBELET
    assert unit in unit_enablement.path_of(unit)
