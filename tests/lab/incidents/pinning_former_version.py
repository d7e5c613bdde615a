# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""cpu_manager_state is of a kubelet up to 1.17 and names a container that the runtime has no more.

As an upgrade with a new runtime leaves it.
"""

from __future__ import annotations

from tests.lab.support import gpu, pinning


class PinningFormerVersion(pinning.Pinning):
    name = "pinning-former-version"
    title = "a worker's state is of a kubelet up to 1.17, and its container is gone"
    faults = ("KM303",)

    def fill(self, cluster, target, namespace):
        gpu.create(cluster, namespace, pinning.pod(cluster, "shares", target, "100m"))
        gpu.wait_running(cluster, namespace, "shares")
        pinning.stop(cluster, target)
        pinning.edit(cluster, target, checksum=0, defaultCpuSet="0", entries={"5a264048" * 8: "1"})
        pinning.fail(cluster, target, "not found in initial containers list")


INCIDENT = PinningFormerVersion()
