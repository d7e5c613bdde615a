# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Incident A as its users met it.

Jobs on a node of their choice get two pods, and the devices are enough for one.
"""

from __future__ import annotations

import time

from tests.lab.incidents.two_leaders_kcm_only import ManagerOnly
from tests.lab.support import gpu, jobs


class GpuTwoLeaders(ManagerOnly):
    name = "gpu-two-leaders"
    title = (
        "two controller managers make a second pod for Jobs with devices, and the kubelet"
        " rejects it"
    )
    occupies = "cluster"
    worker = "w1"

    def break_(self, cluster, target):
        super().break_(cluster, target)
        work = jobs.new_namespace()
        self.remember(cluster, target, work=work)
        gpu.plug(cluster, self.worker)
        jobs.create_namespace(cluster, work)

    def symptom(self, cluster, target):
        super().symptom(cluster, target)
        work = self.record(cluster, target)["work"]
        for number in range(20):
            gpu.create(
                cluster, work, gpu.job(cluster, f"job-{number}", 2, tries=50, nodeName=self.worker)
            )
            cluster.wait(
                lambda: any(
                    one["status"].get("phase") in ("Running", "Failed")
                    for one in gpu.pods(cluster, work)
                ),
                180,
                "a pod of the Job",
            )
            time.sleep(2)
            if gpu.rejected(cluster, work):
                return
            cluster.kubectl("-n", work, "delete", "job", f"job-{number}")
            cluster.wait(lambda: not gpu.pods(cluster, work), 180, "the Job's pods to go")
        raise TimeoutError("no Job got a second pod that was rejected")

    def undo(self, cluster, target):
        super().undo(cluster, target)
        work = self.record(cluster, target).get("work")
        if work:
            jobs.remove(cluster, work)
            gpu.unplug(cluster, self.worker)

    def expect(self, cluster, target):
        return super().expect(cluster, target) | {("KM320", self.worker, None)}


INCIDENT = GpuTwoLeaders()
