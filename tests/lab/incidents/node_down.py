# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker that is gone for the API and for ssh alike, as a machine without power is."""

from __future__ import annotations

from tests.lab.support.incident import Incident


class NodeDown(Incident):
    name = "node-down"
    title = "a worker's kubelet posts nothing any more, and its ssh does not answer"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        cluster.exec(target, ["systemctl", "stop", "kubelet"])
        cluster.block_ssh(target)

    def symptom(self, cluster, target):
        cluster.wait(
            lambda: (
                cluster.kubectl(
                    "get",
                    "node",
                    target,
                    "-o",
                    'jsonpath={.status.conditions[?(@.type=="Ready")].status}',
                ).stdout
                == b"Unknown"
            ),
            120,
            f"{target} to be NotReady",
        )

    def undo(self, cluster, target):
        cluster.unblock_ssh(target)
        cluster.exec(target, ["systemctl", "start", "kubelet"])

    def expect(self, cluster, target):
        return {("KM512", target, None), ("KM901", target, None)}


INCIDENT = NodeDown()
