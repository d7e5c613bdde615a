# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A plugin renames its devices (MIG, time-slicing) while a pod holds one by its old name."""

from __future__ import annotations

from tests.lab.support import gpu


class GpuRenamed(gpu.Gpu):
    name = "gpu-renamed"
    title = "a worker's devices were renamed while a pod holds one, and a pod asks for too many"
    faults = ("KM320", "KM321", "KM326")

    def fill(self, cluster, target, namespace):
        gpu.create(cluster, namespace, gpu.job(cluster, "holder", 1, nodeName=target))
        gpu.wait_running(cluster, namespace, "holder")
        cluster.write(target, gpu.STATE, "mig-0\nmig-1\n")
        cluster.wait(
            lambda: b"mig-0" in cluster.read(target, gpu.CHECKPOINT),
            60,
            "the kubelet to know the new names",
        )
        gpu.create(cluster, namespace, gpu.job(cluster, "large", 3, nodeName=target))


INCIDENT = GpuRenamed()
