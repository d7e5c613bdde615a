# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every certificate of one master that kubeadm made has ended, and the master was rebooted."""

from __future__ import annotations

from tests.lab.support import expired_certificates as certificates
from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import API_SERVER, MANAGER, SCHEDULER


class CertificatesExpired(Incident):
    name = "certificates-expired"
    title = "every leaf certificate of one master has expired"
    occupies = "control_plane"

    def masters(self, cluster, target):
        return [cluster.node(target)]

    def break_(self, cluster, target):
        certificates.expire(cluster, self.masters(cluster, target))

    def symptom(self, cluster, target):
        for node in self.masters(cluster, target):
            cluster.wait(
                # etcd serves no client before it has a quorum
                lambda node=node: "2021" in certificates.shown_end(cluster, node, 2380),
                180,
                f"etcd of {node.name} to show its expired certificate",
            )
            cluster.wait(
                lambda node=node: not certificates.is_ready(cluster, node),
                180,
                f"the API server of {node.name} to be refused by etcd",
            )

    def undo(self, cluster, target):
        certificates.restore(cluster, self.masters(cluster, target))

    def expect(self, cluster, target):
        return {
            (code, node.name, None)
            for node in self.masters(cluster, target)
            for code in ("KM120", "KM126")
        }

    def consequences(self, cluster, target):
        """List what ends again and again without the API server of that master."""
        found = {("KM142", None, "etcd"), ("KM146", None, "etcd")}
        for node in self.masters(cluster, target):
            found |= {
                (code, node.name, component)
                for code in ("KM114", "KM118")
                for component in (API_SERVER, MANAGER, SCHEDULER, certificates.ETCD)
            }
            found |= {("KM178", node.name, API_SERVER), ("KM170", node.name, API_SERVER)}
        return found


INCIDENT = CertificatesExpired()
