# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The manifest is edited while the kubelet is stopped.

File and process disagree until the kubelet is back.
"""

from __future__ import annotations

from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import SCHEDULER, manifest, processes, set_flag


class EditedWhileKubeletStopped(Incident):
    name = "edited-while-kubelet-stopped"
    title = "--leader-elect=false is written while the master's kubelet is stopped"

    def break_(self, cluster, target):
        text = self.keep(cluster, target, target, manifest(SCHEDULER)).decode()
        cluster.exec(target, ["systemctl", "stop", "kubelet"])
        cluster.write(target, manifest(SCHEDULER), set_flag(text, "leader-elect", "false"))

    def symptom(self, cluster, target):
        state = (
            cluster.exec(target, ["systemctl", "is-active", "kubelet"], check=False)
            .stdout.decode()
            .strip()
        )
        running = processes(cluster, target, SCHEDULER)
        assert state == "inactive", f"kubelet of {target} is {state}"
        assert len(running) == 1, f"scheduler of {target}: {running}"
        assert "--leader-elect=true" in running[0][1], f"scheduler of {target}: {running}"
        assert b"--leader-elect=false" in cluster.read(target, manifest(SCHEDULER))

    def undo(self, cluster, target):
        # The file first: a kubelet that starts over the broken one would make two leaders for a
        # moment.
        self.restore(cluster, target)
        cluster.exec(target, ["systemctl", "start", "kubelet"])

    def expect(self, cluster, target):
        return {
            ("KM103", target, SCHEDULER),
            ("KM108", target, SCHEDULER),
            ("KM502", target, "kubelet"),
        }


INCIDENT = EditedWhileKubeletStopped()
