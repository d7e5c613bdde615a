# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A power cut left the configuration of a worker's kubelet empty: it ends at each start."""

from __future__ import annotations

from tests.lab.support.kubelet_down import KubeletDown

CONFIG = "/var/lib/kubelet/config.yaml"


class KubeletEmptiedState(KubeletDown):
    name = "kubelet-emptied-state"
    title = "the configuration file of a worker's kubelet has 0 bytes"
    fault = "KM510"
    words = "was empty"

    def spoil(self, cluster, target):
        self.keep(cluster, target, target, CONFIG)
        cluster.write(target, CONFIG, "")


INCIDENT = KubeletEmptiedState()
