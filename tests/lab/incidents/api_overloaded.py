# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One client floods an API server that runs few requests at a time with lists."""

from __future__ import annotations

from tests.lab.support.api_server import ApiServerIncident
from tests.lab.support.static_pod import API_SERVER, wait_flag

UNIT, USER, BINDING = "lab-flood", "flooder", "lab-flooder"
# more than the one that its priority level runs at a time, and little for the machine
LOOPS = 5
FLOOD = (
    "for n in $(seq {loops}); do (while :; do curl -sk -o /dev/null -m 30"
    " --cert /root/lab-flood.crt"
    " --key /root/lab-flood.key -H 'Impersonate-User: {user}'"
    " https://127.0.0.1:6443/api/v1/configmaps; done) & done; wait"
)
CREDENTIAL = (
    "for part in certificate key; do grep client-$part-data /etc/kubernetes/admin.conf"
    " | cut -d: -f2 | tr -d ' ' | base64 -d > /root/lab-flood.$part; done;"
    " mv /root/lab-flood.certificate /root/lab-flood.crt; chmod 600 /root/lab-flood.*"
)


class ApiOverloaded(ApiServerIncident):
    name = "api-overloaded"
    title = "an API server with --max-requests-inflight=5, and floods of LIST"

    def applies(self, version):
        # without priority and fairness no server tells whose requests wait
        return version >= (1, 20)

    def break_(self, cluster, target):
        flags = r"\g<0>\n\g<1>--max-requests-inflight=5\n\g<1>--max-mutating-requests-inflight=3"
        cluster.kubectl(
            "create", "clusterrolebinding", BINDING, "--clusterrole=view", f"--user={USER}"
        )
        self.edit(cluster, target, r"^( +- )kube-apiserver$", flags)

    def symptom(self, cluster, target):
        wait_flag(cluster, target, API_SERVER, "--max-requests-inflight=5")
        cluster.exec(target, CREDENTIAL)
        flood = FLOOD.format(loops=LOOPS, user=USER)
        cluster.exec(target, ["systemd-run", f"--unit={UNIT}", "sh", "-c", flood])
        cluster.wait(
            lambda: (
                b"flooder"
                in cluster.kubectl(
                    "get",
                    "--raw",
                    "/debug/api_priority_and_fairness/dump_requests",
                    node=target,
                    check=False,
                ).stdout
            ),
            120,
            "requests to wait",
        )

    def undo(self, cluster, target):
        cluster.exec(target, ["systemctl", "stop", UNIT], check=False)
        cluster.exec(target, "rm -f /root/lab-flood.*")
        super().undo(cluster, target)
        cluster.kubectl("delete", "clusterrolebinding", BINDING, "--ignore-not-found")

    def expect(self, cluster, target):
        return {("KM171", target, API_SERVER)}


INCIDENT = ApiOverloaded()
