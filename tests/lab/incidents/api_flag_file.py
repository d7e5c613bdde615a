# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A flag of an API server names a file of the host that its pod does not mount."""

from __future__ import annotations

from tests.lab.support.api_server import ApiServerIncident
from tests.lab.support.static_pod import API_SERVER

POLICY = "/srv/audit/policy.yaml"
TEXT = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n"


class ApiFlagFile(ApiServerIncident):
    name = "api-flag-file"
    title = f"--audit-policy-file={POLICY} without a volume for it"

    def break_(self, cluster, target):
        cluster.exec(target, ["mkdir", "-p", "/srv/audit"])
        cluster.write(target, POLICY, TEXT)
        flag = rf"\g<0>\n\g<1>--audit-policy-file={POLICY}"
        self.edit(cluster, target, r"^( +- )kube-apiserver$", flag)

    def symptom(self, cluster, target):
        self.ended(cluster, target, POLICY)

    def undo(self, cluster, target):
        super().undo(cluster, target)
        cluster.exec(target, ["rm", "-rf", "/srv/audit"])

    def expect(self, cluster, target):
        return {("KM174", target, API_SERVER)}


INCIDENT = ApiFlagFile()
