# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's kubelet has an EnvironmentFile= without a dash that is missing.

No process is ever started.
"""

from __future__ import annotations

from tests.lab.support.unit_refused import UnitRefused


class UnitEnvironmentFile(UnitRefused):
    name = "unit-environment-file"
    title = "a file of EnvironmentFile= of a worker's kubelet is missing"
    section, line = "Service", "EnvironmentFile=/etc/default/kubelet-gone"
    words = "Failed with result 'resources'"


INCIDENT = UnitEnvironmentFile()
