# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""No controller manager is left: nobody sets or takes away a taint, and a dead node stays Ready."""
from __future__ import annotations

import datetime

from ..incident import Incident
from ..staticpod import MANAGER, manifest, processes

# Longer than a lock may stand still unsuspected: a new leader needs its time.
STALE_SECONDS = 80


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
        for master in cluster.of_role("master"):
            cluster.wait(lambda node=master: not processes(cluster, node, MANAGER), 120, f"the controller manager of {master.name} to end")

        def stands_still():
            said = cluster.kubectl("-n", "kube-system", "get", "lease", MANAGER, "-o", "jsonpath={.spec.renewTime}").stdout.decode()
            age = datetime.datetime.now(datetime.timezone.utc) - datetime.datetime.fromisoformat(said.replace("Z", "+00:00"))
            if age.total_seconds() < STALE_SECONDS:
                raise ValueError(f"it was renewed {age.total_seconds():.0f} s ago")
            return True

        cluster.wait(stands_still, 150, "the lock of the controller managers to stand still", every=3)

    def expect(self, cluster, target):
        return {("KM511", None, MANAGER)}


INCIDENT = NoControllerManager()
