# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A backup in the folder of its original: the kubelet reads both, whatever their extension."""

from __future__ import annotations

from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import SCHEDULER, manifest, processes, set_flag


class BackupManifest(Incident):
    name = "backup-manifest"
    title = "kube-scheduler.yaml.bak lies in a master's manifest folder"

    def break_(self, cluster, target):
        path = f"{manifest(SCHEDULER)}.bak"
        text = self.keep(cluster, target, target, manifest(SCHEDULER)).decode()
        self.keep(cluster, target, target, path)
        # Old content, as a backup has it; equal content would have the same pod UID in 1.18 and do
        # nothing there.
        cluster.write(target, path, set_flag(text, "v", "2"), mode="600")

    def symptom(self, cluster, target):
        cluster.wait(
            lambda: any("--v=2" in argv for _pid, argv in processes(cluster, target, SCHEDULER)),
            120,
            f"the scheduler of {target} to be the backup's",
        )

    def expect(self, cluster, target):
        return {("KM109", target, SCHEDULER)}


INCIDENT = BackupManifest()
