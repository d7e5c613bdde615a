# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""No controller manager is left: no taint is set or taken away, and a dead node stays Ready."""

from __future__ import annotations

from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import MANAGER, manifest, wait_nobody_leads


class NoControllerManager(Incident):
    name = "no-controller-manager"
    title = "the manifest of every controller manager is moved away"
    occupies = "cluster"
    target = "m1"

    def break_(self, cluster, target):
        for master in cluster.of_role("master"):
            self.keep(cluster, target, master.name, manifest(MANAGER))
            cluster.exec(master, ["rm", "-f", manifest(MANAGER)])

    def symptom(self, cluster, target):
        wait_nobody_leads(cluster, MANAGER)

    def expect(self, cluster, target):
        return {("KM511", None, MANAGER)}


INCIDENT = NoControllerManager()
