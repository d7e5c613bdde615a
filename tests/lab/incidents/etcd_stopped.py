# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One of three members of etcd is stopped: it has its port, and says nothing."""

from __future__ import annotations

from tests.lab.support.api_server import wait_grown_up
from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import API_SERVER, MANAGER, SCHEDULER

ETCD = "etcd"


class EtcdStopped(Incident):
    name = "etcd-stopped"
    title = "etcd of one master gets SIGSTOP"
    occupies = "cluster"
    target = "m3"

    def break_(self, cluster, target):
        wait_grown_up(cluster, target)
        cluster.exec(target, ["pkill", "-STOP", "-x", ETCD])

    def symptom(self, cluster, target):
        cluster.wait(
            lambda: (
                cluster.exec(
                    target,
                    "curl -sk -m 8 https://127.0.0.1:6443/livez?verbose | grep -q '\\[-\\]etcd '",
                    check=False,
                ).returncode
                == 0
            ),
            90,
            f"the API server of {target} to miss etcd",
        )

    def undo(self, cluster, target):
        super().undo(cluster, target)
        cluster.exec(target, ["pkill", "-CONT", "-x", ETCD], check=False)

    def expect(self, cluster, target):
        return {("KM145", None, ETCD), ("KM170", target, API_SERVER)}

    def consequences(self, cluster, target):
        """Name who asks the API server of that master."""
        return {
            ("KM144", None, ETCD),
            ("KM525", target, "kubelet"),
            ("KM529", target, "kubelet"),
            *((code, target, name) for code in ("KM118", "KM114") for name in (MANAGER, SCHEDULER)),
        }


INCIDENT = EtcdStopped()
