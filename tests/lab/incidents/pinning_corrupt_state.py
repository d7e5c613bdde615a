# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Somebody edited cpu_manager_state by hand.

Its checksum is that of other bytes, and the kubelet does not start.
"""

from __future__ import annotations

from tests.lab.support import pinning


class PinningCorruptState(pinning.Pinning):
    name = "pinning-corrupt-state"
    title = "a worker's cpu_manager_state was edited"
    faults = ("KM302",)

    def fill(self, cluster, target, namespace):
        pinning.stop(cluster, target)
        pinning.edit(cluster, target, defaultCpuSet="0")
        pinning.fail(cluster, target, "checkpoint is corrupted")


INCIDENT = PinningCorruptState()
