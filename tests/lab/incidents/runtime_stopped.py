# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Somebody stopped a worker's containerd and disabled it.

Its kubelet runs on, and says that the runtime is down.
"""

from __future__ import annotations

import json

from tests.lab.support.incident import Incident


class RuntimeStopped(Incident):
    name = "runtime-stopped"
    title = "a worker's container runtime was stopped and disabled"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        cluster.exec(target, "systemctl disable --no-reload containerd; systemctl stop containerd")

    def symptom(self, cluster, target):
        cluster.wait(lambda: not ready(cluster, target), 240, f"{target} to be NotReady")

    def undo(self, cluster, target):
        cluster.exec(target, "systemctl enable --no-reload containerd; systemctl start containerd")
        cluster.wait(lambda: ready(cluster, target), 240, f"{target} to be Ready again")

    def expect(self, cluster, target):
        return {("KM508", target, "containerd")}


def ready(cluster, target: str) -> bool:
    """Return the Ready condition of the node in the API."""
    node = json.loads(cluster.kubectl("get", "node", target, "-o", "json").stdout)
    return any(
        one["type"] == "Ready" and one["status"] == "True" for one in node["status"]["conditions"]
    )


INCIDENT = RuntimeStopped()
