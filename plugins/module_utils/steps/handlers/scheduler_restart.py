# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restarts the leading scheduler of this node, because its list of nodes lacks some.

The restart is verified when this node's scheduler is healthy again, another instance leads (on this
node or on another one), and the pods that waited for the missing nodes are placed. The leader
places a pod; the other instances have made no list yet. A pod that still waits counts as served
once the scheduler's message counts every node: its own node is in the list again, and no restart
helps the pod.

Where another instance has led since the evidence was collected, as after another step of the run,
only the placement is verified.
"""

import json
import re
import time

from ...changes import signals, step_claim
from ...kubeapi.client import ApiError, dicts
from ...shared import step_times
from ...shared.consent import SCHEDULER_PAUSE
from ...shared.errors import PreconditionFailed
from ...state import step_record
from ...state.storage import ChangeError
from ...system import files
from .. import api_object_change, health_probe, preconditions
from ..base import BEGUN_BEFORE, StepHandler, outcome

COMPONENT = "kube-scheduler"
# seconds: the next leader takes the lock when its 15 s are over, later on a busy machine
LEADS = 60
# seconds that a lock lasts, and by which one that lasts longer is waited for at most
USUAL, MOST = 15, 180
# a scheduler that begins to lead has every pod that waits in its queue, and there may be thousands
PLACED = 90
EVERY = 1.0
API = 30
SHOWN = 5
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


class RestartLeader(StepHandler):
    """Restarts the leading scheduler.

    The change of a step is {lock, holder, node, pods, cluster_uid}.
    """

    def check(self, step):
        """Refuse where the scheduler no longer runs or leads, or no other instance is ready."""
        self.scene = preconditions.check(step.plan, step.params)
        if self.scene.former is None:
            raise PreconditionFailed(f"no {COMPONENT} runs on {step.host} now; {preconditions.OLD}")
        self.count = _count_where_allowed(step)
        return _facts(step, self.scene.former)

    def refuse(self, step, error):
        """Return the refusal, or the end of a step that another leader made needless."""
        if isinstance(error, PreconditionFailed):
            return _led_since(self, step, str(error))
        return step_record.NOT_DONE, str(error), {}

    def perform(self, step, record):
        """End the process, and wait for the next one, another leader and the pods."""
        former = self.scene.former
        begin = time.monotonic()
        signals.terminate(former)
        health = _wait(former.identity, self.scene.credentials, record, begin)
        seconds = None
        if health.shown_at:
            seconds = round(health.shown_at - begin, 2)
        observation = dict(health.observation(), proof_seconds=seconds)
        if not health.ok:
            return outcome(
                step.context,
                step_record.FAILED,
                f"component down: {COMPONENT} of {step.host} did not come back within"
                f" {round(health.waited)} s ({health.reason}): look at journalctl"
                f" -u kubelet, crictl ps -a --name {COMPONENT} and"
                f" /var/log/pods/kube-system_{COMPONENT}-* there",
                observation,
            )
        state, reason = _placed(step.change, step.params, self.count)
        return outcome(step.context, state, reason, observation)

    def recover(self, record, context=None, params=None):
        """Verify that the scheduler runs; raise PreconditionFailed where that is not known now.

        The evidence that is collected afterwards shows whether the pods are placed.
        """
        former = record.get("former") or {}
        identity = (former.get("pid"), former.get("ticks"))
        if any(instance.identity == identity for instance in health_probe.instances(COMPONENT)):
            return step_record.NOT_DONE, "{} of {} was not restarted".format(
                COMPONENT, record["host"]
            )
        credentials = preconditions.resume(record, {})
        health = _wait(identity, credentials, record, time.monotonic())
        if health.ok:
            return step_record.PROVEN, "it runs again"
        return (
            step_record.FAILED,
            "component down: {} of {} does not run ({})".format(
                COMPONENT, record["host"], health.reason
            ),
        )


def _facts(step, former):
    identity = {}
    if former:
        identity = {
            "pid": former.pid,
            "ticks": former.ticks,
            "argv": files.masked_argv(former.argv),
        }
    return {
        "component": COMPONENT,
        "limit": step_times.limit_of(step.plan),
        "path": None,
        "expect": step.plan["expect"],
        "former": identity,
    }


def _led_since(handler, step, refusal):
    """Return the refusal, or a verified end without a restart.

    The end is verified if another instance has led since the evidence was collected, and the pods
    are placed.
    """
    if not _new_leader(step):
        return step_record.NOT_DONE, refusal, {}
    try:
        with _reached(step) as (api, _dummy):
            count = _count(api, step.change)
    except ApiError:
        count = None
    state, reason = _placed(step.change, step.params, count)
    if state != step_record.PROVEN:
        return step_record.NOT_DONE, refusal, {}
    try:
        record = handler.record_of(step, _facts(step, None))
        if step_claim.claim(step.context, record) is not None:
            return step_record.FAILED, BEGUN_BEFORE, {}
    except ChangeError as error:
        return step_record.NOT_DONE, str(error), {}
    return outcome(
        step.context,
        step_record.PROVEN,
        f"another {COMPONENT} leads since the evidence was collected, and nothing was restarted:"
        f" {reason}",
    )


def _new_leader(step):
    """Return the instance that leads now instead, or None.

    The lease of an instance that has just ended is lost only when its duration is over.
    """
    pid, begin = step.expect.get("pid"), time.monotonic()
    has_ended = pid is not None and pid not in [
        instance.pid for instance in health_probe.instances(COMPONENT)
    ]
    while True:
        try:
            with _reached(step) as (api, _dummy):
                leader = _other(holder(api, step.change["lock"]), step.change["holder"])
        except ApiError:
            leader = None
        if leader or not has_ended or time.monotonic() - begin > LEADS:
            return leader
        time.sleep(EVERY)


def _wait(former, credentials, record, begin):
    """Wait for another process than the former one, and return what was seen."""

    def back_off_end():
        if preconditions.startable(record["expect"].get("image")):
            return begin + step_times.BACK_OFF
        return 0

    return health_probe.wait(
        health_probe.ExpectedState(COMPONENT, not_identity=former, elect=True),
        credentials,
        begin + record["limit"],
        later=back_off_end,
    )


def _reached(step):
    return api_object_change.reached(_via(step.change, step.params), seconds=API)


def _via(change, params):
    return {
        "kubectl": params.get("kubectl"),
        "kubeconfig": params.get("kubeconfig"),
        "cluster_uid": change.get("cluster_uid"),
    }


def _count_where_allowed(step):
    """Return how many nodes the scheduler counts.

    PreconditionFailed is raised where it no longer leads, or where no other instance would take
    over.
    """
    try:
        with _reached(step) as (api, _dummy):
            now = holder(api, step.change["lock"])
            if now != step.change["holder"]:
                raise PreconditionFailed(
                    "{} of {} does not lead any more ({} does), and the next leader knows"
                    " every node; collect evidence again".format(
                        COMPONENT, step.host, files.one_line(now or "none", 120)
                    )
                )
            _require_other(api, step)
            return _count(api, step.change)
    except ApiError as error:
        raise PreconditionFailed(
            f"who leads is not known, because the API does not answer as it should ({error});"
            " nothing was restarted, run again"
        ) from error


def _require_other(api, step):
    """Raise PreconditionFailed unless another instance is ready, or a pause is allowed."""
    if SCHEDULER_PAUSE in step.allow or other_nodes(api, step.change.get("node")):
        return
    raise PreconditionFailed(
        f"no other {COMPONENT} is ready that could take over while that of {step.host} starts"
        " again: no pod would be placed meanwhile; allow it with kubemend_allow:"
        f" [{SCHEDULER_PAUSE}]"
    )


def holder(api, lock):
    """Return the identity that a lock names, or None."""
    return _lock_record(api, lock).get("holderIdentity")


def _lock_record(api, lock):
    """Return what a lock says: its holder, and how long it lasts without a renewal."""
    item = api.get(PATHS[lock["kind"]] % lock["name"])
    if lock["kind"] == "Lease":
        return item.get("spec") or {}
    annotations = (item.get("metadata") or {}).get("annotations") or {}
    try:
        record = json.loads(annotations.get(ANNOTATION) or "{}")
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _patience(record):
    """Return seconds until another instance leads: as much longer as the lock lasts longer."""
    duration = record.get("leaseDurationSeconds")
    if not isinstance(duration, (int, float)):
        return LEADS
    return LEADS + min(MOST, max(0, duration - USUAL))


def other_nodes(api, node):
    """Return other nodes whose static pod of the component is ready, as their kubelets say."""
    query = {"fieldSelector": "status.phase=Running"}
    pods = api.items("/api/v1/namespaces/kube-system/pods", query)
    return sorted(
        pod["spec"].get("nodeName")
        for pod in pods
        if _is_ready_scheduler(pod) and pod["spec"].get("nodeName") != node
    )


def _is_ready_scheduler(pod):
    meta, spec, status = (pod.get(name) or {} for name in ("metadata", "spec", "status"))
    if "kubernetes.io/config.mirror" not in (meta.get("annotations") or {}):
        return False
    names = [container.get("name") for container in dicts(spec.get("containers"))]
    conditions = dicts(status.get("conditions"))
    ready = [item.get("status") for item in conditions if item.get("type") == "Ready"]
    return COMPONENT in names and ready == ["True"]


def _placed(change, params, count):
    """Return (state of the record, reason): another instance leads, and the pods are served."""
    wait = _PlacementWait(change, count)
    seconds = LEADS + MOST + PLACED + API
    while True:
        try:
            with api_object_change.reached(_via(change, params), seconds=seconds) as (api, _dummy):
                while not wait.is_over(api):
                    time.sleep(EVERY)
                return wait.result()
        except ApiError as error:
            if wait.is_too_long():
                return (
                    step_record.FAILED,
                    (
                        "it was restarted, and whether the pods are placed is not known, because"
                        f" the API does not answer as it should ({error})"
                    ),
                )
        time.sleep(EVERY)


class _PlacementWait:
    """The observed state of the leader and of the waiting pods, across several connections."""

    def __init__(self, change, count):
        self.change = change
        self.count = count
        self.begin = time.monotonic()
        self.end = self.begin + LEADS
        self.leader = None
        self.waiting = list(change["pods"])
        self.other_reasons = []

    def is_over(self, api):
        """Ask the API again; return whether the wait is over."""
        record = _lock_record(api, self.change["lock"])
        if not self.leader:
            self.leader = _other(record.get("holderIdentity"), self.change["holder"])
            self.end = self.begin + _patience(record)
            if self.leader:
                self.end = time.monotonic() + PLACED
        if self.leader:
            self.waiting = _unserved(api, self.waiting, self.count, self.other_reasons)
            if not self.waiting:
                return True
        return time.monotonic() > self.end

    def is_too_long(self):
        """Return whether an API that does not answer is not asked again."""
        return time.monotonic() > max(self.end, self.begin + PLACED)

    def result(self):
        """Return (state of the record, reason)."""
        waited = self.end - self.begin
        return _ended(self.change, self.leader, self.waiting, self.other_reasons, waited)


def _other(now, former):
    return now if now and now != former else None


def refused(api, pod):
    """Return the scheduler's message about a pod that waits, "" where there is no message.

    The result is None for a pod that has its node, or is gone.
    """
    try:
        item = api.get(f"/api/v1/namespaces/{pod[0]}/pods/{pod[1]}")
    except ApiError as error:
        if error.code == 404:
            return None
        raise
    if (item.get("spec") or {}).get("nodeName"):
        return None
    for condition in dicts((item.get("status") or {}).get("conditions")):
        if condition.get("type") == "PodScheduled":
            message = condition.get("message")
            return message if isinstance(message, str) else ""
    return ""


def counted(message):
    """Return (N, for how many nodes it gives a reason) of "0/N nodes are available: a x, b y.".

    The result is (None, 0) for another text. A node can lack several resources, so that only the
    largest number of these reasons counts. The part about preemption is left out, because it names
    the same nodes again.
    """
    head = HEAD.search(message[:MAX_MESSAGE])
    if head is None:
        return None, 0
    clauses = message[head.end() : MAX_MESSAGE].partition("preemption:")[0]
    reasons = [(int(count), phrase) for count, phrase in CLAUSE.findall(clauses)]
    lacking = [count for count, phrase in reasons if LACKS.match(phrase)]
    others_count = sum(count for count, phrase in reasons if not LACKS.match(phrase))
    return int(head.group(1)), others_count + max(lacking or [0])


def _count(api, change):
    """Return how many nodes the scheduler counts where these pods wait, None if it says nothing."""
    numbers = [counted(refused(api, pod) or "")[0] for pod in change["pods"][:SHOWN]]
    return max([number for number in numbers if number] or [0]) or None


def _unserved(api, waiting, count, other_reasons):
    """Return the pods that still wait for a node that the scheduler does not count.

    other_reasons: a list to which sentences about pods that now wait for another reason are added.
    """
    unserved = []
    for pod in waiting:
        message = refused(api, pod)
        if message is None:
            continue
        number, reasons = counted(message)
        if count and number and reasons >= number >= count:
            other_reasons.append(
                f"the pod {pod[0]}/{pod[1]} is looked at with all {int(number)} nodes now, and"
                f" waits for another reason: {files.one_line(message, 300)}"
            )
        else:
            unserved.append(pod)
    return unserved


def _ended(change, leader, waiting, other_reasons, waited=LEADS):
    """Return (state of the record, reason) by what was seen."""
    if not leader:
        return (
            step_record.FAILED,
            f"it was restarted, and no instance leads after {int(waited)} s: see the logs of all"
            f" schedulers",
        )
    name = files.one_line(leader, 120).rpartition("_")[0] or files.one_line(leader, 120)
    if waiting:
        return (
            step_record.FAILED,
            "{} leads now, but these pods still wait after {} s: {}; see what the scheduler says of"
            " them (kubectl describe pod)".format(
                name,
                int(PLACED),
                ", ".join("{}/{}".format(*tuple(pod[:2])) for pod in waiting[:SHOWN]),
            ),
        )
    clauses = [_placed_phrase(change["pods"], len(change["pods"]) - len(other_reasons))]
    if clauses == [""]:
        clauses = []
    if not clauses and not other_reasons:
        clauses = ["0 pods are placed"]
    return step_record.PROVEN, f"{name} leads now, and {'; '.join(clauses + other_reasons[:SHOWN])}"


def _placed_phrase(pods, count):
    """Return how many pods are placed, in words; "" for none."""
    if count == 0:
        return ""
    if count > 1:
        return f"{int(count)} pods are placed"
    if len(pods) == 1:
        return "the pod {}/{} is placed".format(*pods[0][:2])
    return "one pod is placed"
