# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The state is of a machine with three CPUs, as after a resize: the kubelet does not start."""

from __future__ import annotations

from tests.lab.support import pinning


class PinningCpusChanged(pinning.Pinning):
    name = "pinning-cpus-changed"
    title = "a worker's state names a CPU that the machine has no more"
    faults = ("KM305",)

    def fill(self, cluster, target, namespace):
        pinning.stop(cluster, target)
        pinning.edit(cluster, target, checksum=0, defaultCpuSet="0-2")
        pinning.fail(cluster, target, "doesn't match with CPUs in state")


INCIDENT = PinningCpusChanged()
