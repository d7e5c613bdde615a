# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Drains of w1 by a play of one's own, and what stands in their way."""

from __future__ import annotations

import json

from tests.lab.support import interrupt, jobs, playbook
from tests.lab.support.repairing import OLD

MARK = "kubemend.io/cordon"
HELD = "example.com/held"
CORDONED = "node.kubernetes.io/unschedulable"
# Who began a step on that host that has no end yet.
_AWAITED = """
import glob, json
for name in sorted(glob.glob("/var/lib/kubemend/journal/*/proof-*.json"), reverse=True):
    record = json.load(open(name))
    if record["state"] == "awaited":
        print(json.dumps({"pid": record["by"]["pid"], "run_id": record["run_id"]}))
        break
"""


def play(folder, **given) -> str:
    """Write a play with this one task, as an operator's would have it; return its path."""
    task = {
        "kubemend.remediation.node_drain": {"name": "w1", **given},
        "become": True,
        "delegate_to": "m1",
    }
    path = folder / f"play-{len(list(folder.glob('play-*')))}.yml"
    path.write_text(
        json.dumps([{"hosts": "w1", "gather_facts": False, "tasks": [task]}]), encoding="utf-8"
    )
    return str(path)


def drain(cluster, folder, *arguments: str, **given) -> dict:
    """Drain, and return the task's result."""
    done = playbook.run(
        play(folder, **given), cluster.inventory, "-v", *arguments, report=str(folder)
    )
    return _result(done.stdout, done.returncode)


def started(cluster, folder, **given) -> interrupt.Controller:
    """Start a drain in the background, for `with`."""
    return interrupt.Controller(cluster, folder / "controller", "-v", name=play(folder, **given))


def ended(controller: interrupt.Controller) -> dict:
    """Return the result of its task."""
    code = controller.wait_failed(300)
    return _result(controller.output, code)


def _result(output: str, code: int) -> dict:
    """Parse the one line of the task.

    That line leaves `failed` to its first word, which is added to the result.
    """
    said = [
        line
        for line in output.splitlines()
        if line.startswith(("ok: ", "changed: ", "fatal: ")) and "=> {" in line
    ]
    assert len(said) == 1, output[-3000:]
    assert said[0].startswith("fatal: ") == (code != 0), output[-3000:]
    return dict(json.loads(said[0].partition("=> ")[2]), failed=code != 0)


def node(cluster) -> dict:
    """Return what a drain may change of w1.

    The taint of a cordon is a controller's, which follows the cordon a moment later.
    """
    return cluster.wait(
        lambda: _node(cluster), 30, "the taint of w1 to follow its cordon", every=0.5
    )


def _node(cluster) -> dict | None:
    found = json.loads(cluster.kubectl("get", "node", "w1", "-o", "json").stdout)
    annotations, cordoned = (
        found["metadata"]["annotations"],
        found["spec"].get("unschedulable", False),
    )
    taints = [taint["key"] for taint in found["spec"].get("taints") or []]
    if cordoned != (CORDONED in taints):
        return None
    return {
        "cordoned": cordoned,
        "mark": json.loads(annotations.get(MARK, "null")),
        "taints": taints,
        "annotations": sorted(annotations),
    }


def free(cluster) -> bool:
    """Return whether the node takes pods, and has no mark of kubemend."""
    seen = node(cluster)
    return not seen["cordoned"] and seen["mark"] is None


def ready(cluster) -> str:
    conditions = json.loads(cluster.kubectl("get", "node", "w1", "-o", "json").stdout)["status"][
        "conditions"
    ]
    return next(one["status"] for one in conditions if one["type"] == "Ready")


def awaited(cluster) -> dict:
    return json.loads(cluster.exec("m1", ["python3", "-I", "-S", "-c", _AWAITED]).stdout)


def proxies(cluster) -> bytes:
    """Return kubectl proxies on m1 that were not ended."""
    return cluster.exec("m1", "pgrep -af '[k]ubectl.* proxy'; true").stdout


