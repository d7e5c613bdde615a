# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Zones of nodes, who leads of the schedulers, and a DaemonSet that wants a pod on every node."""

from __future__ import annotations

import json
import time

from tests.lab.cluster import paths
from tests.lab.support import gpu, jobs
from tests.lab.support.static_pod import SCHEDULER, lock_holder, processes, restart

NAME = "everywhere"
# What another node or another Node of the same name has of its own.
OWN = ("uid", "resourceVersion", "creationTimestamp", "selfLink", "managedFields", "generation")


def labels(k8s: str, zone: str) -> dict:
    """Return labels as a cloud of that time gives them to its nodes."""
    prefix = "topology" if paths.version_tuple(k8s) >= (1, 19) else "failure-domain.beta"
    return {f"{prefix}.kubernetes.io/region": "sh", f"{prefix}.kubernetes.io/zone": zone}


def another_leads(cluster) -> None:
    """End the leading scheduler, so that one without a list of nodes leads.

    The one that the kubelet starts in its place is new too.
    """

    def holder():
        return cluster.kubectl(
            "-n", "kube-system", "get", "lease", SCHEDULER, "-o", "jsonpath={.spec.holderIdentity}"
        ).stdout.decode()

    former = holder()
    restart(cluster, lock_holder(cluster, SCHEDULER), SCHEDULER)
    cluster.wait(lambda: holder() not in ("", former), 240, "another scheduler to lead")
    for master in cluster.of_role("master"):
        cluster.wait(
            lambda node=master: len(processes(cluster, node, SCHEDULER)) == 1,
            180,
            f"one scheduler on {master.name}",
        )


def one_round(cluster, namespace: str, name: str = "first") -> None:
    """Schedule a pod, so that the leading scheduler has made its list of the nodes."""
    item = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": jobs.pod_spec(cluster, tolerations=[{"operator": "Exists"}]),
    }
    gpu.create(cluster, namespace, item)
    cluster.wait(
        lambda: [
            one
            for one in gpu.pods(cluster, namespace)
            if one["metadata"]["name"] == name and one["spec"].get("nodeName")
        ],
        240,
        f"the pod {name} to be scheduled",
    )


def daemon_set(cluster, namespace: str) -> None:
    """Create a pod for each node, whatever its taints."""
    spec = {
        **jobs.pod_spec(cluster, tolerations=[{"operator": "Exists"}]),
        "restartPolicy": "Always",
    }
    gpu.create(
        cluster,
        namespace,
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": NAME},
            "spec": {
                "selector": {"matchLabels": {"app": NAME}},
                "template": {"metadata": {"labels": {"app": NAME}}, "spec": spec},
            },
        },
    )


def of_daemon_set(cluster, namespace: str) -> dict:
    """Node that a pod is meant for -> the pod."""
    found = {}
    for one in gpu.pods(cluster, namespace):
        if one["metadata"]["name"].startswith(f"{NAME}-"):
            terms = one["spec"]["affinity"]["nodeAffinity"][
                "requiredDuringSchedulingIgnoredDuringExecution"
            ]["nodeSelectorTerms"]
            found[terms[0]["matchFields"][0]["values"][0]] = one
    return found


def running(cluster, namespace: str) -> list:
    """Nodes on which the DaemonSet's pod runs."""
    return sorted(
        name
        for name, one in of_daemon_set(cluster, namespace).items()
        if one["status"].get("phase") == "Running"
    )


def wait_lost(cluster, namespace: str, seconds: float = 0) -> str:
    """Wait for the one node whose pod the scheduler refuses while those of all others run.

    It has been so for that long.
    """

    def lost():
        found = of_daemon_set(cluster, namespace)
        waiting = {
            name: condition
            for name, one in found.items()
            for condition in one["status"].get("conditions", [])
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        }
        if (
            len(found) != len([node for node in cluster.nodes if node.joined])
            or len(waiting) != 1
            or len(running(cluster, namespace)) != len(found) - 1
        ):
            raise ValueError(
                f"pods run on {running(cluster, namespace)}, and these wait: {waiting}"
            )
        return waiting

    ((name, condition),) = cluster.wait(
        lost, 300, "one pod of the DaemonSet to stay Pending, and no other"
    ).items()
    if seconds:
        age = cluster.exec(
            cluster.of_role("master")[0],
            f"echo $(( $(date +%s) - $(date -d {condition['lastTransitionTime']} +%s) ))",
        ).stdout
        time.sleep(max(0.0, seconds - int(age)))
    return name


def remove_node(cluster, name: str) -> None:
    """Delete its Node while its kubelet runs on.

    That kubelet only writes the status of a Node that is there.
    """
    cluster.kubectl("delete", "node", name, "--ignore-not-found", "--wait=true")


def make_node(cluster, former: dict, more: dict | None = None) -> None:
    """Create a Node as it was, with more labels, as when a machine of that name joins."""
    meta = {key: value for key, value in former["metadata"].items() if key not in OWN}
    meta["labels"] = {**meta["labels"], **(more or {})}
    spec = {key: value for key, value in former["spec"].items() if key != "taints"}
    cluster.kubectl(
        "create",
        "--validate=false",
        "-f",
        "-",
        input=json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec}),
    )
