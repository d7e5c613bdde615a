# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: the leading scheduler of this node restarted, because its list of nodes lacks some.

Proven when this node's scheduler is well again, another instance leads (on this node or on another one), and the pods that
waited for the nodes that were lost are placed. A pod is placed by whoever leads: the others never made a list.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import time

from ansible_collections.kubemend.remediation.plugins.module_utils import apply_step, config_map, guard, proof, prove
from ansible_collections.kubemend.remediation.plugins.module_utils.api import ApiError, dicts
from ansible_collections.kubemend.remediation.plugins.module_utils.collect import files
from ansible_collections.kubemend.remediation.plugins.module_utils.durable import ChangeError

REMEDY, COMPONENT = "restart_leader", "kube-scheduler"
PAUSE = "scheduler_pause"
LEADS = 60  # seconds: whoever is next takes the lock when its 15 s are over, later on a busy machine
PLACED = 90  # a scheduler that begins to lead has every pod that waits in its queue, and there may be thousands
EVERY = 1.0
API = 30
ANNOTATION = "control-plane.alpha.kubernetes.io/leader"
PATHS = {"Lease": "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/%s", "Endpoints": "/api/v1/namespaces/kube-system/endpoints/%s",
         "ConfigMap": "/api/v1/namespaces/kube-system/configmaps/%s"}


def do(step, wanted, host, params=None):
    """(how its proof ended, why, what was seen). wanted: the plan's step; its change is {lock, holder, node, pods, cluster_uid}."""
    told = wanted["change"]
    try:
        scene = guard.check(wanted, params or {})
        if scene.former is None:
            raise guard.Refused("no %s runs on %s now; %s" % (COMPONENT, host, guard.OLD))
        _may(told, wanted, host, params or {})
        record = {"component": COMPONENT, "host": host, "remedy": REMEDY, "limit": apply_step.limit_of(wanted), "kind": "none", "path": None,
                  "expect": wanted["expect"], "guard": wanted.get("guard"),
                  "former": {"pid": scene.former.pid, "ticks": scene.former.ticks, "argv": files.masked_argv(scene.former.argv)}}
        if proof.claim(step, record) is not None:
            return proof.FAILED, "it was begun before (a connection that was made twice)", {}
    except (guard.Refused, ChangeError) as error:
        return proof.NOT_DONE, str(error), {}
    begin = time.monotonic()
    prove.terminate(scene.former)
    found = _back(scene.former.identity, scene.credentials, record, begin)
    seen = dict(found.seen(), proof_seconds=round(found.shown_at - begin, 2) if found.shown_at else None)
    if not found.ok:
        return proof.ended(step, proof.FAILED, "component down: %s of %s did not come back within %d s (%s): look at journalctl -u kubelet, crictl ps -a "
                           "--name %s and /var/log/pods/kube-system_%s-* there" % (COMPONENT, host, round(found.waited), found.reason, COMPONENT, COMPONENT),
                           seen)
    return proof.ended(step, *_placed(told, params or {}), seen=seen)


def _back(former, credentials, record, begin):
    """The Proof of another process than the former one."""
    return prove.wait(prove.Want(COMPONENT, not_identity=former, elect=True), credentials, begin + record["limit"],
                      later=lambda: begin + apply_step.BACK_OFF if guard.startable(record["expect"].get("image")) else 0)


def _via(told, params):
    return {"kubectl": params.get("kubectl"), "kubeconfig": params.get("kubeconfig"), "cluster_uid": told.get("cluster_uid")}


def _may(told, wanted, host, params):
    """Nothing, or guard.Refused: it leads no more, or nobody would take over."""
    try:
        with config_map.reached(_via(told, params), seconds=API) as (api, dummy):
            now = holder(api, told["lock"])
            if now != told["holder"]:
                raise guard.Refused("%s of %s does not lead any more (%s does), and whoever begins to lead knows every node; collect evidence again"
                                    % (COMPONENT, host, files.one_line(now or "nobody", 120)))
            if PAUSE not in ((wanted.get("guard") or {}).get("allow") or []) and not others(api, told.get("node")):
                raise guard.Refused("no other %s is ready that could take over while that of %s starts again: no pod would be placed meanwhile; allow it "
                                    "with kubemend_allow: [%s]" % (COMPONENT, host, PAUSE))
    except ApiError as error:
        raise guard.Refused("who leads is not known, because the API does not answer as it should (%s); nothing was restarted, run again" % error)


