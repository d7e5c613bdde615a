# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A second scheduler, one that is asked for by name, places a pod on devices that the default one has given away."""
from __future__ import annotations

from .. import gpu


class GpuTwoSchedulers(gpu.Gpu):
    name = "gpu-two-schedulers"
    title = "two schedulers place pods on one worker's devices"
    faults = ("KM205", "KM320")

    def fill(self, cluster, target, namespace):
        chosen = {"nodeSelector": {"kubernetes.io/hostname": target}}
        gpu.create(cluster, namespace, gpu.pod(cluster, "usual", 2, **chosen), gpu.pod(cluster, "batch", 2, schedulerName="batch", **chosen))
        gpu.wait_running(cluster, namespace, "usual")
        gpu.bind(cluster, namespace, "batch", target)


INCIDENT = GpuTwoSchedulers()
