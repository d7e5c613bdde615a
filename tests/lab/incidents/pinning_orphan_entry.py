# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A pinned pod was deleted while the kubelet was down and its folder removed by hand.

Its CPU stays taken.
"""

from __future__ import annotations

from tests.lab.support import pinning


class PinningOrphanEntry(pinning.Pinning):
    name = "pinning-orphan-entry"
    title = "a worker keeps a CPU for a pod that is gone"
    faults = ("KM307",)

    def fill(self, cluster, target, namespace):
        pinning.stop(cluster, target)
        pinning.edit(
            cluster,
            target,
            checksum=0,
            defaultCpuSet="0",
            entries={"0d0e5b4e-6f7d-4a0e-9c7a-3a5d2c1b0a99": {"work": "1"}},
        )

    def symptom(self, cluster, target):
        """Ask for nothing more: the kubelet is stopped here, so that it does not end again."""
        said = cluster.exec(target, ["systemctl", "is-active", "kubelet"], check=False)
        assert said.stdout.strip() == b"inactive", said.stdout


INCIDENT = PinningOrphanEntry()
