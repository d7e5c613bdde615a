# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Somebody edited memory_manager_state by hand.

Its checksum is that of other bytes, and the kubelet does not start.
"""

from __future__ import annotations

import json

from tests.lab.support import pinning


class PinningMemoryCorrupt(pinning.Memory):
    name = "pinning-memory-corrupt"
    title = "a worker's memory_manager_state was edited"

    def fill(self, cluster, target, namespace):
        pinning.stop(cluster, target)
        state = pinning.memory_state(cluster, target)
        cluster.write(
            target,
            pinning.MEMORY_STATE,
            json.dumps({**state, "checksum": state["checksum"] ^ 1}, separators=(",", ":")),
        )
        pinning.fail(cluster, target, "checkpoint is corrupted")


INCIDENT = PinningMemoryCorrupt()
