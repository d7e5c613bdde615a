# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's kubelet is pinned by --node-ip to an address that its machine no longer has.

That happens after another DHCP lease. The Node still reads Ready.
"""

from __future__ import annotations

import re

from tests.lab.incidents.kubelet_wrong_flag import FLAGS
from tests.lab.support.incident import Incident
from tests.lab.support.kubelet_down import HEALTHZ

FORMER = "192.0.2.7"  # of a network for documentation: no machine has it
REFUSED = "failed to validate nodeIP"


class AddressGone(Incident):
    name = "address-gone"
    title = "a worker's --node-ip is an address that its machine no longer has"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        text = self.keep(cluster, target, target, FLAGS).decode()
        changed, count = re.subn(r"--node-ip=\S+?(?=[\s\"])", f"--node-ip={FORMER}", text)
        assert count == 1, text
        cluster.write(target, FLAGS, changed)
        self.remember(cluster, target, since=int(cluster.exec(target, ["date", "+%s"]).stdout))
        cluster.exec(target, "systemctl restart kubelet")

    def symptom(self, cluster, target):
        since = self.record(cluster, target)["since"]
        cluster.wait(
            lambda: (
                REFUSED
                in cluster.exec(
                    target, f"journalctl -q -u kubelet --since @{since} -o cat; true"
                ).stdout.decode(errors="replace")
            ),
            180,
            f"the kubelet of {target} to say {REFUSED!r}",
        )
        cluster.wait(
            lambda: cluster.exec(target, HEALTHZ, check=False).stdout == b"ok",
            120,
            f"the kubelet of {target} to answer all the same",
        )

    def undo(self, cluster, target):
        self.restore(cluster, target)
        cluster.exec(target, "systemctl restart kubelet")
        cluster.wait(
            lambda: cluster.exec(target, HEALTHZ, check=False).stdout == b"ok",
            180,
            f"the kubelet of {target}",
        )

    def expect(self, cluster, target):
        return {("KM518", target, "kubelet")}


INCIDENT = AddressGone()
