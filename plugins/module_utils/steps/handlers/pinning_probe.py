# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probes whether this node pins CPUs, with a static pod that must get CPUs of its own.

A static pod needs no scheduler and no API server, so that a cordoned node can run it before any
other pod. Its image is one that the node has already and whose container only waits. Its file is
removed with every result, and by the next run where this one was killed.
"""

import json
import os
import time

from ...changes import step_claim
from ...collectors import registry
from ...collectors.node import pinning
from ...shared.errors import PreconditionFailed
from ...shared.managed_files import PINNED_POD as FILE
from ...state import step_record, storage
from ...state.storage import ChangeError
from ...system import files, procfs, runtime_tool
from .. import file_change, kubelet_restart, preconditions
from ..base import StepHandler, outcome

NAME, NAMESPACE = "kubemend-pinned", "kube-system"
RUNS = 90  # seconds until it must run with CPUs of its own: a kubelet looks at its folder every 20
GONE = 60  # seconds until it must be gone again
EVERY = 1.0
KEPT = "a test pod is not put back"


class ProbePinning(StepHandler):
    """Starts a static pod, and compares its CPUs.

    The change of a step is {path, whole_cores, state}.
    """

    def check(self, step):
        """Refuse a kubelet that starts nothing from the directory, or a node without an image."""
        self.evidence = _require_kubelet(step.path, step.host)
        self.count = 1
        if step.change["whole_cores"]:
            self.count = threads(pinning.topology())
        self.image = _image(self.evidence, step.host)
        return {"made": not os.path.lexists(os.path.dirname(step.path))}

    def perform(self, step, record):
        """Write the manifest, compare the pod's CPUs, and remove the manifest in any case."""
        try:
            file_change.create_file(
                step.path,
                manifest(self.image, self.count),
                step.context.also(keep=KEPT),
                file_change.Attributes(0o600),
                make_folder=True,
            )
        except (ChangeError, OSError) as error:
            reason = f"{step.path} of {step.host} was not written: {files.one_line(error)}"
            if getattr(error, "changed", False):
                return _open(step.context, reason)
            return outcome(step.context, step_record.NOT_DONE, reason)
        cpus, reason = _pinned(self.evidence, step.change["state"], self.count)
        trouble = _remove(record, step.context)
        if trouble:
            return _open(step.context, "; ".join(filter(None, (reason, trouble))))
        trouble = _gone(self.evidence)
        if reason:
            reason = f"no CPU is given to a pod alone on {step.host}: {reason}"
        if reason or trouble:
            return outcome(
                step.context, step_record.FAILED, "; ".join(filter(None, (reason, trouble)))
            )
        return outcome(step.context, step_record.PROVEN, f"a test pod had CPUs {cpus} alone")

    def recover(self, record, context=None, params=None):
        """Remove the pod's file; the record stays open while it is there.

        The file is removed first, because a kubelet that does not answer now reads the directory
        later.
        """
        trouble = _remove(record, context)
        if trouble:
            return None, trouble
        try:
            trouble = _gone(kubelet_restart.look(record["host"]).evidence)
        except PreconditionFailed as error:
            trouble = (
                f"{error}; {record['path']} is away, so that its pod goes once the kubelet runs"
            )
        if trouble:
            return step_record.FAILED, trouble
        return step_record.NOT_DONE, "its test pod is gone"


def _open(context, reason):
    """Return the result for a file that is still there and whose pod a kubelet runs.

    The record stays open, so that the next run removes it.
    """
    reason += "; the next run takes it away (KM902)"
    step_claim.tell(context.run_id, context.step, reason, context.root, "ended_so")
    return step_record.FAILED, reason, {}


def _require_kubelet(path, host):
    """Return the evidence of a healthy kubelet that starts static pods from the directory.

    PreconditionFailed is raised without one, and where the probe's file exists already.
    """
    kubelet = kubelet_restart.look(host)
    if not kubelet.healthy:
        raise PreconditionFailed(
            f"the kubelet of {host} is not healthy, so that no pod shows anything: repair it first"
            " (journalctl -u kubelet)"
        )
    folder = kubelet.evidence.get("static_pod_path")
    if not folder or os.path.join(folder, FILE) != path:
        raise PreconditionFailed(
            f"the kubelet of {host} starts no static pods from {os.path.dirname(path)};"
            f" {preconditions.OLD}"
        )
    if os.path.lexists(path):
        raise PreconditionFailed(
            f"{path} is there already on {host}: see whose it is, and take it away"
        )
    return kubelet.evidence