def holder(api, lock):
    """The identity that a lock names, or None."""
    item = api.get(PATHS[lock["kind"]] % lock["name"])
    if lock["kind"] == "Lease":
        return (item.get("spec") or {}).get("holderIdentity")
    try:
        record = json.loads(((item.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION) or "{}")
    except ValueError:
        return None
    return record.get("holderIdentity") if isinstance(record, dict) else None


def others(api, node):
    """Nodes beside this one whose static pod of the component is ready, as their kubelets say."""
    found = []
    for item in api.items("/api/v1/namespaces/kube-system/pods", {"fieldSelector": "status.phase=Running"}):
        meta, spec, status = (item.get(name) or {} for name in ("metadata", "spec", "status"))
        names = [one.get("name") for one in dicts(spec.get("containers"))]
        ready = [one.get("status") for one in dicts(status.get("conditions")) if one.get("type") == "Ready"]
        if COMPONENT in names and "kubernetes.io/config.mirror" in (meta.get("annotations") or {}) and spec.get("nodeName") != node and ready == ["True"]:
            found.append(spec.get("nodeName"))
    return sorted(found)


def _placed(told, params):
    """(how the proof ends, why): another instance leads, and the pods are placed. Asked again while the API does not answer."""
    begin, leads, waiting, trouble = time.monotonic(), None, list(told["pods"]), None
    while True:
        try:
            with config_map.reached(_via(told, params), seconds=PLACED + API) as (api, dummy):
                while True:
                    leads = leads or _other(holder(api, told["lock"]), told["holder"])
                    waiting = [pod for pod in waiting if not placed(api, pod)] if leads else waiting
                    if leads and not waiting or time.monotonic() - begin > (PLACED if leads else LEADS):
                        return _told(told, leads, waiting)
                    time.sleep(EVERY)
        except ApiError as error:
            trouble = error
        if time.monotonic() - begin > PLACED:
            return proof.FAILED, "it was restarted, and whether the pods are placed is not known, because the API does not answer as it should (%s)" % trouble
        time.sleep(EVERY)


def _other(now, former):
    return now if now and now != former else None


def placed(api, pod):
    """Whether a pod has its node, or is no more."""
    try:
        item = api.get("/api/v1/namespaces/%s/pods/%s" % (pod[0], pod[1]))
    except ApiError as error:
        if error.code == 404:
            return True
        raise
    return bool((item.get("spec") or {}).get("nodeName"))


def _told(told, leads, waiting):
    if not leads:
        return proof.FAILED, "it was restarted, and nobody leads after %d s: see the logs of all schedulers" % LEADS
    name = files.one_line(leads, 120).rpartition("_")[0] or files.one_line(leads, 120)
    if waiting:
        return proof.FAILED, "%s leads now, but these pods still wait after %d s: %s; see what the scheduler says of them (kubectl describe pod)" % (
            name, PLACED, ", ".join("%s/%s" % tuple(pod[:2]) for pod in waiting[:5]))
    return proof.PROVEN, "%s leads now, and %s placed" % (
        name, "the pod %s/%s is" % tuple(told["pods"][0][:2]) if len(told["pods"]) == 1 else "%d pods are" % len(told["pods"]))


def resumed(record, dummy_step):
    """What was interrupted, ended: (how its proof ends, why). guard.Refused where nothing can be told now: it stays open.

    Whether the pods are placed is judged from the evidence that is collected afterwards.
    """
    former = record.get("former") or {}
    identity = (former.get("pid"), former.get("ticks"))
    if any(one.identity == identity for one in prove.instances(COMPONENT)):
        return proof.NOT_DONE, "%s of %s was not restarted" % (COMPONENT, record["host"])
    credentials = guard.resume(record, {})
    found = _back(identity, credentials, record, time.monotonic())
    return (proof.PROVEN, "it runs again") if found.ok else (proof.FAILED, "component down: %s of %s does not run (%s)" % (
        COMPONENT, record["host"], found.reason))
