# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A device plugin that reports one of its two devices as unhealthy."""

from __future__ import annotations

from tests.lab.support import gpu


class GpuUnhealthy(gpu.Gpu):
    name = "gpu-unhealthy"
    title = "one of a worker's two devices is unhealthy"
    faults = ("KM323",)
    wants_rejected = False

    def fill(self, cluster, target, namespace):
        cluster.write(target, gpu.STATE, "gpu-0\ngpu-1 unhealthy\n")

    def symptom(self, cluster, target):
        gpu.wait_devices(cluster, target, [2, 1])


INCIDENT = GpuUnhealthy()
