# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node drained by the Eviction API alone.

Nothing is deleted past a budget, no grace period is cut.

Pods are known by their uid, so that one that was made again under the same name is another. What is
gone stays gone: a drain that is interrupted at any point is started again from what the API says
then.
"""

import concurrent.futures
import heapq
import itertools
import threading
import time

from ...kubeapi import client as door
from ...kubeapi.client import ApiError, Client, Deadline
from ...state.storage import ChangeError
from . import (
    cordon,
)
from . import (
    disruption_budgets as disruption,
)
from . import (
    eviction_api as drain_api,
)
from . import (
    plan as drain_plan,
)

TIMEOUT = 900
# evictions that are asked for side by side: more reach a kubelet faster than it ends pods, and all
# of them take longer (tests/bench)
PARALLEL = 4
POLL = 0.5
TELL = 10
# pods that were bound at the very moment of the cordon leave in a second one; what comes back
# always is named
ROUNDS = 3
HELD_SECONDS = 10  # in which whoever set a finalizer usually takes it away, once the pod has ended
LEASE_WAIT = 12  # a kubelet renews its lease every 10 s, by a clock that need not be ours
REQUEST = 30
DENIED_SECONDS = 60  # in which an API server that has just started learns who may do what
# for the way back, when the API server is away: beside the time limit, within apply_api's time for
# a drain
BACK_SECONDS = 60


class Drain:
    """One drain of one node, as far as it came: `evicted` {uid.

    Name} of those whose eviction was accepted, `cordon` of cordon.put.
    """

    def __init__(self, api, wanted, run_id, tell=None, ended=None):
        self.api, self.run_id = api, run_id
        self.node, self.limit = wanted["node"], wanted.get("timeout") or TIMEOUT
        self.allow, self.most = frozenset(wanted.get("allow") or ()), wanted.get("max_unavailable")
        self.restarts = bool(wanted.get("restarts"))
        self.uid, self.reason, self.held = (
            wanted.get("node_uid"),
            wanted.get("reason") or "drain",
            bool(wanted.get("held")) or drain_plan.KEEP in self.allow,
        )
        self.end = time.monotonic() + self.limit
        self.patience = wanted.get("ready_seconds") or 0
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
        """The Plan; ChangeError when something refuses it. Nothing is touched."""
        node = self._ready()
        refused = drain_plan.refusal(node, self.allow, self.held) or self._old_lease()
        if not refused and self.most is not None:
            refused = drain_plan.may_take_out(
                list(self.api.items("/api/v1/nodes")), self.node, self.most
            )
        if refused:
            raise ChangeError("nothing was evicted: " + refused)
        self.version = drain_api.eviction_version(self.api)
        return self._plan("nothing was evicted")

    def _ready(self):
        """The Node, once its kubelet posts its status.

        One that was started a moment ago has some seconds for that.
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
        """The refusal of a node whose lease is not renewed.

        One that only looks old, by our clock, is looked at once more.
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
            "%s is not drained: its kubelet has not renewed its lease for %d s, so evicted pods"
            " would never end; bring the kubelet back first" % (self.node, age)
        )

    def _plan(self, nothing):
        pods = [drain_plan.Pod(item) for item in self._pods()]
        self.budgets = list(drain_api.budgets(self.api))
        unfinished = frozenset(
            job
            for job in {pod.job for pod in pods if pod.finished and pod.job}
            if not drain_api.job_ended(self.api, job)
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
        return drain_api.patiently(lambda: self._plan(nothing), self.end, POLL)

    def _pods(self, api=None, accept=door.JSON, **query):
        return (api or self.api).items(
            "/api/v1/pods", dict(query, fieldSelector="spec.nodeName=" + self.node), accept
        )

    def _patient(self):
        """A connection that hangs costs no more than one look."""
        return Client(self.api.path, Deadline(max(1.0, min(REQUEST, self.end - time.monotonic()))))

    def predict(self):
        """(whether it would change anything, what a drain would do now).

        The API server is asked about each pod where it keeps to a dry run.
        """
        plan = self.prepare()
        if drain_plan.can_dry_run(self.api.get("/version")):
            with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
                answers = list(pool.map(lambda pod: self._evict(pod, dry_run=True), plan.evict))
            found = [
                drain_plan.remaining(pod, answer[:2], self.budgets, self.limit)
                for pod, answer in zip(plan.evict, answers)
                if answer and answer[0] not in (disruption.GONE, disruption.CHANGED)
            ]
        else:
            found = [
                sentence
                for sentence in (disruption.would_block(pod, self.budgets) for pod in plan.evict)
                if sentence
            ]
            plan.notes.append(
                "told by the budgets' numbers, because this API server is too old for a dry run"
            )
        said = [f"{drain_plan.counted(plan.evict)} would be evicted from {self.node}"]
        said += (
            ["%d of them could not go now: %s" % (len(found), drain_plan.names_of(found))]
            if found
            else []
        )
        changed = bool(plan.evict) or not drain_plan.cordoned(cordon.node_of(self.api, self.node))
        return changed, "; ".join(said + plan.notes + [text for text in [plan.staying()] if text])

    def run(self):
        """(whether the node is drained, what is told).

        ChangeError with `changed` where the API left us alone with an open cordon.
        """
        self.prepare()
        begin = time.monotonic()
        try:
            self._cordon()
            left, plan = self._rounds()
        except ChangeError as error:  # what came after the first look refuses it
            told = f"{error}{self._back()}"
            if self.evicted:
                return False, told
            raise ChangeError(told)
        except ApiError as error:
            raise ChangeError(
                f"{self.node} is not drained, because the API does not answer as it should"
                f" ({error}): {drain_plan.counted(self.evicted)} evicted, and whether its cordon is"
                " there is not known; the next run finds out (KM902)",
                changed=True,
            )
        if left:
            return False, self._failed(left)
        told = [
            "%s is drained: %s evicted in %d s"
            % (self.node, drain_plan.counted(self.evicted), time.monotonic() - begin)
        ]
        told += (
            ["the cordon is somebody else's and stays theirs"]
            if self.cordon == cordon.THEIRS
            else []
        )
        return True, "; ".join(
            told + self._held(plan) + [text for text in [plan.staying()] if text]
        )

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
            )
        if self.cordon == cordon.THEIRS and drain_plan.FENCED not in self.allow:
            raise ChangeError(
                f"nothing was evicted, because somebody else cordoned {self.node} at this moment,"
                " and who did may be at work there; uncordon it, or allow it with kubemend_allow:"
                f" [{drain_plan.FENCED}]"
            )

    def _rounds(self):
        """(clauses about who is left, the last Plan)."""
        seen = {}
        for dummy in range(ROUNDS):
            plan = self._plan_again(
                "no more was evicted" if self.evicted else "nothing was evicted"
            )
            going = [pod for pod in plan.going if not pod.held or pod.uid not in seen]
            if not going:
                return [], plan
            seen.update((pod.uid, pod) for pod in going)
            left = self._empty(going)
            if left:
                return left, plan
        plan = self._plan_again("no more was evicted")
        back = [pod.name for pod in plan.going if pod.uid not in seen]
        return [
            f"{name}: made again on this node although it is cordoned; its controller names the"
            " node, or it tolerates node.kubernetes.io/unschedulable"
            for name in back
        ], plan

    @staticmethod
    def _held(plan):
        names = [
            "{} ({})".format(pod.name, ", ".join(pod.finalizers)) for pod in plan.wait if pod.held
        ]
        return (
            ["these have ended and finalizers hold their objects: " + drain_plan.names_of(names)]
            if names
            else []
        )

    def _empty(self, pods):
        """Evict these Pods and wait until they are gone.

        Clauses about those who are not, at the time limit or when more time would not help.
        """
        left, flying = {pod.uid: pod for pod in pods}, {}
        due = [(0.0, next(self.order), pod) for pod in pods if not pod.ending]
        looked, held_since = 0.0, None
        with _Pool(self.api.path, self.end) as pool:
            while left and time.monotonic() < self.end:
                self._send(pool, due, flying, left)
                self._answers(flying, left, due)
                if time.monotonic() - looked >= POLL:
                    self._look(left)
                    looked = time.monotonic()
                self._progress(left)
                waiting = [
                    pod
                    for pod in left.values()
                    if self.answers.get(pod.uid, ("",))[0] not in disruption.FINAL
                ]
                if not waiting or self._silent():
                    break
                held_since = (
                    (held_since or looked)
                    if not flying and all(pod.held for pod in waiting)
                    else None
                )
                if held_since and looked - held_since >= HELD_SECONDS:
                    for pod in waiting:
                        del left[pod.uid]
                    break
        for future, pod in flying.items():  # the time was over before their answers were read
            self._answered(pod, future.result(), left, due)
        return self._told(left)

    def _send(self, pool, due, flying, left):
        while due and due[0][0] <= time.monotonic() and len(flying) < 2 * PARALLEL:
            pod = heapq.heappop(due)[2]
            if pod.uid in left and not left[pod.uid].ending:
                flying[pool.submit(self._evict, pod, pool.client)] = pod

    def _answers(self, flying, left, due):
        if not flying:
            time.sleep(POLL / 2)
            return
        for future in concurrent.futures.wait(
            flying, timeout=POLL, return_when=concurrent.futures.FIRST_COMPLETED
        )[0]:
            self._answered(flying.pop(future), future.result(), left, due)

    def _evict(self, pod, client=None, dry_run=False):
        """None when it was accepted, else disruption.meaning of the answer.

        In a thread of its own.
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
            return disruption.meaning(error)
        return None

    def _accepted(self, pod):
        self.evicted[pod.uid], self.denied_at = pod.name, None
        self.answers[pod.uid] = (None, None)

    def _answered(self, pod, answer, left, due):
        if answer is None:
            self._accepted(pod)
            return
        kind, seconds, said = answer
        if kind == disruption.DENIED:
            self.denied_at = self.denied_at or time.monotonic()
            kind = (
                disruption.BUSY
                if time.monotonic() - self.denied_at < DENIED_SECONDS
                else disruption.REFUSED
            )
        self.answers[pod.uid] = (kind, said)
        if kind != disruption.UNSURE:
            self.refusals[pod.uid] = (kind, said)
        if kind == disruption.GONE:
            left.pop(pod.uid, None)
        elif kind not in disruption.FINAL:
            heapq.heappush(due, (time.monotonic() + seconds, next(self.order), pod))

    def _look(self, left):
        """Forget who is gone, and see who is ending."""
        # resourceVersion 0: from the API server's memory, where a read of etcd would cost it every
        # pod of the cluster each time
        try:
            api = self._patient()
            found = {
                item["metadata"].get("uid"): item
                for item in self._pods(api, door.LIST, resourceVersion="0")
            }
            metas = [found[uid]["metadata"] for uid in left if uid in found]
            if metas and all(
                meta.get("finalizers") and meta.get("deletionGracePeriodSeconds") == 0
                for meta in metas
            ):
                # only their states can tell whether they have ended
                found = {
                    item["metadata"].get("uid"): item
                    for item in self._pods(api, resourceVersion="0")
                }
        except ApiError as error:
            if not drain_api.passing(error):
                raise
            return
        for uid, pod in list(left.items()):
            gone = uid not in found
            if gone:
                del left[uid]
            elif found[uid]["metadata"].get("deletionTimestamp"):
                left[uid] = drain_plan.Pod(found[uid])
            if (gone or left[uid].ending) and self.answers.get(pod.uid, ("",))[
                0
            ] == disruption.UNSURE:
                self._accepted(pod)  # its answer got lost, not the eviction

    def _progress(self, left):
        if left and time.monotonic() - self.told >= TELL:
            self.told = time.monotonic()
            self.tell(f"{self.node}: {drain_plan.counted(left)} left")

    def _silent(self):
        """Whether the kubelet stopped to post its status meanwhile: nothing ends then.

        Asked as rarely as progress is told.
        """
        if time.monotonic() - self.silent_at >= TELL:
            self.silent_at = time.monotonic()
            try:
                self.why_silent = drain_plan.silent(cordon.node_of(self._patient(), self.node))
            except ApiError as error:
                if not drain_api.passing(error):
                    raise
        return bool(self.why_silent)

    def _told(self, left):
        if left:
            try:
                self.budgets = list(drain_api.budgets(self._patient()))
            except ApiError:
                pass  # the numbers of before
        return [
            drain_plan.remaining(pod, self._last_said(pod.uid), self.budgets, self.limit)
            for pod in sorted(left.values(), key=lambda one: one.name)
        ]

    def _last_said(self, uid):
        answer = self.answers.get(uid)
        return (
            self.refusals.get(uid, answer) if answer and answer[0] == disruption.UNSURE else answer
        )

    def _failed(self, left):
        why = (
            "within %d s" % self.limit
            if time.monotonic() >= self.end
            else "and more time would not help"
        )
        names = drain_plan.names_of(sorted(self.evicted.values()))
        if self.why_silent:
            why = "because " + self.why_silent
        return "{} is not drained {}: {} left ({}); {} evicted{}{}".format(
            self.node,
            why,
            drain_plan.counted(left),
            drain_plan.names_of(left),
            drain_plan.counted(self.evicted),
            names and f" ({names})",
            self._back(),
        )

    def _back(self):
        """Our cordon away, or the clause why it stays."""
        if self.cordon != cordon.MINE:
            return (
                "; the cordon is somebody else's and stays" if self.cordon == cordon.THEIRS else ""
            )
        if drain_plan.KEEP in self.allow:
            return f"; it stays cordoned (kubemend_allow: [{drain_plan.KEEP}])"
        whose, end = None if self.held else self.run_id, time.monotonic() + BACK_SECONDS
        try:
            if self.why_silent:
                drain_api.patiently(lambda: cordon.release(self.api, self.node, whose), end, POLL)
                return (
                    "; it stays cordoned until its kubelet is back, and the next run takes the"
                    " cordon away then (KM903)"
                )
            drain_api.patiently(
                lambda: cordon.lift(self.api, self.node, whose, self.held), end, POLL
            )
        except ApiError as error:
            raise ChangeError(
                f"{self.node} is not drained, and whether its cordon is gone is not known, because"
                f" the API does not answer as it should ({error}); the next run finds out (KM902)",
                changed=True,
            )
        return "; it takes pods again"


class _Pool(concurrent.futures.ThreadPoolExecutor):
    """Threads, each with a connection of its own to the same socket, whose requests end with the
    drain.
    """

    def __init__(self, path, end):
        super().__init__(PARALLEL)
        self._path, self._until, self._own = path, end, threading.local()

    def client(self):
        """This thread's."""
        if not hasattr(self._own, "client"):
            self._own.client = Client(
                self._path, Deadline(max(1.0, self._until - time.monotonic()))
            )
        return self._own.client
