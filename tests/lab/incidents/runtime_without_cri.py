# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's containerd has its plugin cri disabled, as docker's packages configure it.

It runs and answers, and the kubelet has no runtime.
"""

from __future__ import annotations

from tests.lab.incidents.runtime_stopped import ready
from tests.lab.support.incident import Incident

CONFIG = "/etc/containerd/config.toml"


class RuntimeWithoutCri(Incident):
    name = "runtime-without-cri"
    title = "a worker's containerd has its plugin cri disabled"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        text = self.keep(cluster, target, target, CONFIG) or b""
        cluster.write(target, CONFIG, b'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n' + text)
        cluster.exec(target, "systemctl restart containerd")

    def symptom(self, cluster, target):
        cluster.wait(lambda: not ready(cluster, target), 240, f"{target} to be NotReady")

    def undo(self, cluster, target):
        self.restore(cluster, target)
        cluster.exec(
            target,
            "systemctl reset-failed containerd kubelet; systemctl restart containerd; systemctl"
            " start kubelet",
        )
        cluster.wait(lambda: ready(cluster, target), 240, f"{target} to be Ready again")

    def expect(self, cluster, target):
        return {("KM508", target, "containerd")}


INCIDENT = RuntimeWithoutCri()
