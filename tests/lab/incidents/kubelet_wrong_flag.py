# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's kubelet is given a flag that went with 1.12, as an upgrade leaves it.

It ends at each start.
"""

from __future__ import annotations

from tests.lab.support.kubelet_down import KubeletDown

FLAGS = "/var/lib/kubelet/kubeadm-flags.env"


class KubeletWrongFlag(KubeletDown):
    name = "kubelet-wrong-flag"
    title = "a worker's kubelet is given a flag that was removed"
    fault = "KM505"
    words = "unknown flag: --cadvisor-port"

    def spoil(self, cluster, target):
        text = self.keep(cluster, target, target, FLAGS).decode().rstrip()
        assert text.endswith('"'), text
        cluster.write(target, FLAGS, text[:-1] + ' --cadvisor-port=0"\n')


INCIDENT = KubeletWrongFlag()
