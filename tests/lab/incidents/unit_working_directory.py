# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's kubelet has a WorkingDirectory= that is missing.

Systemd ends each start itself (200/CHDIR).
"""

from __future__ import annotations

from tests.lab.support.unit_refused import UnitRefused


class UnitWorkingDirectory(UnitRefused):
    name = "unit-working-directory"
    title = "the working directory of a worker's kubelet is missing"
    section, line = "Service", "WorkingDirectory=/var/lib/kubelet-gone"
    words = "status=200/CHDIR"


INCIDENT = UnitWorkingDirectory()
