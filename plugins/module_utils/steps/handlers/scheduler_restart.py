# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The leading scheduler of this node restarted, because its list of nodes lacks some.

Proven when this node's scheduler is well again, another instance leads (on this node or on another
one), and the pods that waited for the nodes that were lost are placed. A pod is placed by whoever
leads: the others never made a list. One that goes on waiting is served too once the scheduler's
message counts every node: its own is back, and lacks something that no restart brings.

Where another instance leads since the evidence was collected, as after another step of the run,
only that is proven.
"""

import json
import re
import time

from ...kubeapi.client import ApiError, dicts
from ...state import step_record as proof
from ...state.storage import ChangeError
from ...system import files
from .. import (
    api_object_change as config_map,
)
from .. import (
    executor as apply_step,
)
from .. import (
    health_probe as prove,
)
from .. import (
    preconditions as guard,
)

REMEDY, COMPONENT = "restart_leader", "kube-scheduler"
PAUSE = "scheduler_pause"
# seconds: whoever is next takes the lock when its 15 s are over, later on a busy machine
LEADS = 60
# seconds that a lock lasts, and by which one that lasts longer is waited for at most
USUAL, MOST = 15, 180
# a scheduler that begins to lead has every pod that waits in its queue, and there may be thousands
PLACED = 90
EVERY = 1.0
API = 30
SHOWN = 5
BEGUN = "it was begun before (a connection that was made twice)"
MAX_MESSAGE = 64 * 1024  # a condition's message may have 32 KiB
HEAD = re.compile(r"0/([0-9]{1,6}) nodes are available:")
# A clause begins with how many nodes it is of; a comma inside of one is followed by no number.
CLAUSE = re.compile(r"(?:^|,) ([0-9]{1,6}) ((?:(?!, [0-9]{1,6} ).)*)", re.S)
LACKS = re.compile(r"Insufficient |Too many pods")
ANNOTATION = "control-plane.alpha.kubernetes.io/leader"
PATHS = {
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/%s",
    "Endpoints": "/api/v1/namespaces/kube-system/endpoints/%s",
    "ConfigMap": "/api/v1/namespaces/kube-system/configmaps/%s",
}


def do(step, wanted, host, params=None):
    """(how its proof ended, why, what was seen). wanted: the plan's step.

    Its change is {lock, holder, node, pods, cluster_uid}.
    """
    told = wanted["change"]
    try:
        scene = guard.check(wanted, params or {})
        if scene.former is None:
            raise guard.Refused(f"no {COMPONENT} runs on {host} now; {guard.OLD}")
        count = _may(told, wanted, host, params or {})
        record = _record(wanted, host, scene.former)
        if proof.claim(step, record) is not None:
            return proof.FAILED, BEGUN, {}
    except guard.Refused as error:
        return _since(step, wanted, host, params or {}, str(error))
    except ChangeError as error:
        return proof.NOT_DONE, str(error), {}
    begin = time.monotonic()
    prove.terminate(scene.former)
    found = _back(scene.former.identity, scene.credentials, record, begin)
    seen = dict(
        found.seen(), proof_seconds=round(found.shown_at - begin, 2) if found.shown_at else None
    )
    if not found.ok:
        return proof.ended(
            step,
            proof.FAILED,
            "component down: %s of %s did not come back within %d s (%s): look at journalctl -u"
            " kubelet, crictl ps -a --name %s and /var/log/pods/kube-system_%s-* there"
            % (COMPONENT, host, round(found.waited), found.reason, COMPONENT, COMPONENT),
            seen,
        )
    return proof.ended(step, *_placed(told, params or {}, count), seen=seen)


def _record(wanted, host, former):
    return {
        "component": COMPONENT,
        "host": host,
        "remedy": REMEDY,
        "limit": apply_step.limit_of(wanted),
        "kind": "none",
        "path": None,
        "expect": wanted["expect"],
        "guard": wanted.get("guard"),
        "former": (
            {"pid": former.pid, "ticks": former.ticks, "argv": files.masked_argv(former.argv)}
            if former
            else {}
        ),
    }


def _since(step, wanted, host, params, refusal):
    """What is refused, or proven without a restart.

    Another instance leads since the evidence, and the pods are placed.
    """
    told = wanted["change"]
    if not _moved(told, wanted, params):
        return proof.NOT_DONE, refusal, {}
    try:
        with config_map.reached(_via(told, params), seconds=API) as (api, _dummy):
            count = _count(api, told)
    except ApiError:
        count = None
    state, why = _placed(told, params, count)
    if state != proof.PROVEN:
        return proof.NOT_DONE, refusal, {}
    try:
        if proof.claim(step, _record(wanted, host, None)) is not None:
            return proof.FAILED, BEGUN, {}
    except ChangeError as error:
        return proof.NOT_DONE, str(error), {}
    return proof.ended(
        step,
        proof.PROVEN,
        f"another {COMPONENT} leads since the evidence was collected, and nothing was restarted:"
        f" {why}",
    )


def _moved(told, wanted, params):
    """Who else leads now. The lock of one that has just ended is somebody else's only once its
    time is over.
    """
    pid, begin = wanted["expect"].get("pid"), time.monotonic()
    ended = pid is not None and pid not in [one.pid for one in prove.instances(COMPONENT)]
    while True:
        try:
            with config_map.reached(_via(told, params), seconds=API) as (api, _dummy):
                leads = _other(holder(api, told["lock"]), told["holder"])
        except ApiError:
            leads = None
        if leads or not ended or time.monotonic() - begin > LEADS:
            return leads
        time.sleep(EVERY)


def _back(former, credentials, record, begin):
    """The Proof of another process than the former one."""
    return prove.wait(
        prove.Want(COMPONENT, not_identity=former, elect=True),
        credentials,
        begin + record["limit"],
        later=lambda: (
            begin + apply_step.BACK_OFF if guard.startable(record["expect"].get("image")) else 0
        ),
    )


def _via(told, params):
    return {
        "kubectl": params.get("kubectl"),
        "kubeconfig": params.get("kubeconfig"),
        "cluster_uid": told.get("cluster_uid"),
    }


def _may(told, wanted, host, params):
    """How many nodes the scheduler speaks of, or guard.Refused.

    It leads no more, or nobody would take over.
    """
    try:
        with config_map.reached(_via(told, params), seconds=API) as (api, _dummy):
            now = holder(api, told["lock"])
            if now != told["holder"]:
                raise guard.Refused(
                    "{} of {} does not lead any more ({} does), and whoever begins to lead knows"
                    " every node; collect evidence again".format(
                        COMPONENT, host, files.one_line(now or "nobody", 120)
                    )
                )
            if PAUSE not in ((wanted.get("guard") or {}).get("allow") or []) and not others(
                api, told.get("node")
            ):
                raise guard.Refused(
                    f"no other {COMPONENT} is ready that could take over while that of {host}"
                    " starts again: no pod would be placed meanwhile; allow it with"
                    f" kubemend_allow: [{PAUSE}]"
                )
            return _count(api, told)
    except ApiError as error:
        raise guard.Refused(
            f"who leads is not known, because the API does not answer as it should ({error});"
            " nothing was restarted, run again"
        )


def holder(api, lock):
    """The identity that a lock names, or None."""
    return _record_of(api, lock).get("holderIdentity")


def _record_of(api, lock):
    """What a lock says: who holds it, and for how long without renewing it."""
    item = api.get(PATHS[lock["kind"]] % lock["name"])
    if lock["kind"] == "Lease":
        return item.get("spec") or {}
    try:
        record = json.loads(
            ((item.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION) or "{}"
        )
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _patience(record):
    """Seconds until another one leads.

    Whose lock lasts longer than usual is waited for as much longer.
    """
    lasts = record.get("leaseDurationSeconds")
    return LEADS + min(MOST, max(0, lasts - USUAL) if isinstance(lasts, (int, float)) else 0)


def others(api, node):
    """Nodes beside this one whose static pod of the component is ready, as their kubelets say."""
    found = []
    for item in api.items(
        "/api/v1/namespaces/kube-system/pods", {"fieldSelector": "status.phase=Running"}
    ):
        meta, spec, status = (item.get(name) or {} for name in ("metadata", "spec", "status"))
        names = [one.get("name") for one in dicts(spec.get("containers"))]
        ready = [
            one.get("status")
            for one in dicts(status.get("conditions"))
            if one.get("type") == "Ready"
        ]
        if (
            COMPONENT in names
            and "kubernetes.io/config.mirror" in (meta.get("annotations") or {})
            and spec.get("nodeName") != node
            and ready == ["True"]
        ):
            found.append(spec.get("nodeName"))
    return sorted(found)


def _placed(told, params, count):
    """(how the proof ends, why): another instance leads, and the pods are served.

    Asked again while the API does not answer.
    """
    begin, leads, waiting, others_say = time.monotonic(), None, list(told["pods"]), []
    end = begin + LEADS
    while True:
        try:
            with config_map.reached(_via(told, params), seconds=LEADS + MOST + PLACED + API) as (
                api,
                _dummy,
            ):
                while True:
                    record = _record_of(api, told["lock"])
                    if not leads:
                        leads = _other(record.get("holderIdentity"), told["holder"])
                        end = time.monotonic() + PLACED if leads else begin + _patience(record)
                    waiting = _unserved(api, waiting, count, others_say) if leads else waiting
                    if (leads and not waiting) or time.monotonic() > end:
                        return _told(told, leads, waiting, others_say, end - begin)
                    time.sleep(EVERY)
        except ApiError as error:
            if time.monotonic() > max(end, begin + PLACED):
                return (
                    proof.FAILED,
                    (
                        "it was restarted, and whether the pods are placed is not known, because"
                        f" the API does not answer as it should ({error})"
                    ),
                )
        time.sleep(EVERY)


def _other(now, former):
    return now if now and now != former else None


def refused(api, pod):
    """What the scheduler says of a pod that waits, empty without a word.

    None of one that has its node, or is no more.
    """
    try:
        item = api.get(f"/api/v1/namespaces/{pod[0]}/pods/{pod[1]}")
    except ApiError as error:
        if error.code == 404:
            return None
        raise
    if (item.get("spec") or {}).get("nodeName"):
        return None
    said = [
        one.get("message")
        for one in dicts((item.get("status") or {}).get("conditions"))
        if one.get("type") == "PodScheduled"
    ]
    return said[0] if said and isinstance(said[0], str) else ""


def counted(message):
    """(N, of how many nodes at least it gives a reason) of "0/N nodes are available: a x, b y.".

    (None, 0) of what is none.

    A node can lack several resources, so that of those only the largest number counts; and what
    preemption tried says the same nodes again.
    """
    head = HEAD.search(message[:MAX_MESSAGE])
    if head is None:
        return None, 0
    found = [
        (int(count), words)
        for count, words in CLAUSE.findall(
            message[head.end() : MAX_MESSAGE].partition("preemption:")[0]
        )
    ]
    lacking = [count for count, words in found if LACKS.match(words)]
    return int(head.group(1)), sum(count for count, words in found if not LACKS.match(words)) + max(
        lacking or [0]
    )


def _count(api, told):
    """How many nodes the scheduler speaks of where these pods are not placed.

    None where it does not tell.
    """
    numbers = [counted(refused(api, pod) or "")[0] for pod in told["pods"][:SHOWN]]
    return max([number for number in numbers if number] or [0]) or None


def _unserved(api, waiting, count, others_say):
    """The pods that still wait for a node that is not looked at. others_say.

    Gets what is said of those that wait for another reason now.
    """
    left = []
    for pod in waiting:
        message = refused(api, pod)
        number, reasons = counted(message or "")
        if message is not None and count and number and reasons >= number >= count:
            others_say.append(
                "the pod %s/%s is looked at with all %d nodes now, and waits for another reason: %s"
                % (pod[0], pod[1], number, files.one_line(message, 300))
            )
        elif message is not None:
            left.append(pod)
    return left


def _told(told, leads, waiting, others_say, waited=LEADS):
    if not leads:
        return (
            proof.FAILED,
            "it was restarted, and nobody leads after %d s: see the logs of all schedulers"
            % waited,
        )
    name = files.one_line(leads, 120).rpartition("_")[0] or files.one_line(leads, 120)
    if waiting:
        return (
            proof.FAILED,
            "%s leads now, but these pods still wait after %d s: %s; see what the scheduler says of"
            " them (kubectl describe pod)"
            % (name, PLACED, ", ".join("{}/{}".format(*tuple(pod[:2])) for pod in waiting[:SHOWN])),
        )
    count = len(told["pods"]) - len(others_say)
    one = (
        "the pod {}/{} is placed".format(*tuple(told["pods"][0][:2]))
        if len(told["pods"]) == 1
        else "one pod is placed"
    )
    placed = (
        [one if count == 1 else "%d pods are placed" % count] if count or not others_say else []
    )
    return proof.PROVEN, "{} leads now, and {}".format(name, "; ".join(placed + others_say[:SHOWN]))


def resumed(record, dummy_step):
    """What was interrupted, ended: (how its proof ends, why).

    Guard.Refused where nothing can be told now: it stays open.

    Whether the pods are placed is judged from the evidence that is collected afterwards.
    """
    former = record.get("former") or {}
    identity = (former.get("pid"), former.get("ticks"))
    if any(one.identity == identity for one in prove.instances(COMPONENT)):
        return proof.NOT_DONE, "{} of {} was not restarted".format(COMPONENT, record["host"])
    credentials = guard.resume(record, {})
    found = _back(identity, credentials, record, time.monotonic())
    return (
        (proof.PROVEN, "it runs again")
        if found.ok
        else (
            proof.FAILED,
            "component down: {} of {} does not run ({})".format(
                COMPONENT, record["host"], found.reason
            ),
        )
    )
