# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The kubeconfig of a controller manager was renewed, and the process still has the former one."""

from __future__ import annotations

from tests.lab.support.certificates import DAY, kubeconfig_signed
from tests.lab.support.incident import Incident

CONF = "/etc/kubernetes/controller-manager.conf"


class CertificateNotLoaded(Incident):
    name = "certificate-not-loaded"
    title = "controller-manager.conf is renewed, and the controller manager runs on"

    def break_(self, cluster, target):
        self.keep(cluster, target, target, CONF)
        cluster.write(target, CONF, kubeconfig_signed(cluster, target, CONF, 365 * DAY))

    def symptom(self, cluster, target):
        """Nothing shows, until the certificate that the process has ends."""

    def expect(self, cluster, target):
        return {("KM122", target, None)}


INCIDENT = CertificateNotLoaded()
