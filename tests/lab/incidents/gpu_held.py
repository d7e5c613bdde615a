# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A pod that does not end holds its devices: the next one finds none."""

from __future__ import annotations

from tests.lab.support import gpu


class GpuHeld(gpu.Gpu):
    name = "gpu-held"
    title = "a pod on a worker is terminating for ever and holds its devices"
    faults = ("KM320", "KM322")

    def fill(self, cluster, target, namespace):
        # The first process of a container ignores every signal that it does not handle, but the one
        # that nobody can.
        gpu.create(
            cluster,
            namespace,
            gpu.pod(cluster, "stuck", 2, nodeName=target, terminationGracePeriodSeconds=600),
        )
        gpu.wait_running(cluster, namespace, "stuck")
        cluster.kubectl("-n", namespace, "delete", "pod", "stuck", "--wait=false")
        cluster.wait(
            lambda: gpu.pods(cluster, namespace)[0]["metadata"].get("deletionTimestamp"),
            30,
            "the pod to be terminating",
        )
        gpu.create(
            cluster,
            namespace,
            gpu.job(cluster, "next", 2, nodeSelector={"kubernetes.io/hostname": target}),
        )
        self.bind(cluster, target, namespace)

    @staticmethod
    def bind(cluster, target, namespace):
        """Bind a pod like a batch scheduler that counts a terminating pod as gone."""
        name = cluster.wait(
            lambda: [
                one["metadata"]["name"]
                for one in gpu.pods(cluster, namespace)
                if one["metadata"]["name"].startswith("next")
            ],
            30,
            "the next pod",
        )[0]
        gpu.bind(cluster, namespace, name, target)

    def undo(self, cluster, target):
        namespace = self.record(cluster, target).get("namespace")
        if namespace:
            cluster.kubectl(
                "-n",
                namespace,
                "delete",
                "pod",
                "stuck",
                "--ignore-not-found",
                "--grace-period=0",
                "--force",
                "--wait=false",
                check=False,
            )
        super().undo(cluster, target)


INCIDENT = GpuHeld()
