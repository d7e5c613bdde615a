# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The policy was changed and the kubelet restarted.

It finds the state of the former one and exits, again and again.
"""

from __future__ import annotations

from tests.lab.support import pinning


class PinningPolicyChanged(pinning.Pinning):
    name = "pinning-policy-changed"
    title = "a worker's CPU manager policy was changed over its old state"
    faults = ("KM301",)

    settings = None
    says_static = False

    def fill(self, cluster, target, namespace):
        pinning.stop(cluster, target)
        pinning.configure(cluster, target, pinning.STATIC)
        pinning.fail(cluster, target, "differs from state checkpoint policy")


INCIDENT = PinningPolicyChanged()
