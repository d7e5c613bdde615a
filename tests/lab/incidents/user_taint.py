# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Incident D's own taint: a worker is dedicated, and its Deployment lacks the toleration."""

from __future__ import annotations

import json

from tests.lab.support import gpu, jobs
from tests.lab.support.incident import Incident

TAINT = "caf=log:NoExecute"


class UserTaint(Incident):
    name = "user-taint"
    title = f"a user set {TAINT} on a worker, and a Deployment for it does not tolerate that"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        namespace = jobs.new_namespace()
        self.remember(cluster, target, namespace=namespace)
        cluster.kubectl("taint", "node", target, TAINT)
        jobs.create_namespace(cluster, namespace)
        spec = jobs.pod_spec(cluster, nodeSelector={"kubernetes.io/hostname": target})
        gpu.create(
            cluster,
            namespace,
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "kept-away"},
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": {"app": "kept-away"}},
                    "template": {
                        "metadata": {"labels": {"app": "kept-away"}},
                        "spec": {**spec, "restartPolicy": "Always"},
                    },
                },
            },
        )

    def symptom(self, cluster, target):
        def waits():
            items = json.loads(
                cluster.kubectl(
                    "-n", self.record(cluster, target)["namespace"], "get", "pods", "-o", "json"
                ).stdout
            )["items"]
            told = [
                one.get("message", "")
                for item in items
                for one in item["status"].get("conditions", [])
                if one.get("reason") == "Unschedulable"
            ]
            if not any("taint" in text for text in told):
                raise ValueError(f"the scheduler says {told}")
            return True

        cluster.wait(waits, 180, "a pod to be kept away by the taint")

    def undo(self, cluster, target):
        cluster.kubectl("taint", "node", target, TAINT + "-", check=False)
        namespace = self.record(cluster, target).get("namespace")
        if namespace:
            jobs.remove(cluster, namespace)

    def expect(self, cluster, target):
        return {("KM513", target, None)}


INCIDENT = UserTaint()
