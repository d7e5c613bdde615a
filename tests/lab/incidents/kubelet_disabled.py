# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's kubelet runs and is not enabled: the next power cut takes the node with it."""

from __future__ import annotations

from tests.lab.support.incident import Incident


class KubeletDisabled(Incident):
    name = "kubelet-disabled"
    title = "a worker's kubelet runs, and is not enabled at boot"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        cluster.exec(target, ["systemctl", "disable", "--no-reload", "kubelet"])

    def symptom(self, cluster, target):
        said = (
            cluster.exec(target, ["systemctl", "is-enabled", "kubelet"], check=False)
            .stdout.decode()
            .strip()
        )
        assert said == "disabled", said

    def undo(self, cluster, target):
        cluster.exec(target, ["systemctl", "enable", "--no-reload", "kubelet"])
        # A node that was restarted meanwhile has none.
        cluster.exec(target, ["systemctl", "start", "kubelet"])

    def expect(self, cluster, target):
        return {("KM501", target, "kubelet")}


INCIDENT = KubeletDisabled()
