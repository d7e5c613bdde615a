# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A container's CPU is in the shared set too: the kubelet does not start."""

from __future__ import annotations

from tests.lab.support import gpu, pinning


class PinningOverlap(pinning.Pinning):
    name = "pinning-overlap"
    title = "a worker's state gives one CPU twice"
    faults = ("KM306",)

    def fill(self, cluster, target, namespace):
        gpu.create(cluster, namespace, pinning.pod(cluster, "pinned", target))
        pinning.wait_pinned(cluster, target)
        pinning.stop(cluster, target)
        pinning.edit(cluster, target, checksum=0, defaultCpuSet="0-1")
        pinning.fail(cluster, target, "overlaps with default cpuset")


INCIDENT = PinningOverlap()
