# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""etcd has lost its quorum: one of three members remains, as the others' manifests are gone.

It answers, and knows no leader.
"""

from __future__ import annotations

from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import API_SERVER, manifest, processes

ETCD = "etcd"


class EtcdNoQuorum(Incident):
    name = "etcd-no-quorum"
    title = "the manifests of etcd are gone from all masters but one"
    occupies = "cluster"
    target = "m1"

    def _others(self, cluster, target) -> list:
        return [master.name for master in cluster.of_role("master") if master.name != target]

    def break_(self, cluster, target):
        for name in self._others(cluster, target):
            self.keep(cluster, target, name, manifest(ETCD))
        for name in self._others(cluster, target):
            cluster.exec(name, ["rm", "-f", manifest(ETCD)])

    def symptom(self, cluster, target):
        for name in self._others(cluster, target):
            cluster.wait(
                lambda node=name: (
                    cluster.exec(node, ["pgrep", "-x", ETCD], check=False).returncode == 1
                ),
                120,
                f"etcd of {name} to end",
            )
        cluster.wait(lambda: self._leaderless(cluster, target), 90, "etcd to know no leader")

    def _leaderless(self, cluster, target) -> bool:
        return (
            b"no leader"
            in cluster.etcdctl(
                "--command-timeout=4s", "endpoint", "status", "-w", "json", node=target
            ).stdout
        )

    def undo(self, cluster, target):
        super().undo(cluster, target)
        for master in cluster.of_role("master"):
            cluster.wait(
                lambda node=master: (
                    cluster.exec(node, ["pgrep", "-x", ETCD], check=False).returncode == 0
                ),
                180,
                f"etcd of {master.name}",
            )
        # What crashed without etcd waits for minutes before its next start; a kubelet that starts
        # has forgotten that.
        for master in cluster.of_role("master"):
            cluster.exec(master, ["systemctl", "restart", "kubelet"])
        for master in cluster.of_role("master"):
            cluster.wait(
                lambda node=master: len(processes(cluster, node, API_SERVER)) == 1,
                300,
                f"the API server of {master.name}",
            )

    def expect(self, cluster, target):
        return {("KM115", None, None), ("KM146", None, ETCD)}


INCIDENT = EtcdNoQuorum()
