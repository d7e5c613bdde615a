# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker's kubelet does not come up again.

The inotify instances that the kernel gives root are too few for so many nodes on one kernel.

Under the kernel's own default, 128, where the lab has enough nodes for that (seven and more); with
fewer, under what they hold and two more.
"""

from __future__ import annotations

from tests.lab.support import limits, pinning

NEEDED = 8  # by a kubelet that starts, or more


class InotifyDefault(limits.Limits):
    name = "inotify-default"
    title = "a worker's kubelet finds no inotify instance, because too few are allowed"
    occupies = "kernel"
    faults = (("KM402", limits.INSTANCES), ("KM407", limits.INSTANCES))
    elsewhere = faults

    def break_(self, cluster, target):
        self.remember(cluster, target, since=int(cluster.exec(target, ["date", "+%s"]).stdout))
        pinning.stop(cluster, target)
        used = limits.instances()
        limits.may(limits.DEFAULT if used + NEEDED > limits.DEFAULT else used + 2)
        self.remember(cluster, target, filler=limits.fill())
        cluster.exec(target, "systemctl reset-failed kubelet; systemctl start --no-block kubelet")

    def symptom(self, cluster, target):
        # the words of v1.18.4 and of v1.36.3, of cAdvisor and of whatever else wants to watch a
        # file
        said = (
            f"journalctl -q -u kubelet --since @{self.record(cluster, target)['since']} -o cat;"
            " true"
        )
        cluster.wait(
            lambda: b"too many open files" in cluster.exec(target, said).stdout,
            120,
            f"the kubelet of {target} to say too many open files",
        )

    def undo(self, cluster, target):
        limits.restored()
        limits.emptied(self.record(cluster, target).get("filler"))
        for node in cluster.nodes:
            cluster.exec(node, ["rm", "-f", limits.FILE])
        pinning.start(cluster, target)


INCIDENT = InotifyDefault()
