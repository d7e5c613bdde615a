# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's kubelet requires a unit that fails.

Systemd does not start it, and nothing but its journal says so.
"""

from __future__ import annotations

from tests.lab.support.unit_refused import UnitRefused

OTHER = "/etc/systemd/system/lab-mounts.service"


class UnitDependency(UnitRefused):
    name = "unit-dependency"
    title = "a unit that a worker's kubelet requires fails"
    section, line = "Unit", "Requires=lab-mounts.service\nAfter=lab-mounts.service"
    words = "Dependency failed for"

    def more(self, cluster, target):
        self.keep(cluster, target, target, OTHER)
        cluster.write(
            target,
            OTHER,
            "[Unit]\nDescription=mounts that the kubelet"
            " needs\n[Service]\nType=oneshot\nExecStart=/bin/false\n",
        )

    def undo(self, cluster, target):
        cluster.exec(target, "systemctl reset-failed lab-mounts.service; true")
        super().undo(cluster, target)


INCIDENT = UnitDependency()
