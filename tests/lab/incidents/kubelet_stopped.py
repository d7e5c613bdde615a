# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Somebody stopped a worker's kubelet and forgot it."""

from __future__ import annotations

from tests.lab.support.incident import Incident


class KubeletStopped(Incident):
    name = "kubelet-stopped"
    title = "a worker's kubelet was stopped by hand"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        cluster.exec(target, ["systemctl", "stop", "kubelet"])

    def symptom(self, cluster, target):
        said = (
            cluster.exec(target, ["systemctl", "is-active", "kubelet"], check=False)
            .stdout.decode()
            .strip()
        )
        assert said == "inactive", said

    def undo(self, cluster, target):
        cluster.exec(target, ["systemctl", "start", "kubelet"])

    def expect(self, cluster, target):
        return {("KM502", target, "kubelet")}


INCIDENT = KubeletStopped()
