# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Incident B: a worker of another zone joins after the list of nodes; the scheduler loses a node.

It loses a master for good.
"""

from __future__ import annotations

import json

from tests.lab.support import jobs, zones
from tests.lab.support.incident import Incident
from tests.lab.support.static_pod import SCHEDULER

# From then on a refusal is no passing one (SETTLED_SECONDS of KM202).
SETTLED = 63


class SchedulerForgetsNode(Incident):
    name = "scheduler-forgets-node"
    title = (
        "the worker's Node is made again with a zone of its own, and a DaemonSet's pod for one of"
        " the masters stays Pending"
    )
    occupies = "cluster"
    target = "w1"

    def applies(self, version):
        return (1, 18, 0) <= version <= (1, 18, 6)

    def break_(self, cluster, target):
        namespace = jobs.new_namespace()
        self.remember(cluster, target, namespace=namespace)
        jobs.create_namespace(cluster, namespace)
        zones.another_leads(cluster)  # whose cursors stand at the beginning
        zones.one_round(cluster, namespace)
        former = json.loads(cluster.kubectl("get", "node", target, "-o", "json").stdout)
        self.remember(cluster, target, node=former)
        zones.remove_node(cluster, target)
        # else it would not be a new one to the scheduler
        zones.one_round(cluster, namespace, "second")
        zones.make_node(cluster, former, zones.labels(cluster.k8s, "200004"))
        zones.daemon_set(cluster, namespace)

    def symptom(self, cluster, target):
        namespace = self.record(cluster, target)["namespace"]
        self.remember(cluster, target, lost=zones.wait_lost(cluster, namespace, SETTLED))

    def undo(self, cluster, target):
        record = self.record(cluster, target)
        if "namespace" in record:
            jobs.remove(cluster, record["namespace"])
        if "node" in record:
            zones.remove_node(cluster, target)
            zones.make_node(cluster, record["node"])
            zones.another_leads(cluster)  # the list of the one that leads may lack a node

    def expect(self, cluster, target):
        return {
            ("KM201", None, SCHEDULER),
            ("KM202", self.record(cluster, target)["lost"], SCHEDULER),
        }


INCIDENT = SchedulerForgetsNode()
