# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Creates a short Job that must get exactly one pod, and removes it again.

Pods are counted when they are created: a surplus pod exists for about a second, and whether the pod
ever runs does not matter. Its image is one that a node has already, and it never pulls one. A label
identifies what an interrupted probe left.
"""

import time

from ...kubeapi.client import ApiError
from ...system.runtime_tool import PAUSE_IMAGE

NAMESPACE = "kube-system"  # it is there, it admits, and few quotas or policies reach into it
# both, because a pinned pod that an interrupted run left is ours, too, and its kubelet brings it
# back as often as it is deleted
ROLE_TAINT = "node-role.kubernetes.io/"
LABELS = {"app.kubernetes.io/managed-by": "kubemend", "app.kubernetes.io/component": "probe"}
SELECTOR = {"labelSelector": ",".join("{}={}".format(*pair) for pair in sorted(LABELS.items()))}
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
WINDOW = 6  # seconds of one look; there is a second one after that which saw the first pod
# seconds for the first pod: a controller manager that is to lead waits for the former lease to end
PATIENCE = 50
GONE = 30  # seconds in which the pods must be gone
ROLES = ("master", "control-plane")


def probe(api, run_id):
    """Return the names of the pods that the Job got.

    The Job and the remains of earlier probes are removed in any case.
    """
    sweep(api)
    jobs = []
    try:
        return _observed(api, _job(run_id, *_place(api)), jobs)
    finally:
        try:
            for meta in jobs:  # also where a list is older than it
                _delete(api, JOBS, meta)
        finally:
            sweep(api)


def sweep(api):
    """Remove every Job of a probe, and its pods; raise ApiError when some remain."""
    for path in (JOBS, PODS):
        for item in list(api.items(path, SELECTOR)):
            _delete(api, path, item["metadata"])
    end = time.monotonic() + GONE
    remaining = [pod["metadata"]["name"] for pod in api.items(PODS, SELECTOR)]
    while remaining and time.monotonic() < end:
        time.sleep(1)
        remaining = [pod["metadata"]["name"] for pod in api.items(PODS, SELECTOR)]
    if remaining:
        raise ApiError(
            "error",
            "pods of the probe are not gone after {} s: {}; delete them (kubectl -n {} delete pod"
            " -l {})".format(
                int(GONE), ", ".join(sorted(remaining)), NAMESPACE, SELECTOR["labelSelector"]
            ),
        )


def _delete(api, path, meta):
    options = {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": "Background",
        "preconditions": {"uid": meta["uid"]},
    }
    try:
        api.send("DELETE", "{}/{}".format(path, meta["name"]), options)
    except ApiError as error:
        if error.code not in (404, 409):  # gone already, or replaced
            raise


def _observed(api, job, jobs):
    """Return the names of the Job's pods; add its metadata to `jobs` once it is there."""
    version = api.get(PODS, dict(SELECTOR, limit=1))["metadata"]["resourceVersion"]
    jobs.append(api.send("POST", JOBS, job)["metadata"])
    uid, names = jobs[0]["uid"], {}
    end = time.monotonic() + PATIENCE
    while True:
        again = bool(names)
        # from before the Job each time: the API server tells everything since once more
        for event in api.watch(PODS, dict(SELECTOR, resourceVersion=version), WINDOW):
            item = event.get("object") or {}
            if event.get("type") == "ERROR":
                raise ApiError("error", "the watch ended: {}".format(item.get("message")))
            meta = item.get("metadata") or {}
            if _is_owned_by(meta, uid):
                names[meta["uid"]] = meta["name"]
        if again or (not names and time.monotonic() >= end):
            return sorted(names.values())


def _is_owned_by(meta, uid):
    return any(owner.get("uid") == uid for owner in meta.get("ownerReferences") or [])


def _place(api):
    """Return (node, image) of a node that accepts the pod and has an image that only waits.

    Without such a node the result is (None, the name of a pause image).
    """
    for node in api.items("/api/v1/nodes"):
        pauses = _pause_images(node)
        host = ((node.get("metadata") or {}).get("labels") or {}).get("kubernetes.io/hostname")
        if host and pauses and _takes_pods(node):
            return host, pauses[0]
    return None, "registry.k8s.io/pause:3.9"


def _pause_images(node):
    """Return the names of the node's images that only wait."""
    images = (node.get("status") or {}).get("images") or []
    names = [name for image in images for name in image.get("names") or []]
    return [name for name in names if PAUSE_IMAGE.search(name)]


def _takes_pods(node):
    """Return whether the Node is ready, and only taints of its role keep pods away."""
    spec = node.get("spec") or {}
    keys = [str(taint.get("key")) for taint in spec.get("taints") or []]
    if spec.get("unschedulable") or not all(key.startswith(ROLE_TAINT) for key in keys):
        return False
    return _is_ready(node)


def _is_ready(node):
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in (node.get("status") or {}).get("conditions") or []
    )


def _job(run_id, host, image):
    amounts = {"cpu": "10m", "memory": "32Mi"}
    container = {
        "name": "probe",
        "image": image,
        "imagePullPolicy": "Never",
        "resources": {"requests": amounts, "limits": amounts},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    pod = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "containers": [container],
        "tolerations": [{"key": ROLE_TAINT + role, "operator": "Exists"} for role in ROLES],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    if host:
        pod["nodeSelector"] = {"kubernetes.io/hostname": host}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "kubemend-probe-" + run_id.lower(),
            "namespace": NAMESPACE,
            "labels": LABELS,
        },
        # it ends by itself where no later run removes it
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 0,
            "activeDeadlineSeconds": 120,
            "ttlSecondsAfterFinished": 120,
            "template": {"metadata": {"labels": LABELS}, "spec": pod},
        },
    }
