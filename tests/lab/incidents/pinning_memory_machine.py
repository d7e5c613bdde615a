# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The memory that is reserved was changed over a state of the static memory manager.

The kubelet does not start, and the file alone does not tell.
"""

from __future__ import annotations

from tests.lab.support import pinning


def reserved(mebibytes: int) -> dict:
    """Return settings that reserve memory of NUMA node 0.

    It is the system's, and what eviction keeps free.
    """
    return {
        "memoryManagerPolicy": "Static",
        "evictionHard": {"memory.available": "50Mi"},
        "systemReserved": {"memory": f"{mebibytes}Mi"},
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": f"{mebibytes + 50}Mi"}}],
    }


class PinningMemoryMachine(pinning.Memory):
    name = "pinning-memory-machine"
    title = "a worker's static memory manager has another reservation than its state"

    def fill(self, cluster, target, namespace):
        pinning.stop(cluster, target)
        cluster.exec(target, ["rm", "-f", pinning.MEMORY_STATE])
        pinning.configure(cluster, target, reserved(100))
        pinning.start(cluster, target)
        cluster.wait(
            lambda: pinning.memory_state(cluster, target)["policyName"] == "Static",
            30,
            "a state of the policy Static",
        )
        pinning.stop(cluster, target)
        pinning.configure(cluster, target, reserved(200))
        pinning.fail(cluster, target, "the expected machine state is different from the real one")


INCIDENT = PinningMemoryMachine()
