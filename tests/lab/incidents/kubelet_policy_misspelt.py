# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The policy of a worker's CPU manager was written with a capital letter.

Its kubelet takes none that is written so.
"""

from __future__ import annotations

from tests.lab.support import pinning
from tests.lab.support.kubelet_down import KubeletDown


class KubeletPolicyMisspelt(KubeletDown):
    name = "kubelet-policy-misspelt"
    title = "a worker's kubelet is told cpuManagerPolicy: Static"
    fault = "KM506"
    words = "unknown policy"

    def spoil(self, cluster, target):
        self.keep(cluster, target, target, pinning.CONFIG)
        pinning.configure(cluster, target, {**pinning.STATIC, "cpuManagerPolicy": "Static"})


INCIDENT = KubeletPolicyMisspelt()
