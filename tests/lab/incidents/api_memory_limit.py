# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The memory of an API server is limited to less than it needs: the kernel kills it."""

from __future__ import annotations

from tests.lab.support.api_server import ApiServerIncident
from tests.lab.support.static_pod import API_SERVER

LIMIT = "96Mi"


class ApiMemoryLimit(ApiServerIncident):
    name = "api-memory-limit"
    title = f"the API server of one master has a memory limit of {LIMIT}"

    def break_(self, cluster, target):
        limits = rf"\g<0>\n\g<1>  limits:\n\g<1>    memory: {LIMIT}"
        self.edit(cluster, target, r"^( +)resources:$", limits)

    def symptom(self, cluster, target):
        cluster.wait(
            lambda: (
                b"kube-apiserver"
                in cluster.exec(
                    target, "dmesg | grep 'Memory cgroup out of memory' | tail -3", check=False
                ).stdout
            ),
            180,
            "the kernel to kill the API server",
        )

    def expect(self, cluster, target):
        return {("KM172", target, API_SERVER)}


INCIDENT = ApiMemoryLimit()
