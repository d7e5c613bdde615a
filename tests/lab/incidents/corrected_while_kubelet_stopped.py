# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The file was corrected while the kubelet was dead.

The process goes on without election, and no file shows it.
"""

from __future__ import annotations

from tests.lab.incidents.edited_while_kubelet_stopped import EditedWhileKubeletStopped
from tests.lab.incidents.two_leaders import OFF, TwoLeaders
from tests.lab.support.static_pod import SCHEDULER, manifest, processes


class MendedWhileKubeletStopped(TwoLeaders):
    name = "corrected-while-kubelet-stopped"
    title = (
        "election off in the running scheduler only: its manifest was corrected while the kubele"
        "t was"
        " stopped"
    )
    components = (SCHEDULER,)

    def symptom(self, cluster, target):
        super().symptom(cluster, target)
        cluster.exec(target, ["systemctl", "stop", "kubelet"])
        self.restore(cluster, target)
        running = processes(cluster, target, SCHEDULER)
        assert len(running) == 1, f"scheduler of {target}: {running}"
        assert OFF in running[0][1], f"scheduler of {target}: {running}"
        assert OFF.encode() not in cluster.read(target, manifest(SCHEDULER))

    undo = EditedWhileKubeletStopped.undo

    def expect(self, cluster, target):
        return {
            ("KM102", target, SCHEDULER),
            ("KM108", target, SCHEDULER),
            ("KM502", target, "kubelet"),
        }


INCIDENT = MendedWhileKubeletStopped()
