# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker that was rebooted under a pod with devices.

Its kubelet admits the pod again before the device plugin is there.
"""

from __future__ import annotations

import time

from tests.lab.cluster import bringup, podman
from tests.lab.support import gpu


class GpuReadmitted(gpu.Gpu):
    name = "gpu-readmitted"
    title = "a worker was rebooted under a pod with devices, and its device plugin is not back yet"
    faults = ("KM320", "KM324", "KM328")

    def applies(self, version):
        # before, a kubelet never looked at devices that its checkpoint says were given out
        return version >= (1, 25)

    def fill(self, cluster, target, namespace):
        chosen = {"nodeSelector": {"kubernetes.io/hostname": target}, "restartPolicy": "Always"}
        gpu.create(cluster, namespace, gpu.pod(cluster, "training", 2, **chosen))
        gpu.wait_running(cluster, namespace, "training")
        # longer than clocks may differ: a real one runs for days, and boots for longer
        time.sleep(10)
        # The plugin's unit is in /run: it goes with the reboot, as a plugin whose own pod starts
        # late.
        podman.podman("kill", cluster.node(target).container, timeout=60)
        self.boot(cluster, target)

    def symptom(self, cluster, target):
        super().symptom(cluster, target)
        cluster.wait(
            lambda: gpu.devices(cluster, target)[1] == 0, 60, f"{target} to have no device"
        )

    @staticmethod
    def boot(cluster, target):
        """No harm where it runs."""
        node = cluster.node(target)
        podman.podman("start", node.container, timeout=60)
        bringup.wait_booted(node)

    def undo(self, cluster, target):
        self.boot(cluster, target)
        super().undo(cluster, target)


INCIDENT = GpuReadmitted()
