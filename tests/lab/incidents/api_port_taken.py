# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Another program has the port of an API server, which cannot start."""

from __future__ import annotations

from tests.lab.support.api_server import ApiServerIncident
from tests.lab.support.static_pod import API_SERVER, manifest, processes

UNIT = "lab-port"
LISTEN = (
    "import socket,time; s=socket.create_server((str(), 6443), family=socket.AF_INET6,"
    " dualstack_ipv6=True); time.sleep(3600)"
)


class ApiPortTaken(ApiServerIncident):
    name = "api-port-taken"
    title = "a program that says nothing has port 6443 of one master"

    def break_(self, cluster, target):
        self.keep(cluster, target, target, manifest(API_SERVER))
        cluster.exec(target, ["rm", "-f", manifest(API_SERVER)])
        cluster.wait(
            lambda: not processes(cluster, target, API_SERVER), 120, "the API server to end"
        )
        cluster.exec(target, ["systemd-run", f"--unit={UNIT}", "python3", "-c", LISTEN])
        self.restore(cluster, target)

    def symptom(self, cluster, target):
        self.ended(cluster, target, "address already in use")

    def undo(self, cluster, target):
        cluster.exec(target, ["systemctl", "stop", UNIT], check=False)
        super().undo(cluster, target)

    def expect(self, cluster, target):
        return {("KM173", target, API_SERVER)}


INCIDENT = ApiPortTaken()
