# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every scheduler runs and reaches no API server: the lock of the last holder is not renewed."""

from __future__ import annotations

import re

from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import SCHEDULER, processes, restart, wait_lock_stands_still

KUBECONFIG = "/etc/kubernetes/scheduler.conf"
# Nothing listens there.
SERVER, NOWHERE = r"(?m)^( +server: https://\S+):\d+$", r"\1:6999"


class SchedulerOutOfReach(Incident):
    name = "scheduler-out-of-reach"
    title = (
        f"{KUBECONFIG} of every master names a port at which no API server listens, and the"
        " schedulers were started again"
    )
    occupies = "cluster"
    target = "m1"

    def break_(self, cluster, target):
        masters = [master.name for master in cluster.of_role("master")]
        for name in masters:
            text = self.keep(cluster, target, name, KUBECONFIG).decode()
            cluster.write(name, KUBECONFIG, re.sub(SERVER, NOWHERE, text), mode="600")
        for name in masters:
            self._anew(cluster, name)

    @staticmethod
    def _anew(cluster, name):
        """Restart the kubelet: its start forgets a back-off of minutes after some rounds."""
        cluster.exec(name, ["systemctl", "restart", "kubelet"])
        restart(cluster, name, SCHEDULER)

    def symptom(self, cluster, target):
        wait_lock_stands_still(cluster, SCHEDULER)
        for master in cluster.of_role("master"):
            cluster.wait(
                lambda node=master: len(processes(cluster, node, SCHEDULER)) == 1,
                180,
                f"one {SCHEDULER} on {master.name}",
            )

    def undo(self, cluster, target):
        names = sorted({saved["node"] for saved in self.record(cluster, target)["files"]})
        self.restore(cluster, target)
        for name in names:
            self._anew(cluster, name)

    def expect(self, cluster, target):
        return {("KM203", None, SCHEDULER)}


INCIDENT = SchedulerOutOfReach()
