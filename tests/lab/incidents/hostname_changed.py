# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's host name was changed, and its kubelet started again.

The API lets it be the node of its certificate only.
"""

from __future__ import annotations

import json

from tests.lab.support.incident import Incident
from tests.lab.support.kubelet_down import HEALTHZ

# the second since nodes are told apart by selectors (1.32)
REFUSED = ("is not allowed to modify node", "only its own Node object")


class HostnameChanged(Incident):
    name = "hostname-changed"
    title = "a worker's host name was changed, and its kubelet was started again"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        self.remember(cluster, target, since=int(cluster.exec(target, ["date", "+%s"]).stdout))
        cluster.exec(target, ["hostname", f"{target}-renamed"])
        cluster.exec(target, ["systemctl", "restart", "kubelet"])

    def symptom(self, cluster, target):
        since = self.record(cluster, target)["since"]

        def refused():
            said = cluster.exec(
                target, f"journalctl -q -u kubelet --since @{since} -o cat; true"
            ).stdout.decode()
            return any(
                "Unable to register node" in line and words in line
                for line in said.splitlines()
                for words in REFUSED
            )

        cluster.wait(refused, 180, f"the API to refuse {target}'s new name")
        cluster.wait(
            lambda: (
                cluster.kubectl(
                    "get",
                    "node",
                    target,
                    "-o",
                    'jsonpath={.status.conditions[?(@.type=="Ready")].status}',
                ).stdout
                == b"Unknown"
            ),
            120,
            f"{target} to be NotReady",
        )

    def undo(self, cluster, target):
        cluster.exec(target, ["hostname", target])
        cluster.exec(target, ["systemctl", "restart", "kubelet"])
        cluster.wait(
            lambda: cluster.exec(target, HEALTHZ, check=False).stdout == b"ok",
            180,
            f"the kubelet of {target}",
        )
        # Under its new name it asks for a certificate of that name: new API servers refuse it, of
        # older ones nobody approves it.
        asked = json.loads(cluster.kubectl("get", "csr", "-o", "json").stdout)["items"]
        for one in asked:
            if one["spec"].get("username") == f"system:node:{target}" and not one.get("status"):
                cluster.kubectl("delete", "csr", one["metadata"]["name"])

    def expect(self, cluster, target):
        return {("KM509", target, "kubelet")}


INCIDENT = HostnameChanged()
