# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A Job whose template names its node wants more pods at a time than that node has CPUs for.

The kubelet rejects them with OutOfcpu, again and again.
"""

from __future__ import annotations

import json

from tests.lab.support import gpu, jobs
from tests.lab.support.incident import Incident

WANTED = 3


class CpuOversubscribed(Incident):
    name = "cpu-oversubscribed"
    title = "a Job with nodeName wants more pods on a worker than its CPUs are enough for"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        namespace = jobs.new_namespace()
        self.remember(cluster, target, namespace=namespace)
        jobs.create_namespace(cluster, namespace)
        cpus = json.loads(cluster.kubectl("get", "node", target, "-o", "json").stdout)["status"][
            "allocatable"
        ]["cpu"]
        millis = int(cpus[:-1]) if cpus.endswith("m") else int(cpus) * 1000
        spec = jobs.pod_spec(cluster, nodeName=target)
        # two find room
        spec["containers"][0]["resources"] = {"requests": {"cpu": f"{millis * 2 // 5}m"}}
        gpu.create(
            cluster,
            namespace,
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "wide"},
                "spec": {
                    "completions": WANTED,
                    "parallelism": WANTED,
                    "backoffLimit": 50,
                    "template": {"spec": spec},
                },
            },
        )

    def symptom(self, cluster, target):
        namespace = self.record(cluster, target)["namespace"]
        cluster.wait(
            lambda: (
                gpu.rejected(cluster, namespace)
                and len(jobs.running(cluster, namespace)) == WANTED - 1
            ),
            60,
            "a pod to be rejected beside two",
        )

    def undo(self, cluster, target):
        namespace = self.record(cluster, target).get("namespace")
        if namespace:
            jobs.remove(cluster, namespace)

    def expect(self, cluster, target):
        return {("KM320", target, None), ("KM321", target, None)}


INCIDENT = CpuOversubscribed()
