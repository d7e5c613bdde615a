# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's kubelet has an assert that fails.

Systemd refuses its start, and the unit stays inactive.
"""

from __future__ import annotations

from tests.lab.support.unit_refused import UnitRefused


class UnitAssert(UnitRefused):
    name = "unit-assert"
    title = "an assert of the unit of a worker's kubelet fails"
    section, line = "Unit", "AssertPathExists=/etc/kubelet-gone"
    words = "ssert"


INCIDENT = UnitAssert()
