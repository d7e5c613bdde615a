# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A kubelet that was restarted while its device plugin did not come up.

The plugin's pod is in a crash loop.

What it says is in its log alone, as plugins do; in its report the collector read it there.
"""

from __future__ import annotations

from tests.lab.cluster.node import execute
from tests.lab.support import gpu


class GpuPluginGone(gpu.Gpu):
    name = "gpu-plugin-gone"
    title = "a worker's kubelet was restarted and its device plugin does not come back"
    faults = ("KM320", "KM324", "KM325")

    def fill(self, cluster, target, namespace):
        plugin = gpu.pod(cluster, "plugin", 0, nodeName=target, restartPolicy="Always")
        container = plugin["spec"]["containers"][0]
        del container["resources"]
        container.update(
            command=["/bin/sh", "-c", "echo 'inotify_init1: too many open files' >&2; exit 1"],
            volumeMounts=[{"name": "plugins", "mountPath": "/var/lib/kubelet/device-plugins"}],
        )
        plugin["spec"]["volumes"] = [
            {"name": "plugins", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}}
        ]
        gpu.create(cluster, namespace, plugin)
        execute(cluster.node(target), ["systemctl", "stop", gpu.UNIT])
        execute(cluster.node(target), ["systemctl", "restart", "kubelet"])
        gpu.wait_devices(cluster, target, [0, 0])
        gpu.create(cluster, namespace, gpu.job(cluster, "work", 1, nodeName=target))

    def symptom(self, cluster, target):
        super().symptom(cluster, target)
        namespace = self.record(cluster, target)["namespace"]

        def loops():
            found = [
                one["status"].get("containerStatuses") or [{}]
                for one in gpu.pods(cluster, namespace)
                if one["metadata"]["name"] == "plugin"
            ]
            return found and found[0][0].get("restartCount", 0) > 0

        cluster.wait(loops, 120, "the plugin's pod to end and be started again")


INCIDENT = GpuPluginGone()