def _image(evidence, host):
    """Return an image of the node whose container only waits; raise PreconditionFailed."""
    try:
        names = runtime_tool.find(evidence).images()
    except runtime_tool.RuntimeDown as error:
        raise PreconditionFailed(
            f"the runtime of {host} does not report its images ({error}): nothing was started"
        ) from error
    images = sorted(name for name in names if runtime_tool.PAUSE_IMAGE.search(name))
    if not images:
        raise PreconditionFailed(
            f"{host} has no image of a container that only waits (pause), as far as crictl, ctr or"
            " docker shows: nothing was started"
        )
    return images[-1]


def threads(rows):
    """Return how many CPUs a core has.

    rows: the result of pinning.topology.

    A policy that allocates only whole cores accepts requests of a multiple of that number.
    """
    cores = {(core, socket) for dummy, core, socket, dummy in rows}
    return max(1, len(rows) // len(cores)) if cores else 1


def manifest(image, cpus):
    """Return the pod, as bytes: Guaranteed, with whole CPUs, of an image that is never fetched."""
    amounts = {"cpu": str(cpus), "memory": "32Mi"}
    container = {
        "name": "pinned",
        "image": image,
        "imagePullPolicy": "Never",
        "resources": {"requests": amounts, "limits": amounts},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    meta = {
        "name": NAME,
        "namespace": NAMESPACE,
        "labels": {
            "app.kubernetes.io/managed-by": "kubemend",
            "app.kubernetes.io/component": "pinned",
        },
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {
            "containers": [container],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "hostNetwork": True,
        },
    }
    return (json.dumps(pod, indent=1, sort_keys=True) + "\n").encode("utf-8")


def _pinned(evidence, path, count):
    """Return (the pod's CPUs, why it has none of its own)."""
    end, reason = time.monotonic() + RUNS, "it was not looked at"
    while time.monotonic() < end:
        container = _container(evidence)
        if container is None:
            reason = (
                f"its container did not start within {int(RUNS)} s (journalctl -u kubelet;"
                f" kubectl -n {NAMESPACE}"
                f" describe pod {NAME}-<node>)"
            )
        else:
            cpus, reason = alone(files.text(path, 16 * 1024 * 1024), container, count)
            if reason is None:
                return cpus, None
        time.sleep(EVERY)
    return None, reason


def alone(text, container, count):
    """Return (the CPUs that the state gives only to this container, None), or (None, why not).

    container: as the collector pinning returns it.
    """
    try:
        entry, default = _entry(json.loads(text or ""), container)
        cpus = numbers(entry or "")
    except (ValueError, KeyError, AttributeError, TypeError):
        return None, "the CPU manager's state cannot be read"
    if not cpus:
        return None, "the CPU manager's state has no entry for it"
    if len(cpus) != count or cpus & default:
        shared = sorted(cpus & default) or "none"
        return None, f"the CPU manager's state gives it {entry} of which {shared} are everybody's"
    if numbers(container["cpus"] or "") != cpus:
        return None, "the state gives it {}, and its cgroup {}".format(entry, container["cpus"])
    return entry, None


def _entry(state, container):
    """Return (the container's CPUs by the state, the CPUs of all others)."""
    entries, default = state.get("entries") or {}, numbers(state["defaultCpuSet"])
    # releases before 1.18 name containers by their ids
    entry = entries.get(container["container_id"])
    if not isinstance(entry, str):
        entry = (entries.get(container["pod_uid"]) or {}).get("pinned")
    return entry, default


def numbers(text):
    """Return the CPUs of a list such as 0-1,4."""
    cpus = set()
    for part in text.split(","):
        if part.strip():
            first, dash, last = part.strip().partition("-")
            cpus.update(range(int(first), int(last if dash else first) + 1))
    return cpus


def _container(evidence):
    """Return the pod's container as it runs, None where it does not yet."""
    facts = pinning.collect(registry.Context({}, procfs.of_interest(), {"kubelet": evidence}))
    prefix = f"{NAMESPACE}/{NAME}-"
    for container in facts["containers"] or ():
        if (container["pod"] or "").startswith(prefix) and container["name"] == "pinned":
            return container
    return None


def _remove(record, context):
    """Remove the pod's file, and the directory that was made for it; return why not, or None."""
    path = record["path"]
    folder = os.path.dirname(path)
    try:
        if os.path.lexists(path):
            digest = storage.digest(files.read(path, 65536))
            file_change.move_out(path, digest, context.also(keep=KEPT))
        if record.get("made") and os.path.isdir(folder) and not os.listdir(folder):
            # kubeadm's workers have none: the kubelet looks for it every 20 s all the same
            os.rmdir(folder)
    except (ChangeError, OSError) as error:
        return f"{path} is still there ({files.one_line(error)}): remove it"
    return None


def _gone(evidence):
    """Wait until the pod is gone; return why it is not, or None."""
    end = time.monotonic() + GONE
    while _container(evidence) is not None:
        if time.monotonic() >= end:
            return f"its pod is not gone after {int(GONE)} s: see journalctl -u kubelet"
        time.sleep(EVERY)
    return None
