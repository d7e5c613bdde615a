# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A power cut left memory_manager_state empty: the kubelet does not start."""

from __future__ import annotations

from tests.lab.support import pinning


class PinningMemoryState(pinning.Memory):
    name = "pinning-memory-state"
    title = "a worker's memory_manager_state is empty"

    def fill(self, cluster, target, namespace):
        pinning.stop(cluster, target)
        cluster.write(target, pinning.MEMORY_STATE, "")
        pinning.fail(cluster, target, "memory manager checkpoint file")


INCIDENT = PinningMemoryState()