class Pods:
    """A namespace's pods and budgets."""

    def __init__(self, cluster):
        self.cluster, self.namespace = cluster, jobs.new_namespace()
        jobs.create_namespace(cluster, self.namespace)

    def kubectl(self, *arguments: str, **more):
        return self.cluster.kubectl("-n", self.namespace, *arguments, **more)

    def create(self, *items: dict) -> None:
        """Create objects, or keep those that are there.

        A test that the lab held up is made once more (conftest.py).
        """
        self.kubectl(
            "apply",
            "--validate=false",
            "-f",
            "-",
            input=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)}),
        )

    def patch(self, kind: str, name: str, **spec) -> None:
        self.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps({"spec": spec}))

    def template(self, name: str, finalizers=(), **more) -> dict:
        return {
            "metadata": {
                "labels": {"app": name},
                **({"finalizers": list(finalizers)} if finalizers else {}),
            },
            "spec": jobs.pod_spec(self.cluster, **more),
        }

    def bare(self, name: str) -> dict:
        pod = self.template(name)
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            **pod,
            "metadata": {**pod["metadata"], "name": name},
        }

    def controller(self, kind: str, name: str, **spec) -> dict:
        """Create a Deployment, ReplicaSet or DaemonSet whose pods run on w1."""
        template = self.template(
            name, nodeSelector={"kubernetes.io/hostname": "w1"}, restartPolicy="Always"
        )
        return {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **spec},
        }

    def job(self, name: str) -> dict:
        """Return a Job whose pods have a finalizer that no controller takes away."""
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": {"template": self.template(name, [HELD])},
        }

    def budget(self, name: str, app: str, least: int) -> dict:
        return {
            "apiVersion": "policy/v1beta1" if self.cluster.k8s == OLD else "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name},
            "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": app}}},
        }

    def all(self) -> list:
        return json.loads(self.kubectl("get", "pods", "-o", "json").stdout)["items"]

    def on_w1(self) -> dict:
        """Return {name: uid} of the pods on w1."""
        return {
            pod["metadata"]["name"]: pod["metadata"]["uid"]
            for pod in self.all()
            if pod["spec"].get("nodeName") == "w1"
        }

    def wait_running(self, count: int) -> dict:
        def running():
            ready = [
                pod
                for pod in self.all()
                if any(
                    one["type"] == "Ready" and one["status"] == "True"
                    for one in pod["status"].get("conditions", [])
                )
            ]
            return len(ready) == count

        self.cluster.wait(running, 60, f"{count} pods of {self.namespace} to be ready", every=0.5)
        return self.on_w1()

    def wait_counted(self, *budgets: str, whole: bool = True) -> None:
        """Wait until the disruption controller counts the pods of these budgets.

        Until it does, a budget refuses every eviction.

        whole: also wait until each budget counts all its pods as healthy; for budgets that select
        the same pods the controller does so in one of them only
        """

        def counted(name):
            found = json.loads(self.kubectl("get", "pdb", name, "-o", "json").stdout)
            status = found.get("status") or {}
            return (
                status.get("observedGeneration") == found["metadata"]["generation"]
                and status["expectedPods"] > 0
                and (not whole or status["currentHealthy"] == status["expectedPods"])
            )

        for name in budgets:
            self.cluster.wait(
                lambda n=name: counted(n), 30, f"the budget {name} to be counted", every=0.5
            )

    def remove(self) -> None:
        """Everything, held or not; and w1 as it was."""
        self.cluster.kubectl("uncordon", "w1")
        self.cluster.kubectl("annotate", "node", "w1", f"{MARK}-")
        self.cluster.kubectl("delete", "namespace", self.namespace, "--wait=false")
        for pod in self.all():
            self.kubectl(
                "patch",
                "pod",
                pod["metadata"]["name"],
                "--type=merge",
                "-p",
                '{"metadata":{"finalizers":null}}',
                check=False,
            )
        # its own end may take a while longer, which is nobody's concern
        self.cluster.wait(lambda: not self.all(), 60, f"the pods of {self.namespace} to end")
