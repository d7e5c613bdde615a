# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drains a node with the Eviction API alone.

No pod is deleted against its budget, and no grace period is shortened. Pods are identified by their
uid, so that a new pod with the same name is a different one. An evicted pod does not return: a
drain that was interrupted starts again from the present state of the API.
"""

import concurrent.futures
import contextlib
import heapq
import itertools
import threading
import time

from ...kubeapi import client as kubeapi_client
from ...kubeapi.client import ApiError, Client, Deadline
from ...shared.text import counted
from ...state.storage import ChangeError
from . import (
    cordon,
    disruption_budgets,
    eviction_api,
)
from . import (
    plan as drain_plan,
)

TIMEOUT = 900
# evictions that are requested at once: more reach a kubelet faster than it ends pods, and all
# of them take longer (tests/bench)
PARALLEL = 4
POLL = 0.5
TELL = 10
# pods that were bound at the very moment of the cordon leave in a second one; what comes back
# always is named
ROUNDS = 3
HELD_SECONDS = 10  # in which a finalizer's owner usually removes it, once the pod has ended
LEASE_WAIT = 12  # a kubelet renews its lease every 10 s, by a clock that need not be ours
REQUEST = 30
DENIED_SECONDS = 60  # in which an API server that has just started learns who may do what
# for the rollback, when the API server is away: in addition to the time limit, within the time that
# api_steps gives a drain
BACK_SECONDS = 60


class Drain:
    """One drain of one node, and its progress.

    evicted: {uid: name} of the pods whose eviction was accepted.
    cordon: the result of cordon.put().
    """

    def __init__(self, api, options, run_id, tell=None, ended=None):
        self.api, self.run_id = api, run_id
        self.node, self.limit = options["node"], options.get("timeout") or TIMEOUT
        self.allow, self.most = (
            frozenset(options.get("allow") or ()),
            options.get("max_unavailable"),
        )
        self.restarts = bool(options.get("restarts"))
        self.uid, self.reason, self.held = (
            options.get("node_uid"),
            options.get("reason") or "drain",
            bool(options.get("held")) or drain_plan.KEEP in self.allow,
        )
        self.end = time.monotonic() + self.limit
        self.patience = options.get("ready_seconds") or 0
        self.ended = ended  # for cordon.put
        self.tell, self.told = tell or (lambda text: None), 0.0
        self.evicted, self.answers, self.cordon, self.changed = {}, {}, None, False
        # {uid: what the API server last said to its eviction}: a request without an answer does not
        # unsay it
        self.refusals = {}
        self.version = None
        self.budgets, self.order = [], itertools.count()
        self.silent_at, self.why_silent, self.denied_at = 0.0, None, None

    def prepare(self):
        """Return the Plan, or raise ChangeError when something refuses it. Nothing is touched."""
        node = self._ready()
        refused = drain_plan.refusal(node, self.allow, self.held) or self._old_lease()
        if not refused and self.most is not None:
            refused = drain_plan.may_take_out(
                list(self.api.items("/api/v1/nodes")), self.node, self.most
            )
        if refused:
            raise ChangeError("nothing was evicted: " + refused)
        self.version = eviction_api.eviction_version(self.api)
        return self._plan("nothing was evicted")

    def _ready(self):
        """Return the Node, once its kubelet posts its status.

        A kubelet that has just started gets some seconds for that.
        """
        end = time.monotonic() + self.patience
        node = self._node()
        while drain_plan.silent(node) and time.monotonic() < end:
            time.sleep(1)
            node = self._node()
        return node

    def _node(self):
        node = self.api.find("/api/v1/nodes/" + self.node)
        if node is None:
            raise ChangeError(f"nothing was evicted: there is no Node {self.node}")
        if self.uid not in (None, node["metadata"].get("uid")):
            raise ChangeError(
                f"nothing was evicted: the Node {self.node} is another one now than that of the"
                " plan; collect evidence and plan again"
            )
        return node

    def _old_lease(self):
        """Return the refusal of a node whose lease is not renewed, or None.

        A lease that looks old by this node's clock is read again, in case the clocks differ.
        """
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + self.node
        first = self.api.find(path)
        age = drain_plan.old_lease(first, time.time())
        if age is None:
            return None
        end = time.monotonic() + LEASE_WAIT
        while time.monotonic() < end:
            time.sleep(min(1, LEASE_WAIT))
            if (self.api.find(path) or {}).get("spec") != first.get("spec"):
                return None
        return (
            f"{self.node} is not drained: its kubelet has not renewed its lease for {int(age)} s,"
            " so evicted pods would never end; bring the kubelet back first"
        )

    def _plan(self, nothing):
        pods = [drain_plan.Pod(item) for item in self._pods()]
        self.budgets = list(eviction_api.budgets(self.api))
        unfinished = frozenset(
            job
            for job in {pod.job for pod in pods if pod.finished and pod.job}
            if not eviction_api.job_ended(self.api, job)
        )
        plan = drain_plan.plan(
            pods, self.budgets, self.allow, unfinished, self.limit, self.restarts
        )
        if plan.refused:
            raise ChangeError(
                "{}, {} is not drained: {}".format(nothing, self.node, "; ".join(plan.refused))
            )
        return plan

    def _plan_again(self, nothing):
        return eviction_api.patiently(lambda: self._plan(nothing), self.end, POLL)

    def _pods(self, api=None, accept=kubeapi_client.JSON, **query):
        return (api or self.api).items(
            "/api/v1/pods", dict(query, fieldSelector="spec.nodeName=" + self.node), accept
        )

    def _patient(self):
        """Return a connection with a deadline of its own, so that a hang costs at most one read."""
        return Client(self.api.path, Deadline(max(1.0, min(REQUEST, self.end - time.monotonic()))))

    def predict(self):
        """Return (whether a drain would change anything, what it would do now).

        Each eviction is requested as a dry run where the API server supports one.
        """
        plan = self.prepare()
        if drain_plan.can_dry_run(self.api.get("/version")):
            refused = self._refused_in_dry_run(plan)
        else:
            sentences = [disruption_budgets.would_block(pod, self.budgets) for pod in plan.evict]
            refused = [sentence for sentence in sentences if sentence]
            plan.notes.append(
                "taken from the numbers of the budgets, because this API server is too old for a"
                " dry run"
            )
        parts = [f"{counted(len(plan.evict), 'pod')} would be evicted from {self.node}"]
        if refused:
            parts.append(
                f"{len(refused):d} of them could not go now: {drain_plan.names_of(refused)}"
            )
        changed = bool(plan.evict) or not drain_plan.cordoned(cordon.node_of(self.api, self.node))
        return changed, "; ".join(parts + plan.notes + _staying(plan))

    def _refused_in_dry_run(self, plan):
        with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
            answers = list(pool.map(lambda pod: self._evict(pod, dry_run=True), plan.evict))
        return [
            drain_plan.remaining(pod, answer[:2], self.budgets, self.limit)
            for pod, answer in zip(plan.evict, answers)
            if answer and answer[0] not in (disruption_budgets.GONE, disruption_budgets.CHANGED)
        ]

    def run(self):
        """Drain the node, and return (whether it is drained, the sentence about it).

        A ChangeError with `changed` is raised where the API does not answer and the node may be
        cordoned.
        """
        self.prepare()
        begin = time.monotonic()
        try:
            self._cordon()
            remaining, plan = self._rounds()
        except ChangeError as error:  # what came after the first check refuses it
            message = f"{error}{self._back()}"
            if self.evicted:
                return False, message
            raise ChangeError(message) from error
        except ApiError as error:
            raise ChangeError(
                f"{self.node} is not drained, because the API does not answer as it should"
                f" ({error}): {counted(len(self.evicted), 'pod')} evicted, and whether its cordon"
                " is"
                " there is not known; the next run finds out (KM902)",
                changed=True,
            ) from error
        if remaining:
            return False, self._failed(remaining)
        seconds = int(time.monotonic() - begin)
        parts = [
            f"{self.node} is drained: {counted(len(self.evicted), 'pod')} evicted in {seconds} s"
        ]
        if self.cordon == cordon.THEIRS:
            parts.append("the cordon is another client's and stays theirs")
        return True, "; ".join(parts + self._held(plan) + _staying(plan))

    def _cordon(self):
        try:
            self.cordon, self.changed = cordon.put(
                self.api, self.node, self.run_id, self.reason, self.held, self.ended
            )
        except ApiError as error:
            if error.code is None or error.code >= 500:
                raise
            raise ChangeError(
                f"nothing was evicted, because {self.node} could not be cordoned ({error})"
            ) from error
        if self.cordon == cordon.THEIRS and drain_plan.FENCED not in self.allow:
            raise ChangeError(
                f"nothing was evicted, because another client cordoned {self.node} at this moment,"
                " and who did may be at work there; uncordon it, or allow it with kubemend_allow:"
                f" [{drain_plan.FENCED}]"
            )

    def _rounds(self):
        """Return (clauses about the pods that remain, the last Plan)."""
        seen_pods = {}
        for _round in range(ROUNDS):
            plan = self._plan_again(
                "no more was evicted" if self.evicted else "nothing was evicted"
            )
            going = [pod for pod in plan.going if not pod.is_held or pod.uid not in seen_pods]
            if not going:
                return [], plan
            seen_pods.update((pod.uid, pod) for pod in going)
            remaining = self._empty(going)
            if remaining:
                return remaining, plan
        plan = self._plan_again("no more was evicted")
        back = [pod.name for pod in plan.going if pod.uid not in seen_pods]
        return [
            f"{name}: made again on this node although it is cordoned; its controller names the"
            " node, or it tolerates node.kubernetes.io/unschedulable"
            for name in back
        ], plan

    @staticmethod
    def _held(plan):
        names = [
            "{} ({})".format(pod.name, ", ".join(pod.finalizers))
            for pod in plan.wait
            if pod.is_held
        ]
        if not names:
            return []
        return ["these have ended and finalizers hold their objects: " + drain_plan.names_of(names)]

    def _empty(self, pods):
        """Evict these Pods, wait until they are gone, and return clauses about those that remain.

        The wait ends at the time limit, or when more time would not help.
        """
        remaining, flying = {pod.uid: pod for pod in pods}, {}
        due = [(0.0, next(self.order), pod) for pod in pods if not pod.ending]
        with _Pool(self.api.path, self.end) as pool:
            self._wait_until_gone(pool, due, flying, remaining)
        for future, pod in flying.items():  # the time was over before their answers were read
            self._answered(pod, future.result(), remaining, due)
        return self._clauses(remaining)

    def _wait_until_gone(self, pool, due, flying, remaining):
        """Evict what is due and look, until all are gone or more time would not help."""
        looked, hold = 0.0, _Hold()
        while remaining and time.monotonic() < self.end:
            self._send(pool, due, flying, remaining)
            self._answers(flying, remaining, due)
            if time.monotonic() - looked >= POLL:
                self._look(remaining)
                looked = time.monotonic()
            self._progress(remaining)
            waiting = [pod for pod in remaining.values() if self._may_go(pod)]
            if not waiting or self._silent():
                break
            if hold.is_over(looked, not flying and _are_held(waiting)):
                _forget(waiting, remaining)
                break

    def _may_go(self, pod):
        """Return whether more time may help a pod to go."""
        return self._result(pod.uid) not in disruption_budgets.FINAL

    def _result(self, uid):
        """Return the result of the last request for a pod's eviction; "" without one."""
        return self.answers.get(uid, ("",))[0]

    def _send(self, pool, due, flying, remaining):
        while due and due[0][0] <= time.monotonic() and len(flying) < 2 * PARALLEL:
            pod = heapq.heappop(due)[2]
            if pod.uid in remaining and not remaining[pod.uid].ending:
                flying[pool.submit(self._evict, pod, pool.client)] = pod

    def _answers(self, flying, remaining, due):
        if not flying:
            time.sleep(POLL / 2)
            return
        for future in concurrent.futures.wait(
            flying, timeout=POLL, return_when=concurrent.futures.FIRST_COMPLETED
        )[0]:
            self._answered(flying.pop(future), future.result(), remaining, due)

    def _evict(self, pod, client=None, dry_run=False):
        """Request an eviction; return None when it was accepted, else disruption_budgets.meaning().

        Each request runs in a thread of the pool.
        """
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid}}
        body = {
            "apiVersion": "policy/" + self.version,
            "kind": "Eviction",
            "metadata": {"name": pod.short, "namespace": pod.namespace},
        }
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.short}/eviction"
        if dry_run:  # in both places: whichever of them this release looks at
            options["dryRun"], path = ["All"], path + "?dryRun=All"
        try:
            (client() if client else Client(self.api.path, self.api.deadline)).send(
                "POST", path, dict(body, deleteOptions=options), seconds=REQUEST
            )
        except ApiError as error:
            return disruption_budgets.meaning(error)
        return None

    def _accepted(self, pod):
        self.evicted[pod.uid], self.denied_at = pod.name, None
        self.answers[pod.uid] = (None, None)

    def _answered(self, pod, answer, remaining, due):
        if answer is None:
            self._accepted(pod)
            return
        kind, seconds, message = answer
        if kind == disruption_budgets.DENIED:
            kind = self._denied()
        self.answers[pod.uid] = (kind, message)
        if kind != disruption_budgets.UNSURE:
            self.refusals[pod.uid] = (kind, message)
        if kind == disruption_budgets.GONE:
            remaining.pop(pod.uid, None)
        elif kind not in disruption_budgets.FINAL:
            heapq.heappush(due, (time.monotonic() + seconds, next(self.order), pod))

    def _denied(self):
        """Return what a denial means: an API server that has just started denies everything."""
        self.denied_at = self.denied_at or time.monotonic()
        if time.monotonic() - self.denied_at < DENIED_SECONDS:
            return disruption_budgets.BUSY
        return disruption_budgets.REFUSED

    def _look(self, remaining):
        """Forget the pods that are gone, and see which are ending."""
        try:
            items = self._found(remaining)
        except ApiError as error:
            if not eviction_api.passing(error):
                raise
            return
        for uid, pod in list(remaining.items()):
            is_gone = uid not in items
            if is_gone:
                del remaining[uid]
            elif items[uid]["metadata"].get("deletionTimestamp"):
                remaining[uid] = drain_plan.Pod(items[uid])
            if (is_gone or remaining[uid].ending) and self._result(
                uid
            ) == disruption_budgets.UNSURE:
                self._accepted(pod)  # its answer got lost, not the eviction

    def _found(self, remaining):
        """Return {uid: item} of the node's pods, with their states where only those show an end."""
        # resourceVersion 0: from the API server's memory, where a read of etcd would cost it every
        # pod of the cluster each time
        api = self._patient()
        items = _by_uid(self._pods(api, kubeapi_client.LIST, resourceVersion="0"))
        metas = [items[uid]["metadata"] for uid in remaining if uid in items]
        if metas and all(_may_be_held(meta) for meta in metas):
            items = _by_uid(self._pods(api, resourceVersion="0"))
        return items

    def _progress(self, remaining):
        if remaining and time.monotonic() - self.told >= TELL:
            self.told = time.monotonic()
            self.tell(f"{self.node}: {counted(len(remaining), 'pod')} left")

    def _silent(self):
        """Return whether the kubelet has stopped posting its status: no pod ends then.

        The status is read as rarely as progress is reported.
        """
        if time.monotonic() - self.silent_at >= TELL:
            self.silent_at = time.monotonic()
            try:
                self.why_silent = drain_plan.silent(cordon.node_of(self._patient(), self.node))
            except ApiError as error:
                if not eviction_api.passing(error):
                    raise
        return bool(self.why_silent)

    def _clauses(self, remaining):
        if remaining:
            with contextlib.suppress(ApiError):  # else the numbers of before
                self.budgets = list(eviction_api.budgets(self._patient()))
        return [
            drain_plan.remaining(pod, self._last_answer(pod.uid), self.budgets, self.limit)
            for pod in sorted(remaining.values(), key=lambda pod: pod.name)
        ]

    def _last_answer(self, uid):
        answer = self.answers.get(uid)
        if answer and answer[0] == disruption_budgets.UNSURE:
            return self.refusals.get(uid, answer)
        return answer

    def _failed(self, remaining):
        reason = "and more time would not help"
        if time.monotonic() >= self.end:
            reason = f"within {int(self.limit)} s"
        names = drain_plan.names_of(sorted(self.evicted.values()))
        if self.why_silent:
            reason = "because " + self.why_silent
        return "{} is not drained {}: {} left ({}); {} evicted{}{}".format(
            self.node,
            reason,
            counted(len(remaining), "pod"),
            drain_plan.names_of(remaining),
            counted(len(self.evicted), "pod"),
            names and f" ({names})",
            self._back(),
        )

    def _back(self):
        """Lift kubemend's cordon, and return the clause about it."""
        if self.cordon == cordon.THEIRS:
            return "; the cordon is another client's and stays"
        if self.cordon != cordon.MINE:
            return ""
        if drain_plan.KEEP in self.allow:
            return f"; it stays cordoned (kubemend_allow: [{drain_plan.KEEP}])"
        run_id, end = None if self.held else self.run_id, time.monotonic() + BACK_SECONDS
        try:
            if self.why_silent:
                eviction_api.patiently(
                    lambda: cordon.release(self.api, self.node, run_id), end, POLL
                )
                return (
                    "; it stays cordoned until its kubelet is back, and the next run takes the"
                    " cordon away then (KM903)"
                )
            eviction_api.patiently(
                lambda: cordon.lift(self.api, self.node, run_id, self.held), end, POLL
            )
        except ApiError as error:
            raise ChangeError(
                f"{self.node} is not drained, and whether its cordon is gone is not known, because"
                f" the API does not answer as it should ({error}); the next run finds out (KM902)",
                changed=True,
            ) from error
        return "; it takes pods again"


