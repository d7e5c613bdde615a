# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The static policy without a reserved CPU: the kubelet does not start."""

from __future__ import annotations

from tests.lab.support import pinning


class PinningUnreserved(pinning.Pinning):
    name = "pinning-unreserved"
    title = "a worker is told to pin and reserves nothing"
    faults = ("KM309",)

    settings = None
    says_static = False

    def fill(self, cluster, target, namespace):
        pinning.stop(cluster, target)
        cluster.exec(target, ["rm", "-f", pinning.STATE])
        pinning.configure(cluster, target, {"cpuManagerPolicy": "static"})
        pinning.fail(cluster, target, "reserved CPU resources for static policy")


INCIDENT = PinningUnreserved()
