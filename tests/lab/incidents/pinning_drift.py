# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Another tool wrote a pinned container's cpuset: the newest kubelets do not notice."""

from __future__ import annotations

import time

from tests.lab.support import gpu, pinning


class PinningDrift(pinning.Pinning):
    name = "pinning-drift"
    title = "a pinned container of a worker runs on other CPUs than its state says"
    faults = ("KM308",)

    def applies(self, version):
        """Kubelets up to 1.20 write every set again within ten seconds."""
        return version >= (1, 23)

    def fill(self, cluster, target, namespace):
        gpu.create(cluster, namespace, pinning.pod(cluster, "pinned", target))
        pinning.wait_pinned(cluster, target)
        # What was decided half a minute ago has arrived.
        cluster.wait(lambda: pinning.age(cluster, target) > 35, 60, "the state to settle", every=2)
        pinning.widen(cluster, target)

    def symptom(self, cluster, target):
        time.sleep(12)  # a reconcile period: it does not come back
        assert pinning.widened(cluster, target)


INCIDENT = PinningDrift()
