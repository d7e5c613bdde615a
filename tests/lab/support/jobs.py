# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Jobs that ought to get one pod each, and how many they got."""

from __future__ import annotations

import collections
import json
import secrets
import time

NAMESPACE_PREFIX = "lab-jobs-"
MASTERS_TOLERATED = [
    {"key": f"node-role.kubernetes.io/{role}", "operator": "Exists"}
    for role in ("master", "control-plane")
]


def new_namespace() -> str:
    """Return a new name each time: events of the last round must not count in this one."""
    return f"{NAMESPACE_PREFIX}{secrets.token_hex(3)}"


def pod_spec(cluster, **more) -> dict:
    return {
        "terminationGracePeriodSeconds": 2,
        "restartPolicy": "Never",
        **more,
        "containers": [
            {
                "name": "work",
                "image": cluster.state["pause"],
                "imagePullPolicy": "Never",
                "command": ["/bin/sleep", "100000"],
            }
        ],
    }


def create_namespace(cluster, namespace: str) -> None:
    """Create a namespace and wait for its service account.

    A Job that comes before the account fails at first, which is no surplus.
    """
    cluster.kubectl("create", "namespace", namespace)
    cluster.wait(
        lambda: (
            cluster.kubectl(
                "-n", namespace, "get", "serviceaccount", "default", check=False
            ).returncode
            == 0
        ),
        180,
        f"the service account of {namespace}",
    )


def create(cluster, namespace: str, count: int, round_: int) -> None:
    # In a cluster of masters alone these pods would wait for ever, which KM513 rightly tells: a
    # second fault.
    anywhere = {} if cluster.workers else {"tolerations": MASTERS_TOLERATED}
    jobs = [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": f"job-{round_}-{number}", "namespace": namespace},
            "spec": {
                "completions": 1,
                "parallelism": 1,
                "backoffLimit": 2,
                "template": {"spec": pod_spec(cluster, **anywhere)},
            },
        }
        for number in range(count)
    ]
    cluster.kubectl(
        "create",
        "--validate=false",
        "-f",
        "-",
        input=json.dumps({"apiVersion": "v1", "kind": "List", "items": jobs}),
    )


def pods_created(cluster, namespace: str) -> dict:
    """Job -> pods that were created for it. From the events.

    The surplus pod itself lives about a second.
    """
    events = json.loads(cluster.kubectl("-n", namespace, "get", "events", "-o", "json").stdout)[
        "items"
    ]
    created = collections.defaultdict(set)
    for event in events:
        if event["reason"] == "SuccessfulCreate" and event["involvedObject"]["kind"] == "Job":
            created[event["involvedObject"]["name"]].add(event["message"].rsplit(" ", 1)[-1])
    return created


def wait_for_surplus(cluster, namespace: str, per_round: int = 4, rounds: int = 15) -> dict:
    """Create Jobs until several got two pods.

    Both controllers see each Job, but one may be quick enough alone, and one that has just
    started first has to list what there is.
    """
    create_namespace(cluster, namespace)
    seen = {}
    for round_ in range(rounds):
        create(cluster, namespace, per_round, round_)
        expected = per_round * (round_ + 1)
        cluster.wait(
            lambda expected=expected: len(pods_created(cluster, namespace)) >= expected,
            60,
            f"pods of {expected} Jobs in {namespace}",
        )
        seen = {job: sorted(pods) for job, pods in pods_created(cluster, namespace).items()}
        if sum(len(pods) > 1 for pods in seen.values()) >= 2:
            return seen
        time.sleep(2)
    raise TimeoutError(f"no two of {len(seen)} Jobs got a second pod: {seen}")


def running(cluster, namespace: str) -> list:
    """Return the names of the pods that run."""
    items = json.loads(cluster.kubectl("-n", namespace, "get", "pods", "-o", "json").stdout)[
        "items"
    ]
    return [item["metadata"]["name"] for item in items if item["status"].get("phase") == "Running"]


def remove(cluster, namespace: str, timeout: float = 300) -> None:
    cluster.kubectl(
        "delete", "namespace", namespace, "--ignore-not-found", "--wait=false", timeout=60
    )
    cluster.wait(
        lambda: cluster.kubectl("get", "namespace", namespace, check=False).returncode == 1,
        timeout,
        f"namespace {namespace} to end",
        every=2,
    )
