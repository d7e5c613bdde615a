# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Somebody masked a worker's kubelet, which runs on until it ends."""

from __future__ import annotations

from tests.lab.support.incident import Incident


class KubeletMasked(Incident):
    name = "kubelet-masked"
    title = "a worker's kubelet is masked, on purpose"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        cluster.exec(target, ["systemctl", "mask", "kubelet"])

    def symptom(self, cluster, target):
        said = (
            cluster.exec(target, ["systemctl", "is-enabled", "kubelet"], check=False)
            .stdout.decode()
            .strip()
        )
        assert said == "masked", said

    def undo(self, cluster, target):
        cluster.exec(target, "systemctl unmask kubelet; systemctl start kubelet")

    def expect(self, cluster, target):
        return {("KM503", target, "kubelet")}


INCIDENT = KubeletMasked()
