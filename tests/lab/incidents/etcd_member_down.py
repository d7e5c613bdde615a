# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One of three members of etcd is down, as its manifest is gone: one more, and no write succeeds.

The API server of that host has no etcd then, and its kubelet is not heard.
"""

from __future__ import annotations

from tests.lab.support.api_server import wait_grown_up
from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import API_SERVER, manifest, processes

ETCD = "etcd"


class EtcdMemberDown(Incident):
    name = "etcd-member-down"
    title = "the manifest of etcd is gone from one master"
    occupies = "cluster"
    # not the first, whose API server the workers' kubelets use
    target = "m3"

    def break_(self, cluster, target):
        wait_grown_up(cluster, target)
        self.keep(cluster, target, target, manifest(ETCD))
        cluster.exec(target, ["rm", "-f", manifest(ETCD)])

    def symptom(self, cluster, target):
        cluster.wait(
            lambda: cluster.exec(target, ["pgrep", "-x", ETCD], check=False).returncode == 1,
            120,
            f"etcd of {target} to end",
        )

    def undo(self, cluster, target):
        super().undo(cluster, target)
        cluster.wait(
            lambda: cluster.exec(target, ["pgrep", "-x", ETCD], check=False).returncode == 0,
            180,
            f"etcd of {target}",
        )
        # an API server that crashed without etcd waits for minutes before its next start
        cluster.exec(target, ["systemctl", "restart", "kubelet"])
        cluster.wait(
            lambda: len(processes(cluster, target, API_SERVER)) == 1,
            300,
            f"the API server of {target}",
        )

    def expect(self, cluster, target):
        return {("KM145", None, ETCD), ("KM170", target, API_SERVER)}

    def consequences(self, cluster, target):
        """Name who asks that API server, and is not heard after a while."""
        return {("KM525", target, "kubelet"), ("KM529", target, "kubelet")}


INCIDENT = EtcdMemberDown()
