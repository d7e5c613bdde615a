# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's kubelet posts that it is short of memory.

Its soft threshold is above all that there is, and its grace period longer than the test.

The kubelet posts the condition as soon as the signal crosses the threshold, and evicts for a soft
one only after the grace period: no pod goes.
"""

from __future__ import annotations

import json

from tests.lab.support import pinning
from tests.lab.support.incident import Incident
from tests.lab.support.kubelet_down import HEALTHZ

CONDITION = "MemoryPressure"
THRESHOLD = {
    "evictionSoft": {"memory.available": "100Ti"},
    "evictionSoftGracePeriod": {"memory.available": "10h"},
}


def posted(cluster, target: str) -> str:
    """Return the memory condition of the Node."""
    node = json.loads(cluster.kubectl("get", "node", target, "-o", "json").stdout)
    return next(
        (one["status"] for one in node["status"]["conditions"] if one["type"] == CONDITION), ""
    )


class MemoryPressure(Incident):
    name = "memory-pressure"
    title = "a worker's kubelet posts that it is short of memory"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        self.keep(cluster, target, target, pinning.CONFIG)
        pinning.stop(cluster, target)
        pinning.configure(cluster, target, THRESHOLD)
        # Not until the cluster is healthy: the lifecycle controller's taint stays for as long as
        # the condition.
        cluster.exec(target, "systemctl reset-failed kubelet; systemctl start kubelet")
        cluster.wait(
            lambda: cluster.exec(target, HEALTHZ, check=False).stdout == b"ok",
            180,
            f"the kubelet of {target}",
        )

    def symptom(self, cluster, target):
        cluster.wait(
            lambda: posted(cluster, target) == "True", 240, f"{target} to post {CONDITION}"
        )

    def undo(self, cluster, target):
        pinning.stop(cluster, target)
        self.restore(cluster, target)
        pinning.start(cluster, target)
        cluster.wait(
            lambda: posted(cluster, target) == "False", 240, f"{target} to take {CONDITION} back"
        )

    def expect(self, cluster, target):
        return {("KM523", target, None)}


INCIDENT = MemoryPressure()
