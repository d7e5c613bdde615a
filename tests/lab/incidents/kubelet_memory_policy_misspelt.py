# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The policy of a worker's memory manager is written as that of the CPU manager is.

It lacks its capital letter.
"""

from __future__ import annotations

from tests.lab.support import pinning
from tests.lab.support.kubelet_down import KubeletDown


class KubeletMemoryPolicyMisspelt(KubeletDown):
    name = "kubelet-memory-policy-misspelt"
    title = "a worker's kubelet is told memoryManagerPolicy: static"
    fault = "KM506"
    words = "unknown policy"

    def spoil(self, cluster, target):
        self.keep(cluster, target, target, pinning.CONFIG)
        pinning.configure(
            cluster,
            target,
            {
                "memoryManagerPolicy": "static",
                "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
            },
        )

    def applies(self, version):
        """Return whether the release has the memory manager: 1.21, by default since 1.22."""
        return version >= (1, 22)


INCIDENT = KubeletMemoryPolicyMisspelt()
