# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The reservation was changed to the CPU that a container has alone."""

from __future__ import annotations

from tests.lab.support import gpu, pinning


class PinningReservedChanged(pinning.Pinning):
    name = "pinning-reserved-changed"
    title = "a worker's reserved CPUs are those of a pinned container"
    faults = ("KM304",)

    def fill(self, cluster, target, namespace):
        gpu.create(cluster, namespace, pinning.pod(cluster, "pinned", target))
        pinning.wait_pinned(cluster, target)
        mine = next(iter(next(iter(pinning.state(cluster, target)["entries"].values())).values()))
        pinning.stop(cluster, target)
        pinning.configure(cluster, target, {"reservedSystemCPUs": mine})
        pinning.fail(cluster, target, "not all reserved cpus")


INCIDENT = PinningReservedChanged()
