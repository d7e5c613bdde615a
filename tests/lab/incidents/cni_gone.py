# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a worker's network plugin wrote is gone: the runtime has no network for pods."""

from __future__ import annotations

import json
import time
from datetime import datetime

from tests.lab.support.incident import Incident

CONFIG = "/etc/cni/net.d/10-lab.conflist"


class CniGone(Incident):
    name = "cni-gone"
    title = "the CNI configuration of a worker is gone, and its runtime has noticed"
    occupies = "worker"
    target = "w1"

    def break_(self, cluster, target):
        self.keep(cluster, target, target, CONFIG)
        cluster.wait(
            lambda: self._age(cluster, target) > 130,
            150,
            f"{target} to be no node that has just joined",
        )
        # containerd watches the folder
        cluster.exec(target, ["rm", "-f", CONFIG])

    def _age(self, cluster, target) -> float:
        made = cluster.kubectl(
            "get", "node", target, "-o", "jsonpath={.metadata.creationTimestamp}"
        ).stdout.decode()
        return time.time() - datetime.fromisoformat(made.replace("Z", "+00:00")).timestamp()

    def symptom(self, cluster, target):
        def told():
            conditions = json.loads(cluster.kubectl("get", "node", target, "-o", "json").stdout)[
                "status"
            ]["conditions"]
            ready = next(one for one in conditions if one["type"] == "Ready")
            if ready["status"] != "False" or "NetworkReady=false" not in ready["message"]:
                raise ValueError(f"the kubelet says {ready}")
            return True

        cluster.wait(told, 180, f"{target} to be NotReady without a network")

    def undo(self, cluster, target):
        self.restore(cluster, target)
        cluster.wait(
            lambda: (
                cluster.kubectl(
                    "get",
                    "node",
                    target,
                    "-o",
                    'jsonpath={.status.conditions[?(@.type=="Ready")].status}',
                ).stdout
                == b"True"
            ),
            240,
            f"{target} to be Ready",
        )

    def expect(self, cluster, target):
        return {("KM519", target, None)}


INCIDENT = CniGone()