def _staying(plan):
    """Return the clause about pods that stay, in a list; none where none stay."""
    clause = plan.staying()
    return [clause] if clause else []


def _are_held(pods):
    return all(pod.is_held for pod in pods)


def _forget(pods, remaining):
    for pod in pods:
        del remaining[pod.uid]


def _by_uid(items):
    return {item["metadata"].get("uid"): item for item in items}


def _may_be_held(meta):
    """Return whether only finalizers may keep an object: its pod's state shows it."""
    return bool(meta.get("finalizers")) and meta.get("deletionGracePeriodSeconds") == 0


class _Hold:
    """The time since which only finalizers keep the pods that remain."""

    def __init__(self):
        self.since = None

    def is_over(self, now, is_held):
        """Return whether they have been kept for so long that more time would not help."""
        if not is_held:
            self.since = None
            return False
        self.since = self.since or now
        return bool(self.since) and now - self.since >= HELD_SECONDS


class _Pool(concurrent.futures.ThreadPoolExecutor):
    """Threads with a connection each to the same socket; their requests end with the drain."""

    def __init__(self, path, end):
        super().__init__(PARALLEL)
        self._path, self._until, self._own = path, end, threading.local()

    def client(self):
        """Return the connection of this thread."""
        if not hasattr(self._own, "client"):
            self._own.client = Client(
                self._path, Deadline(max(1.0, self._until - time.monotonic()))
            )
        return self._own.client
