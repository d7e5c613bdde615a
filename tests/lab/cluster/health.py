# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is wrong with a cluster that ought to be healthy, as sentences."""

from __future__ import annotations

import json
import re

from tests.lab.cluster import node as cluster_node
from tests.lab.cluster.bringup import parallel

COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
# Serving port of a component that answers /healthz without credentials.
PORTS = {"kube-apiserver": 6443, "kube-controller-manager": 10257, "kube-scheduler": 10259}

_MASTER_SCRIPT = "; ".join(
    [
        f"printf '%s ' {name}; curl -sk -m 3 https://127.0.0.1:{port}/healthz; echo"
        for name, port in PORTS.items()
    ]
    + [
        "echo ---",
        (
            "cat /etc/kubernetes/manifests/kube-scheduler.yaml "
            "/etc/kubernetes/manifests/kube-controller-manager.yaml"
        ),
        "echo ---",
        (
            "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null; echo; done | grep -E"
            " '^kube-(sch|con)'"
        ),
    ]
)


def problems(cluster) -> list:
    """Return what is unhealthy: Nodes not Ready, components that do not serve, other manifests."""
    stopped = [
        f"container of {name} is {state}"
        for name, state in cluster.container_states().items()
        if state != "running"
    ]
    if stopped:
        return stopped
    joined = [node for node in cluster.nodes if node.joined]
    try:
        found = _node_problems(cluster, joined) + _pod_problems(cluster, joined)
    except (RuntimeError, ValueError) as error:
        return [f"the API does not answer: {str(error)[-300:]}"]
    for sentences in parallel(_master_problems, [node for node in joined if node.role == "master"]):
        found += sentences
    return found


def _node_problems(cluster, joined) -> list:
    items = json.loads(cluster.kubectl("get", "nodes", "-o", "json").stdout)["items"]
    found, by_name = [], {item["metadata"]["name"]: item for item in items}
    for node in joined:
        item = by_name.pop(node.name, None)
        if item is None:
            found.append(f"{node.name} is no Node")
            continue
        ready = [c["status"] for c in item["status"].get("conditions", []) if c["type"] == "Ready"]
        if ready != ["True"]:
            found.append(f"{node.name} Ready={ready}")
        transient = [
            taint["key"]
            for taint in item["spec"].get("taints", [])
            if taint["key"].startswith("node.kubernetes.io/")
        ]
        if transient or item["spec"].get("unschedulable"):
            found.append(f"{node.name} is tainted or cordoned: {transient}")
    return found + [f"unexpected Node {name}" for name in by_name]


def _pod_problems(cluster, joined) -> list:
    items = json.loads(cluster.kubectl("-n", "kube-system", "get", "pods", "-o", "json").stdout)[
        "items"
    ]
    ready = {
        item["metadata"]["name"]: any(
            c["type"] == "Ready" and c["status"] == "True"
            for c in item["status"].get("conditions", [])
        )
        for item in items
    }
    wanted = [
        f"{component}-{node.name}"
        for node in joined
        if node.role == "master"
        for component in COMPONENTS
    ]
    return [f"pod {name} is not Ready" for name in wanted if not ready.get(name)]


def _master_problems(node) -> list:
    health, manifests, processes = (
        cluster_node.execute(node, _MASTER_SCRIPT, check=False).stdout.decode().split("---\n")
    )
    found = [f"{node.name} {line}" for line in health.splitlines() if not line.endswith(" ok")]
    running = {line.split()[0]: line.split() for line in processes.splitlines() if line.strip()}
    component = None
    for line in manifests.splitlines():
        match = re.match(r"\s*- (kube-[a-z-]+|--\S+)\s*$", line)
        if match and match.group(1).startswith("kube-"):
            component = match.group(1)
        elif match and component and match.group(1) not in running.get(component, ()):
            found.append(
                f"{node.name} {component} does not run with {match.group(1)} of its manifest"
            )
    return found
