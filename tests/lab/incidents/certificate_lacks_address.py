# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The certificate of an API server lacks the address by which its own node asks it."""

from __future__ import annotations

from tests.lab.support.certificates import DAY, PKI, signed
from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import MANAGER, SCHEDULER

CERTIFICATE = f"{PKI}/apiserver.crt"
NAMES = (
    "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,"
    "DNS:kubernetes.default.svc.cluster.local,IP:10.96.0.1"
)


class CertificateLacksAddress(Incident):
    name = "certificate-lacks-address"
    title = "the certificate of an API server was made without the address of its node"
    target = "m3"

    def applies(self, version):
        """Return whether the components of a node ask its own server.

        kubeadm up to 1.19 wrote the address of the first one into all kubeconfigs.
        """
        return version >= (1, 20)

    def break_(self, cluster, target):
        self.keep(cluster, target, target, CERTIFICATE)
        lacking = signed(cluster, target, CERTIFICATE, 365 * DAY, names=NAMES)
        cluster.write(target, CERTIFICATE, lacking)

    def symptom(self, cluster, target):
        """Wait until the server shows it: it reads its certificate again within a minute."""
        cluster.wait(lambda: self._is_lacking(cluster, target), 120, "the server to show it")

    def undo(self, cluster, target):
        """Restore the certificate, and wait until the server shows it: the next audit asks it."""
        self.restore(cluster, target)
        cluster.wait(lambda: not self._is_lacking(cluster, target), 120, "the server to show it")

    def _is_lacking(self, cluster, target) -> bool:
        address = cluster.node(target).ip
        said = cluster.exec(
            target,
            f"curl -sS -m 3 --cacert {PKI}/ca.crt https://{address}:6443/version",
            check=False,
        )
        return said.returncode == 60

    def expect(self, cluster, target):
        return {("KM125", None, "certificates")}

    def consequences(self, cluster, target):
        """Who asks this server does not accept it, and says so in its log."""
        return {
            ("KM525", target, "kubelet"),
            ("KM529", target, "kubelet"),
            ("KM118", target, MANAGER),
            ("KM118", target, SCHEDULER),
            ("KM114", target, MANAGER),
            ("KM114", target, SCHEDULER),
        }


INCIDENT = CertificateLacksAddress()
