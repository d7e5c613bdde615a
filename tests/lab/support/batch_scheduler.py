# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A second scheduler, as a batch system brings one.

An ordinary pod on a master that serves its own schedulerName.
"""

from __future__ import annotations

import json

from tests.lab.cluster import paths
from tests.lab.support.static_pod import SCHEDULER

NAME, HOST = "batch", "m1"
FOLDER = "/opt/lab-batch"
POD = "batch-scheduler"
# Its argv tells it from the usual one.
PATTERN = f"[k]ube-scheduler --config={FOLDER}"


def configuration(cluster) -> str:
    old = paths.version_tuple(cluster.k8s) < (1, 19)
    found = {
        "apiVersion": f"kubescheduler.config.k8s.io/{'v1alpha2' if old else 'v1'}",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": f"{FOLDER}/kubeconfig"},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": NAME}],
    }
    if old:
        found.update(healthzBindAddress="127.0.0.1:10351", metricsBindAddress="127.0.0.1:10351")
    return json.dumps(found)


def start(cluster, namespace: str) -> None:
    """Start it and wait until it has seen the cluster: it places a pod that asks for nothing."""
    cluster.exec(HOST, f"mkdir -p {FOLDER} && cp /etc/kubernetes/admin.conf {FOLDER}/kubeconfig")
    cluster.write(HOST, f"{FOLDER}/config.json", configuration(cluster))
    listed = cluster.exec(HOST, "ctr -n k8s.io images ls -q").stdout.decode().split()
    container = {
        "name": "scheduler",
        "image": next(image for image in listed if f"/{SCHEDULER}:" in image),
        "imagePullPolicy": "Never",
        "command": [
            SCHEDULER,
            f"--config={FOLDER}/config.json",
            "--secure-port=10359",
            "--cert-dir=/run/batch",
        ],
        "volumeMounts": [{"name": "batch", "mountPath": FOLDER, "readOnly": True}],
    }
    spec = {
        "nodeName": HOST,
        "hostNetwork": True,
        "terminationGracePeriodSeconds": 2,
        "automountServiceAccountToken": False,
        "containers": [container],
        "tolerations": [{"operator": "Exists"}],
        "volumes": [{"name": "batch", "hostPath": {"path": FOLDER, "type": "Directory"}}],
    }
    probe = {
        "containers": [
            {
                "name": "probe",
                "image": cluster.state["pause"],
                "imagePullPolicy": "Never",
                "command": ["/bin/sleep", "100000"],
            }
        ],
        "schedulerName": NAME,
        "terminationGracePeriodSeconds": 2,
    }
    for name, what in ((POD, spec), ("batch-probe", probe)):
        cluster.kubectl(
            "-n",
            namespace,
            "create",
            "--validate=false",
            "-f",
            "-",
            input=json.dumps(
                {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": what}
            ),
        )
    cluster.wait(
        lambda: (
            cluster.kubectl(
                "-n", namespace, "get", "pod", "batch-probe", "-o", "jsonpath={.spec.nodeName}"
            ).stdout
        ),
        90,
        "the second scheduler to place a pod",
    )
    cluster.kubectl("-n", namespace, "delete", "pod", "batch-probe", "--wait=false")


def signal(cluster, name: str) -> None:
    """Send it a signal: STOP or CONT.

    After STOP it falls behind what happens in the cluster, as a busy one does. After CONT it goes
    on with what it knew.
    """
    cluster.exec(HOST, f"pkill -{name} -f '{PATTERN}'")


def remove(cluster) -> None:
    """Remove what its pod, which goes with its namespace, leaves on the host."""
    cluster.exec(HOST, f"pkill -CONT -f '{PATTERN}'; rm -rf {FOLDER}")
