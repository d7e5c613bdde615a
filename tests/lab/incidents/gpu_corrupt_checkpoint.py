# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Somebody edited the kubelet's device checkpoint: its checksum is that of other bytes."""

from __future__ import annotations

import json

from tests.lab.support import gpu


class GpuCorruptCheckpoint(gpu.Gpu):
    name = "gpu-corrupt-checkpoint"
    title = "a worker's device checkpoint was edited"
    faults = ("KM327",)
    wants_rejected = False

    def fill(self, cluster, target, namespace):
        gpu.create(cluster, namespace, gpu.job(cluster, "work", 1, nodeName=target))
        gpu.wait_running(cluster, namespace, "work")
        record = json.loads(cluster.read(target, gpu.CHECKPOINT))
        record["Data"]["PodDeviceEntries"][0]["ContainerName"] = "somebody-else"
        cluster.write(target, gpu.CHECKPOINT, json.dumps(record, separators=(",", ":")))


INCIDENT = GpuCorruptCheckpoint()
