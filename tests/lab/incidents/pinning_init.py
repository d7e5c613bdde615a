# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A Deployment that was meant to be pinned, and an init container without resources.

No container of its pod has a CPU alone.
"""

from __future__ import annotations

from tests.lab.support import gpu, pinning


class PinningInit(pinning.Pinning):
    name = "pinning-init"
    title = "an init container without resources keeps a worker's pod from being pinned"

    def fill(self, cluster, target, namespace):
        # What is healthy: a request without a limit, and a pod that shares.
        gpu.create(
            cluster,
            namespace,
            pinning.deployment(cluster, "meant", target, init={}),
            pinning.deployment(
                cluster, "shares", target, "100m", init={"limits": {"cpu": "50m", "memory": "16Mi"}}
            ),
        )
        gpu.wait_running(cluster, namespace, "meant")
        gpu.wait_running(cluster, namespace, "shares")

    def expect(self, cluster, target):
        namespace = self.record(cluster, target)["namespace"]
        return super().expect(cluster, target) | {
            ("KM313", target, f"Deployment {namespace}/meant")
        }


INCIDENT = PinningInit()
