# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deletes rejected pods after another check of each, and keeps their objects in the journal.

On older releases the deletion of a Failed pod of an unfinished Job grants the Job another try. The
module therefore deletes only pods of finished Jobs, and pods of no Job. A pod stays if its
controller is not Kubernetes' own: some of these treat a deleted pod as a failure and start all of
their pods again (Volcano's Job does, by its policy for evicted pods). No finalizer is removed.
"""

import time

from ...changes import durable_files
from ...collectors.cluster import jobs as cluster_jobs
from ...collectors.cluster import rejected as cluster_rejected
from ...kubeapi.client import ApiError
from ...shared.text import counted
from ...state import journal, storage
from ..drain import plan as drain_plan

UNFINISHED = "has not ended"
MANY = 3  # pods that stay for the same reason are told together
GONE = 30  # seconds in which a deleted pod must be gone
# They replace what has failed, whether it is deleted or not; a Node is the owner of its static
# pods' mirrors.
INDIFFERENT = frozenset(
    [
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("", "ReplicationController"),
        ("", "Node"),
    ]
)


class Done:
    """What became of the pods so far.

    sent: (name, path, uid) of each pod whose deletion the API server accepted, or may have
        accepted.
    gone: the names of the pods that are deleted.
    kept: {name: why the pod is not deleted}.
    stuck: {name: why the pod is still there after its deletion}.
    """

    def __init__(self):
        # (name, path, uid) of those whose deletion the API server took, or may have taken
        self.sent = []
        self.gone = []
        self.kept = {}
        self.stuck = {}


def clean(api, pods, step, done):
    """Delete these {namespace, name, uid}, unless something speaks against it.

    done: the Done that is filled, also up to an ApiError.
    """
    for pod in pods:
        name = "{}/{}".format(pod["namespace"], pod["name"])
        path = "/api/v1/namespaces/{}/pods/{}".format(pod["namespace"], pod["name"])
        item = api.find(path)
        if item is None or item["metadata"].get("uid") != pod["uid"]:
            continue  # it was deleted meanwhile
        reason = _why_not(api, item)
        if reason:
            done.kept[name] = reason
            continue
        _keep(item, step)
        _delete(api, (name, path, pod["uid"]), done)
    _wait_until_gone(api, done)


def _delete(api, row, done):
    """Delete the pod of this (name, path, uid); `done` has it unless the API refused it."""
    _name, path, uid = row
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
    try:
        api.send("DELETE", path, options)
    except ApiError as error:
        if error.code is None or error.code >= 500:
            done.sent.append(row)  # whether it was deleted is not known
            raise
        if error.code not in (404, 409):
            raise
    done.sent.append(row)


def _wait_until_gone(api, done):
    end = time.monotonic() + GONE
    while done.sent and time.monotonic() < end and any(_stays(api, row) for row in done.sent):
        time.sleep(1)
    for row in done.sent:
        name, path, _uid = row
        if _stays(api, row):
            done.stuck[name] = (
                f"it was deleted and is not gone after {int(GONE)} s{_finalizers(api, path)}"
            )
        else:
            done.gone.append(name)


def sentence(done):
    """Return the results in one sentence.

    Pods of unfinished Jobs stay on purpose and may be many. They come last, so that they do not
    hide the others.
    """
    groups = {}
    for name, reason in sorted(done.stuck.items()) + sorted(done.kept.items()):
        groups.setdefault(reason, []).append(name)
    parts = [f"{counted(len(done.gone), 'pod')} deleted"]
    for reason in sorted(
        groups, key=lambda text: (groups[text][0] not in done.stuck, UNFINISHED in text, text)
    ):
        names = groups[reason]
        if len(names) < MANY:
            parts += [f"{name} stays: {reason}" for name in names]
        else:
            parts.append(f"{drain_plan.names_of(names)} stay: {reason}")
    return "; ".join(parts)


def _why_not(api, item):
    """Return why a pod is not deleted, or None."""
    if not cluster_rejected.rejected(item):
        return "it is not a pod that a kubelet rejected"
    meta = item["metadata"]
    owners = [owner for owner in meta.get("ownerReferences") or [] if owner.get("controller")]
    if not owners:
        return None
    owner = owners[0]
    group = str(owner.get("apiVersion") or "").rpartition("/")[0]
    if (group, owner.get("kind")) in INDIFFERENT:
        return None
    if (group, owner.get("kind")) != ("batch", "Job"):
        return (
            "its owner {}/{} of {} is not Kubernetes' own, and may start its pods again over this:"
            " see what that controller does first".format(
                owner.get("kind"), owner.get("name"), group or "an unknown API"
            )
        )
    if _has_ended(api, meta["namespace"], owner):
        return None
    return "its Job {} {}: without this pod it would get another try".format(
        owner["name"], UNFINISHED
    )


def _has_ended(api, namespace, owner):
    """Return whether the Job that owns a pod is gone, or finished."""
    job = api.find("/apis/batch/v1/namespaces/{}/jobs/{}".format(namespace, owner["name"]))
    if job is None or (job.get("metadata") or {}).get("uid") != owner.get("uid"):
        return True
    return cluster_jobs.job_of(job)["finished"]


def _keep(item, step):
    """Keep the object in the run's directory of the journal: it says why the pod failed."""
    with step.exclusive() as root_fd:  # noqa: SIM117 - the next needs this one
        with storage.descriptor(durable_files.private_folder(journal.FOLDER, root_fd)) as runs:
            with storage.descriptor(durable_files.private_folder(step.run_id, runs)) as fd:
                with storage.change_errors(
                    f"nothing more was deleted, because the journal in {step.root} cannot be"
                    " written"
                ):
                    durable_files.put("pod-{}.json".format(item["metadata"]["uid"]), item, fd)


def _stays(api, pod):
    item = api.find(pod[1])
    return item is not None and item["metadata"].get("uid") == pod[2]


def _finalizers(api, path):
    finalizers = ((api.find(path) or {}).get("metadata") or {}).get("finalizers")
    return "; {} holds it".format(", ".join(finalizers)) if finalizers else ""
