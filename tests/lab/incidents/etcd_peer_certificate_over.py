# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A peer certificate of etcd has ended: nothing shows until its member has to connect again."""

from __future__ import annotations

from tests.lab.support.certificates import DAY, PKI, signed
from tests.lab.support.incident import Incident

CERTIFICATE = f"{PKI}/etcd/peer.crt"


class EtcdPeerCertificateOver(Incident):
    name = "etcd-peer-certificate-over"
    title = "the peer certificate of a member of etcd is expired, and its connections are open"
    occupies = "cluster"
    target = "m3"

    def break_(self, cluster, target):
        self.keep(cluster, target, target, CERTIFICATE)
        former = signed(cluster, target, CERTIFICATE, -DAY, authority=f"{PKI}/etcd/ca")
        cluster.write(target, CERTIFICATE, former)

    def symptom(self, cluster, target):
        """Nothing shows."""

    def expect(self, cluster, target):
        return {("KM120", target, None)}


INCIDENT = EtcdPeerCertificateOver()
