# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Somebody took the device checkpoint away and restarted the kubelet under a pod with a device.

The pod runs on, and the kubelet knows nothing of it.
"""

from __future__ import annotations

import time

from tests.lab.cluster.node import execute
from tests.lab.support import gpu


class GpuStaleCheckpoint(gpu.Gpu):
    name = "gpu-stale-checkpoint"
    title = (
        "a worker's kubelet lost its device checkpoint under a pod that runs, and a pod asks for"
        " too many"
    )
    faults = ("KM320", "KM321", "KM327")

    def applies(self, version):
        # earlier ones admit a running pod again, and reject it or give it other devices
        return version >= (1, 29)

    def fill(self, cluster, target, namespace):
        gpu.create(cluster, namespace, gpu.job(cluster, "holder", 1, nodeName=target))
        gpu.wait_running(cluster, namespace, "holder")
        time.sleep(10)  # longer than clocks may differ
        execute(cluster.node(target), ["systemctl", "stop", "kubelet"])
        cluster.exec(target, ["rm", "-f", gpu.CHECKPOINT])
        execute(cluster.node(target), ["systemctl", "start", "kubelet"])
        cluster.wait(
            lambda: b"gpu-0" in cluster.read(target, gpu.CHECKPOINT),
            90,
            "the kubelet to know the devices again",
        )
        gpu.wait_devices(cluster, target, [2, 2])
        gpu.create(cluster, namespace, gpu.job(cluster, "large", 3, nodeName=target))


INCIDENT = GpuStaleCheckpoint()
