# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""No incident at all: a tool with findings in a healthy cluster is not believed in a broken one."""

from __future__ import annotations

from tests.lab.support.incident import Incident


class Healthy(Incident):
    name = "healthy"
    title = "nothing is broken"
    occupies = "cluster"
    target = "m1"
    nothing_unknown = True

    def break_(self, cluster, target):
        pass

    def symptom(self, cluster, target):
        cluster.wait_healthy(60)

    def expect(self, cluster, target):
        return set()


INCIDENT = Healthy()
