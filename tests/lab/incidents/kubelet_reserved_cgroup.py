# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker is to limit its kubelet in a cgroup that nothing makes."""

from __future__ import annotations

from tests.lab.support import pinning
from tests.lab.support.kubelet_down import KubeletDown


class KubeletReservedCgroup(KubeletDown):
    name = "kubelet-reserved-cgroup"
    title = "a worker's kubeReservedCgroup does not exist"
    fault = "KM506"
    words = "Failed to enforce Kube Reserved Cgroup Limits"

    def spoil(self, cluster, target):
        self.keep(cluster, target, target, pinning.CONFIG)
        pinning.configure(
            cluster,
            target,
            {
                "enforceNodeAllocatable": ["pods", "kube-reserved"],
                "kubeReserved": {"cpu": "100m", "memory": "200Mi"},
                "kubeReservedCgroup": "/kubelet.slice",
            },
        )


INCIDENT = KubeletReservedCgroup()
