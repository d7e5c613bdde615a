# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A power cut left a worker's containerd a configuration of 0 bytes.

It starts with its defaults, and says nothing of it.
"""

from __future__ import annotations

from tests.lab.incidents.cgroup_driver import CONFIG
from tests.lab.incidents.runtime_stopped import ready
from tests.lab.support.incident import Incident


class RuntimeConfigEmptied(Incident):
    name = "runtime-config-emptied"
    title = "the configuration of a worker's containerd is an empty file"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        assert self.keep(cluster, target, target, CONFIG)
        cluster.write(target, CONFIG, "")
        cluster.exec(target, ["systemctl", "restart", "containerd"])

    def symptom(self, cluster, target):
        has = cluster.exec(target, "containerd config dump").stdout.decode()
        assert cluster.state["pause"] not in has, has
        assert "SystemdCgroup = true" not in has, has
        assert (
            cluster.exec(target, ["systemctl", "is-active", "containerd"]).stdout.strip()
            == b"active"
        )

    def undo(self, cluster, target):
        self.restore(cluster, target)
        cluster.exec(target, ["systemctl", "restart", "containerd"])
        cluster.wait(lambda: ready(cluster, target), 240, f"{target} to be Ready")

    def expect(self, cluster, target):
        return {("KM508", target, "containerd")}

    def consequences(self, cluster, target):
        # Its default is another folder of network plugins than the lab's.
        return {("KM604", target, None)}


INCIDENT = RuntimeConfigEmptied()
