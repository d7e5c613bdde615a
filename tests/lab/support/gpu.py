# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker with two devices that are none, and the pods that ask for them."""

from __future__ import annotations

import json

from tests.lab.cluster import gobuild
from tests.lab.support import jobs
from tests.lab.support.incident import Incident

RESOURCE, COUNT = "nvidia.com/gpu", 2
UNIT = "lab-device-plugin"
PROGRAM, STATE = "/usr/local/bin/lab-device-plugin", "/run/lab-devices"
CHECKPOINT = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"


def devices(cluster, target: str) -> list:
    """[capacity, allocatable] of the worker, as the API has them."""
    status = json.loads(cluster.kubectl("get", "node", target, "-o", "json").stdout)["status"]
    return [int(status[kind].get(RESOURCE, -1)) for kind in ("capacity", "allocatable")]


def wait_devices(cluster, target: str, wanted: list) -> None:
    def shows():
        found = devices(cluster, target)
        if found != wanted:
            raise ValueError(f"capacity and allocatable are {found}")
        return True

    cluster.wait(shows, 240, f"{RESOURCE} of {target} to be {wanted}")


def plug(cluster, target: str) -> None:
    """Start the plugin and wait until the node has its devices."""
    cluster.write(target, PROGRAM, gobuild.device_plugin().read_bytes(), mode="755")
    cluster.write(target, STATE, "gpu-0\ngpu-1\n")
    cluster.exec(
        target, ["systemd-run", f"--unit={UNIT}", PROGRAM, "-resource", RESOURCE, "-state", STATE]
    )
    wait_devices(cluster, target, [COUNT, COUNT])


def unplug(cluster, target: str) -> None:
    """Leave the node as if it had never had any device.

    The kubelet and the Node object remember a resource for ever.
    """
    cluster.exec(
        target,
        f"systemctl stop {UNIT} kubelet 2>/dev/null; systemctl reset-failed {UNIT} 2>/dev/null; rm"
        f" -f {CHECKPOINT} {PROGRAM} {STATE}",
    )
    cluster.kubectl("delete", "node", target, "--ignore-not-found", "--wait=false")
    cluster.wait(
        lambda: cluster.kubectl("get", "node", target, check=False).returncode == 1,
        180,
        f"the Node {target} to go",
    )
    cluster.exec(target, ["systemctl", "start", "kubelet"])
    cluster.wait(
        lambda: cluster.kubectl("get", "node", target, check=False).returncode == 0,
        240,
        f"{target} to register again",
    )


def pod(cluster, name: str, count: int, **more) -> dict:
    spec = jobs.pod_spec(cluster, **more)
    spec["containers"][0]["resources"] = {"limits": {RESOURCE: count}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def job(cluster, name: str, count: int, tries: int = 3, **more) -> dict:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": tries,
            "template": {"spec": pod(cluster, name, count, **more)["spec"]},
        },
    }


def create(cluster, namespace: str, *items: dict) -> None:
    """Create objects, or keep those that are there: a test may be made once more (conftest.py)."""
    cluster.kubectl(
        "-n",
        namespace,
        "apply",
        "--validate=false",
        "-f",
        "-",
        input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}),
    )


def bind(cluster, namespace: str, name: str, target: str) -> None:
    """Bind a pod to a node, which is all that a scheduler does in the end.

    This scheduler never looks at what is left.
    """
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": target},
    }
    cluster.kubectl(
        "create",
        "--raw",
        f"/api/v1/namespaces/{namespace}/pods/{name}/binding",
        "-f",
        "-",
        input=json.dumps(binding),
    )


def pods(cluster, namespace: str) -> list:
    return json.loads(cluster.kubectl("-n", namespace, "get", "pods", "-o", "json").stdout)["items"]


def rejected(cluster, namespace: str) -> list:
    """Return the rejected pods; a kubelet that counts no device at all says OutOf... first."""
    return [
        one
        for one in pods(cluster, namespace)
        if (one["status"].get("reason") or "").startswith(("UnexpectedAdmissionError", "OutOf"))
    ]


def held(cluster) -> list:
    """Pods of the whole cluster that ask for devices and have not ended."""
    found = json.loads(cluster.kubectl("get", "pods", "-A", "-o", "json").stdout)["items"]
    return [
        one["metadata"]["name"]
        for one in found
        if one["status"].get("phase") not in ("Succeeded", "Failed")
        and any(
            RESOURCE in (part.get("resources") or {}).get("limits", {})
            for part in one["spec"]["containers"]
        )
    ]


def wait_running(cluster, namespace: str, prefix: str) -> None:
    cluster.wait(
        lambda: [
            one
            for one in pods(cluster, namespace)
            if one["metadata"]["name"].startswith(prefix)
            and one["status"].get("phase") == "Running"
        ],
        180,
        f"a pod {prefix}* to run",
    )


class Gpu(Incident):
    """An incident of a worker with devices.

    `fill` makes what is wrong there, in a namespace of its own.
    """

    occupies = "worker"
    target = "w1"
    faults: tuple = ()
    wants_rejected = True

    def break_(self, cluster, target):
        namespace = jobs.new_namespace()
        self.remember(cluster, target, namespace=namespace)
        plug(cluster, target)
        jobs.create_namespace(cluster, namespace)
        self.fill(cluster, target, namespace)

    def fill(self, cluster, target, namespace):
        raise NotImplementedError

    def symptom(self, cluster, target):
        namespace = self.record(cluster, target)["namespace"]
        if self.wants_rejected:
            cluster.wait(
                lambda: rejected(cluster, namespace), 180, f"a rejected pod in {namespace}"
            )

    def undo(self, cluster, target):
        self.restore(cluster, target)
        namespace = self.record(cluster, target).get("namespace")
        if namespace:
            jobs.remove(cluster, namespace)
        unplug(cluster, target)

    def expect(self, cluster, target):
        return {(code, target, None) for code in self.faults}
