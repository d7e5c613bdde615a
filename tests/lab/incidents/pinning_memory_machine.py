"""The memory that is reserved was changed over a state of the static memory manager: the kubelet does not start, and the file alone does not tell."""
from __future__ import annotations

import json

from .. import pinning


def reserved(mebibytes: int) -> dict:
    """Its NUMA node's reservation must be the system's and what eviction keeps free."""
    return {"memoryManagerPolicy": "Static", "evictionHard": {"memory.available": "50Mi"}, "systemReserved": {"memory": f"{mebibytes}Mi"},
            "reservedMemory": [{"numaNode": 0, "limits": {"memory": f"{mebibytes + 50}Mi"}}]}


class PinningMemoryMachine(pinning.Pinning):
    name = "pinning-memory-machine"
    title = "a worker's static memory manager has another reservation than its state"
    faults = ("KM310",)

    settings = None
    says_static = False

    def applies(self, version):
        """The memory manager came with 1.21."""
        return version >= (1, 32)

    def fill(self, cluster, target, namespace):
        pinning.stop(cluster, target)
        cluster.exec(target, ["rm", "-f", pinning.MEMORY_STATE])
        pinning.configure(cluster, target, reserved(100))
        pinning.start(cluster, target)
        cluster.wait(lambda: json.loads(cluster.read(target, pinning.MEMORY_STATE))["policyName"] == "Static", 30, "a state of the policy Static")
        pinning.stop(cluster, target)
        pinning.configure(cluster, target, reserved(200))
        pinning.fail(cluster, target, "the expected machine state is different from the real one")


INCIDENT = PinningMemoryMachine()
