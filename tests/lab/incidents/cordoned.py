# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Somebody cordoned a worker: it is well, and takes no pods."""

from __future__ import annotations

from tests.lab.support.incident import Incident

TAINT = "node.kubernetes.io/unschedulable"


class Cordoned(Incident):
    name = "cordoned"
    title = "another client cordoned a worker"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        cluster.kubectl("cordon", target)

    def symptom(self, cluster, target):
        cluster.wait(
            lambda: (
                TAINT
                in cluster.kubectl(
                    "get", "node", target, "-o", "jsonpath={.spec.taints[*].key}"
                ).stdout.decode()
            ),
            120,
            f"the taint of the cordon of {target}",
        )

    def undo(self, cluster, target):
        cluster.kubectl("uncordon", target)

    def expect(self, cluster, target):
        return {("KM514", target, None)}


INCIDENT = Cordoned()
