# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The certificate in admin.conf of one master has ended: kubectl there is refused."""

from __future__ import annotations

from tests.lab.support.certificates import DAY, kubeconfig_signed
from tests.lab.support.incident import Incident

CONF = "/etc/kubernetes/admin.conf"


class AdminCertificateOver(Incident):
    name = "admin-certificate-over"
    title = "the certificate in admin.conf of one master is expired"
    # not the first, whose admin.conf the lab itself uses
    target = "m3"

    def break_(self, cluster, target):
        self.keep(cluster, target, target, CONF)
        cluster.write(target, CONF, kubeconfig_signed(cluster, target, CONF, -DAY))

    def symptom(self, cluster, target):
        said = cluster.exec(
            target, ["kubectl", f"--kubeconfig={CONF}", "get", "nodes"], check=False
        )
        assert said.returncode != 0

    def expect(self, cluster, target):
        return {("KM126", target, None)}


INCIDENT = AdminCertificateOver()
