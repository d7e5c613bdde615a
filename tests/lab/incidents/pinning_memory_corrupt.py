"""Somebody edited memory_manager_state by hand: its checksum is that of other bytes, and the kubelet does not start."""
from __future__ import annotations

import json

from .. import pinning


class PinningMemoryCorrupt(pinning.Pinning):
    name = "pinning-memory-corrupt"
    title = "a worker's memory_manager_state was edited"
    faults = ("KM310",)

    settings = None
    says_static = False

    def applies(self, version):
        """The memory manager came with 1.21."""
        return version >= (1, 32)

    def fill(self, cluster, target, namespace):
        pinning.stop(cluster, target)
        state = json.loads(cluster.read(target, pinning.MEMORY_STATE))
        cluster.write(target, pinning.MEMORY_STATE, json.dumps({**state, "checksum": state["checksum"] ^ 1}, separators=(",", ":")))
        pinning.fail(cluster, target, "checkpoint is corrupted")


INCIDENT = PinningMemoryCorrupt()
