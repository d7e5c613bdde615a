# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A power cut left cpu_manager_state empty: the kubelet does not start."""

from __future__ import annotations

from tests.lab.support import pinning


class PinningEmptyState(pinning.Pinning):
    name = "pinning-empty-state"
    title = "a worker's cpu_manager_state is empty"
    faults = ("KM303",)
    says_static = False

    def fill(self, cluster, target, namespace):
        pinning.stop(cluster, target)
        cluster.write(target, pinning.STATE, "")
        pinning.fail(cluster, target, "could not restore state from checkpoint")


INCIDENT = PinningEmptyState()
