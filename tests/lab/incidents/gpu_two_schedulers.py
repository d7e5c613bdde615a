# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A second scheduler, requested by name, places a pod on devices that the default one gave away."""

from __future__ import annotations

from tests.lab.support import batch_scheduler, gpu, jobs

TRIES = 10


class GpuTwoSchedulers(gpu.Gpu):
    name = "gpu-two-schedulers"
    title = "two schedulers place pods on one worker's devices"
    faults = ("KM205", "KM320")

    def fill(self, cluster, target, namespace):
        """Hold the second scheduler until the first has given the devices away.

        It hears of its own pod before it hears of that.
        """
        batch_scheduler.start(cluster, namespace)
        chosen = {"nodeSelector": {"kubernetes.io/hostname": target}}
        for number in range(TRIES):
            batch_scheduler.signal(cluster, "STOP")
            batch = gpu.pod(
                cluster, f"batch-{number}", 2, schedulerName=batch_scheduler.NAME, **chosen
            )
            between = [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": f"between-{index}", "labels": {"between": "yes"}},
                    "spec": jobs.pod_spec(cluster, schedulerName="nobody"),
                }
                for index in range(60)
            ]
            gpu.create(
                cluster,
                namespace,
                batch,
                *between,
                gpu.pod(cluster, f"usual-{number}", 2, **chosen),
            )
            gpu.wait_running(cluster, namespace, f"usual-{number}")
            batch_scheduler.signal(cluster, "CONT")
            placed = self._placed(cluster, namespace, f"batch-{number}")
            cluster.kubectl("-n", namespace, "delete", "pod", "-l", "between=yes", timeout=120)
            if placed:
                return
            cluster.kubectl(
                "-n", namespace, "delete", "pod", f"batch-{number}", f"usual-{number}", timeout=120
            )
        raise TimeoutError(
            f"the second scheduler saw in each of {TRIES} tries that the devices were gone"
        )

    @staticmethod
    def _placed(cluster, namespace, name):
        """Return whether it placed its pod although the devices were gone.

        It says so soon, either way.
        """

        def said():
            (pod,) = (
                one for one in gpu.pods(cluster, namespace) if one["metadata"]["name"] == name
            )
            return (
                [bool(pod["spec"].get("nodeName"))]
                if pod["spec"].get("nodeName") or pod["status"].get("conditions")
                else None
            )

        return cluster.wait(said, 30, f"the second scheduler to say what becomes of {name}")[0]

    def undo(self, cluster, target):
        batch_scheduler.remove(cluster)
        super().undo(cluster, target)


INCIDENT = GpuTwoSchedulers()
