# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's containerd has a condition that is not met.

Systemd skips its start, and the kubelet runs on without it.
"""

from __future__ import annotations

from tests.lab.support.unit_refused import UnitRefused


class UnitRuntimeCondition(UnitRefused):
    name = "unit-runtime-condition"
    title = "a condition of the unit of a worker's containerd is not met"
    unit, fault = "containerd", "KM508"
    section, line = "Unit", "ConditionPathExists=/etc/containerd-gone"
    words = "ConditionPathExists=/etc/containerd-gone"


INCIDENT = UnitRuntimeCondition()
