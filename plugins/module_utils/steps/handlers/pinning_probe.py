# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof that this node pins.

A static pod of ours gets CPUs alone, and its cgroup has those and no others.

A static pod needs no scheduler and no API server, so that a cordoned node can show it before
anybody else's pod comes. It is of an image that the node has and that only waits; its file is taken
away whatever came of it, and by the next run where this one was killed.
"""

import json
import os
import time

from ...collectors import registry as spec
from ...collectors.node import pinning
from ...state import step_record as proof
from ...state import storage as durable
from ...state.storage import ChangeError
from ...system import files, procfs
from ...system import runtime_tool as runtime
from .. import file_change as change
from .. import kubelet_restart
from .. import preconditions as guard

REMEDY = "pinned_pod"
NAME, NAMESPACE = "kubemend-pinned", "kube-system"
FILE = "kubemend-pinned.json"
RUNS = 90  # seconds until it must run with CPUs of its own: a kubelet looks at its folder every 20
GONE = 60  # seconds until it must be gone again
SECONDS = RUNS + GONE + 30
EVERY = 1.0
KEPT = "a test pod is not put back"


def do(step, wanted, host, dummy_params=None):
    """(how its proof ended, why, what was seen). step: on whose behalf; wanted.

    The plan's step, its change {path, whole_cores, state}.
    """
    told = wanted["change"]
    try:
        evidence, count = (
            _demand(told, host),
            (threads(pinning.topology()) if told["whole_cores"] else 1),
        )
        data = manifest(_image(evidence, host), count)
        record = {
            "component": None,
            "host": host,
            "remedy": REMEDY,
            "limit": SECONDS,
            "kind": "none",
            "path": told["path"],
            "expect": {},
            "made": not os.path.lexists(os.path.dirname(told["path"])),
            "guard": wanted.get("guard"),
            "former": None,
        }
        if proof.claim(step, record) is not None:
            return proof.FAILED, "it was begun before (a connection that was made twice)", {}
    except (guard.Refused, ChangeError) as error:
        return proof.NOT_DONE, str(error), {}
    try:
        change.create_file(
            told["path"], data, step.also(keep=KEPT), change.Attributes(0o600), make_folder=True
        )
    except (ChangeError, OSError) as error:
        why = "{} of {} was not written: {}".format(told["path"], host, files.one_line(error))
        return (
            _open(step, why)
            if getattr(error, "changed", False)
            else proof.ended(step, proof.NOT_DONE, why)
        )
    cpus, reason = _pinned(evidence, told["state"], count)
    left = _removed(record, step)
    if left:
        return _open(step, "; ".join(part for part in (reason, left) if part))
    left = _gone(evidence)
    if reason or left:
        told = (reason and f"no CPU is given to a pod alone on {host}: {reason}", left)
        return proof.ended(step, proof.FAILED, "; ".join(part for part in told if part))
    return proof.ended(step, proof.PROVEN, f"a pod of ours had CPUs {cpus} alone")


def _open(step, why):
    """As remedies answer, of a file that lies there still and that a kubelet runs.

    The record stays open, so that the next run takes it away.
    """
    why += "; the next run takes it away (KM902)"
    proof.tell(step.run_id, step.step, why, step.root, "ended_so")
    return proof.FAILED, why, {}


def _demand(told, host):
    """The kubelet's evidence, or guard.Refused.

    A healthy one, that starts what lies in this folder, and nothing of that name there.
    """
    found = kubelet_restart.look(host)
    if not found.healthy:
        raise guard.Refused(
            f"the kubelet of {host} is not healthy, so that no pod shows anything: mend it first"
            " (journalctl -u kubelet)"
        )
    folder = found.evidence.get("static_pod_path")
    if not folder or os.path.join(folder, FILE) != told["path"]:
        raise guard.Refused(
            "the kubelet of {} starts no static pods from {}; {}".format(
                host, os.path.dirname(told["path"]), guard.OLD
            )
        )
    if os.path.lexists(told["path"]):
        raise guard.Refused(
            "{} is there already on {}: see whose it is, and take it away".format(
                told["path"], host
            )
        )
    return found.evidence


def _image(evidence, host):
    """An image that the node has, of a container that only waits; guard.Refused."""
    try:
        names = runtime.find(evidence).images()
    except runtime.RuntimeDown as error:
        raise guard.Refused(
            f"the runtime of {host} does not tell its images ({error}): nothing was started"
        )
    found = sorted(name for name in names if runtime.PAUSE_IMAGE.search(name))
    if not found:
        raise guard.Refused(
            f"{host} has no image of a container that only waits (pause), as far as crictl, ctr or"
            " docker tells: nothing was started"
        )
    return found[-1]


def threads(rows):
    """How many CPUs a core has, of pinning.topology.

    What a policy that gives whole cores alone can be asked for.
    """
    cores = {(core, socket) for dummy, core, socket, dummy in rows}
    return max(1, len(rows) // len(cores)) if cores else 1


def manifest(image, cpus):
    """The pod, as bytes: Guaranteed, with whole CPUs, of an image that is never fetched."""
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
    """(its CPUs, why it has none alone)."""
    end, reason = time.monotonic() + RUNS, "it was not looked at"
    while time.monotonic() < end:
        own = _container(evidence)
        if own is None:
            reason = (
                "its container did not start within %d s (journalctl -u kubelet; kubectl -n %s"
                " describe pod %s-<node>)" % (RUNS, NAMESPACE, NAME)
            )
        else:
            given, reason = alone(files.text(path, 16 * 1024 * 1024), own, count)
            if reason is None:
                return given, None
        time.sleep(EVERY)
    return None, reason


def alone(text, own, count):
    """(the CPUs that the state gives this container alone, None; or None, why it has none). own.

    Of the collector pinning.
    """
    try:
        state = json.loads(text or "")
        entries, default = state.get("entries") or {}, numbers(state["defaultCpuSet"])
        # releases before 1.18 name containers by their ids
        given = entries.get(own["container_id"])
        given = (
            given if isinstance(given, str) else (entries.get(own["pod_uid"]) or {}).get("pinned")
        )
        cpus = numbers(given or "")
    except (ValueError, KeyError, AttributeError, TypeError):
        return None, "the CPU manager's state cannot be read"
    if not cpus:
        return None, "the CPU manager's state has no entry for it"
    if len(cpus) != count or cpus & default:
        return None, "the CPU manager's state gives it {} of which {} are everybody's".format(
            given,
            sorted(cpus & default) or "none",
        )
    if numbers(own["cpus"] or "") != cpus:
        return None, "the state gives it {}, and its cgroup {}".format(given, own["cpus"])
    return given, None


def numbers(text):
    """The CPUs of a list such as 0-1,4."""
    found = set()
    for part in text.split(","):
        if part.strip():
            first, dash, last = part.strip().partition("-")
            found.update(range(int(first), int(last if dash else first) + 1))
    return found


def _container(evidence):
    """Our container as it runs, None where it does not yet."""
    seen = pinning.collect(spec.Context({}, procfs.of_interest(), {"kubelet": evidence}))
    mine = f"{NAMESPACE}/{NAME}-"
    return next(
        (
            one
            for one in seen["containers"] or ()
            if (one["pod"] or "").startswith(mine) and one["name"] == "pinned"
        ),
        None,
    )


def _removed(record, step):
    """Our file away, and the folder that was made for it: why not, or None."""
    path = record["path"]
    try:
        if os.path.lexists(path):
            change.move_out(path, durable.digest(files.read(path, 65536)), step.also(keep=KEPT))
        if (
            record.get("made")
            and os.path.isdir(os.path.dirname(path))
            and not os.listdir(os.path.dirname(path))
        ):
            # kubeadm's workers have none: the kubelet looks for it every 20 s all the same
            os.rmdir(os.path.dirname(path))
    except (ChangeError, OSError) as error:
        return f"{path} is still there ({files.one_line(error)}): remove it"
    return None


def _gone(evidence):
    """Its pod gone: why not, or None."""
    end = time.monotonic() + GONE
    while _container(evidence) is not None:
        if time.monotonic() >= end:
            return "its pod is not gone after %d s: see journalctl -u kubelet" % GONE
        time.sleep(EVERY)
    return None


def resumed(record, step):
    """What was interrupted, ended: (how its proof ends, None while the file lies there; why).

    The file goes first: a kubelet that does not answer now reads the folder later.
    """
    trouble = _removed(record, step)
    if trouble:
        return None, trouble
    try:
        trouble = _gone(kubelet_restart.look(record["host"]).evidence)
    except guard.Refused as error:
        trouble = "{}; {} is away, so that its pod goes once the kubelet runs".format(
            error,
            record["path"],
        )
    return (proof.FAILED, trouble) if trouble else (proof.NOT_DONE, "its test pod is gone")
