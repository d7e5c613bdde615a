# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A pinned container is left frozen, as old releases of runc left some: no fault of the state."""

from __future__ import annotations

from tests.lab.support import gpu, pinning


class PinningFrozen(pinning.Pinning):
    name = "pinning-frozen"
    title = "a pinned container of a worker is frozen"
    faults = ("KM311",)

    def fill(self, cluster, target, namespace):
        gpu.create(cluster, namespace, pinning.pod(cluster, "pinned", target))
        pinning.wait_pinned(cluster, target)
        pinning.freeze(cluster, target, "FROZEN")

    def undo(self, cluster, target):
        pinning.freeze(cluster, target, "THAWED")
        super().undo(cluster, target)


INCIDENT = PinningFrozen()
