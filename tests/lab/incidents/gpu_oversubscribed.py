# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Two Jobs whose templates name the node ask for more devices than it has."""

from __future__ import annotations

from tests.lab.support import gpu


class GpuOversubscribed(gpu.Gpu):
    name = "gpu-oversubscribed"
    title = "Jobs with nodeName on one worker ask for more devices than it has"
    faults = ("KM320", "KM321")

    def fill(self, cluster, target, namespace):
        gpu.create(cluster, namespace, gpu.job(cluster, "first", 2, nodeName=target))
        gpu.wait_running(cluster, namespace, "first")
        gpu.create(cluster, namespace, gpu.job(cluster, "second", 2, nodeName=target))


INCIDENT = GpuOversubscribed()
