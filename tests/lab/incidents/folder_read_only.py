# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's kubelet directory is read-only, as the kernel makes a file system on a bad disk.

Only the node's own mounts know of it.
"""

from __future__ import annotations

from tests.lab.support.incident import Incident

FOLDER = "/var/lib/kubelet"


class FolderReadOnly(Incident):
    name = "folder-read-only"
    title = "a worker's folder of the kubelet is read-only"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        cluster.exec(target, f"mountpoint -q {FOLDER} && mount -o remount,bind,ro {FOLDER}")

    def symptom(self, cluster, target):
        said = cluster.exec(target, f"touch {FOLDER}/kubemend-lab 2>&1; true").stdout.decode()
        assert "Read-only file system" in said, said

    def undo(self, cluster, target):
        cluster.exec(target, f"mount -o remount,bind,rw {FOLDER} && rm -f {FOLDER}/kubemend-lab")

    def expect(self, cluster, target):
        return {("KM521", target, FOLDER)}


INCIDENT = FolderReadOnly()
