# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every API server is gone while the two leaders run on: the nodes alone must tell."""

from __future__ import annotations

from tests.lab.incidents.two_leaders import TwoLeaders
from tests.lab.support.static_pod import (
    API_SERVER,
    MANAGER,
    MANIFESTS,
    SCHEDULER,
    manifest,
    processes,
)

ASIDE = "/etc/kubernetes/lab-api-down"


class ApiDown(TwoLeaders):
    name = "api-down"
    title = "two leaders, and the manifest of every API server is moved away"
    occupies = "cluster"

    def symptom(self, cluster, target):
        super().symptom(cluster, target)
        for master in cluster.of_role("master"):
            cluster.exec(master, f"mkdir -p {ASIDE} && mv {manifest(API_SERVER)} {ASIDE}/")
        for master in cluster.of_role("master"):
            cluster.wait(
                lambda node=master: not processes(cluster, node, API_SERVER),
                120,
                f"the API server of {master.name} to end",
            )

    def undo(self, cluster, target):
        for master in cluster.of_role("master"):
            # The kubelet's start forgets the back-off of components that crashed while no API
            # answered.
            aside = f"{ASIDE}/{API_SERVER}.yaml"
            cluster.exec(
                master,
                f"if [ -e {aside} ]; then mv {aside} {MANIFESTS}/; fi; rm -rf {ASIDE};"
                " systemctl restart kubelet",
            )
        for master in cluster.of_role("master"):
            cluster.wait(
                lambda node=master: (
                    cluster.kubectl("get", "--raw", "/healthz", check=False, node=node).stdout
                    == b"ok"
                ),
                180,
                f"the API server of {master.name}",
            )
        super().undo(cluster, target)

    def expect(self, cluster, target):
        leaders = {("KM101", target, component) for component in self.components}
        return leaders | {
            ("KM179", master.name, API_SERVER) for master in cluster.of_role("master")
        }

    def expect_unknown(self, cluster, target):
        return {("KM113", None)}

    def consequences(self, cluster, target):
        """Who cannot renew its lock exits.

        The kubelet starts it again until an API server answers.
        """
        return {
            ("KM114", master.name, component)
            for master in cluster.of_role("master")
            for component in (MANAGER, SCHEDULER)
        }


INCIDENT = ApiDown()
