# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A power cut left a worker's containerd a database of zeros.

It runs and answers, and has neither containers nor images, and no CRI.
"""

from __future__ import annotations

from tests.lab.incidents.runtime_stopped import ready
from tests.lab.support.incident import Incident

FILE = "/var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db"
# of the same volume, and too big for the incident's record
SAVED = "/var/lib/containerd/kubemend-lab-meta.db"


class RuntimeMetadata(Incident):
    name = "runtime-metadata"
    title = "the database of a worker's containerd is damaged"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        cluster.exec(
            target,
            f"set -e; systemctl stop containerd; [ -e {SAVED} ] || {{ cp -p {FILE} {SAVED}.new; mv"
            f" {SAVED}.new {SAVED}; }}; size=$(stat -c %s {FILE}); truncate -s 0 {FILE}; truncate"
            f" -s $size {FILE}; systemctl start containerd",
        )

    def symptom(self, cluster, target):
        cluster.wait(
            lambda: (
                b"invalid database"
                in cluster.exec(
                    target, "journalctl -q -u containerd --since -600s -o cat; true"
                ).stdout
            ),
            120,
            f"the containerd of {target} to say that its database is none",
        )
        cluster.wait(lambda: not ready(cluster, target), 240, f"{target} to be NotReady")

    def undo(self, cluster, target):
        cluster.exec(
            target,
            f"[ ! -e {SAVED} ] || {{ systemctl stop containerd; cp -p {SAVED} {FILE} && rm -f"
            f" {SAVED}; }}; systemctl reset-failed containerd kubelet; systemctl start containerd;"
            " systemctl start kubelet",
        )
        cluster.wait(lambda: ready(cluster, target), 240, f"{target} to be Ready again")

    def expect(self, cluster, target):
        return {("KM508", target, "containerd")}


INCIDENT = RuntimeMetadata()
