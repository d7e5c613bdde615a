# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's kubelet runs and no longer reaches its API server, as behind a new firewall.

Its Node becomes unreachable.
"""

from __future__ import annotations

import re

from tests.lab.support.incident import Incident

SERVER = re.compile(r"server: https://([0-9.]+):6443")


class ApiOutOfReach(Incident):
    name = "api-out-of-reach"
    title = "a worker's kubelet runs and does not reach its API server"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        server = SERVER.search(cluster.read(target, "/etc/kubernetes/kubelet.conf").decode())[1]
        self.remember(cluster, target, server=server)
        cluster.exec(target, ["ip", "route", "add", "unreachable", f"{server}/32"])

    def symptom(self, cluster, target):
        cluster.wait(
            lambda: self._ready(cluster, target) == b"Unknown", 180, f"the API to miss {target}"
        )
        # one that has just started is given time
        cluster.wait(
            lambda: self._age(cluster, target) > 70,
            90,
            f"the kubelet of {target} to be no young one",
        )

    def _age(self, cluster, target) -> float:
        said = (
            cluster.exec(
                target,
                "cut -d' ' -f1 /proc/uptime; systemctl show -p ActiveEnterTimestampMonotonic"
                " --value kubelet",
            )
            .stdout.decode()
            .split()
        )
        return float(said[0]) - int(said[1]) / 1e6

    def _ready(self, cluster, target) -> bytes:
        return cluster.kubectl(
            "get", "node", target, "-o", 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
        ).stdout

    def undo(self, cluster, target):
        server = self.record(cluster, target).get("server")
        if server:
            cluster.exec(target, ["ip", "route", "del", "unreachable", f"{server}/32"], check=False)
        cluster.wait(
            lambda: self._ready(cluster, target) == b"True", 120, f"{target} to be Ready again"
        )

    def expect(self, cluster, target):
        return {("KM525", target, "kubelet")}


INCIDENT = ApiOutOfReach()
