# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's kubelet has a condition that is not met.

Systemd skips its start, and calls that a success.
"""

from __future__ import annotations

from tests.lab.support.unit_refused import UnitRefused


class UnitCondition(UnitRefused):
    name = "unit-condition"
    title = "a condition of the unit of a worker's kubelet is not met"
    section, line = "Unit", "ConditionPathExists=/etc/kubelet-gone"
    words = "ConditionPathExists=/etc/kubelet-gone"


INCIDENT = UnitCondition()
