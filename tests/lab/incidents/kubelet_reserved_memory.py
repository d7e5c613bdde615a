# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker reserves other memory on its NUMA node than the sum of its other reservations."""

from __future__ import annotations

from tests.lab.support import pinning
from tests.lab.support.kubelet_down import KubeletDown


class KubeletReservedMemory(KubeletDown):
    name = "kubelet-reserved-memory"
    title = "a worker's reservedMemory does not add up"
    fault = "KM506"
    words = "determined by Node Allocatable feature"

    def spoil(self, cluster, target):
        self.keep(cluster, target, target, pinning.CONFIG)
        pinning.configure(
            cluster,
            target,
            {
                "memoryManagerPolicy": "Static",
                "kubeReserved": {"memory": "200Mi"},
                "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
            },
        )

    def applies(self, version):
        """Return whether the release has the memory manager: 1.21, by default since 1.22."""
        return version >= (1, 22)

    def expect(self, cluster, target):
        """Return the findings, with KM310.

        The kubelet's state is of None, which it refuses once the sum is right.
        """
        return {*super().expect(cluster, target), ("KM310", target, None)}


INCIDENT = KubeletReservedMemory()
