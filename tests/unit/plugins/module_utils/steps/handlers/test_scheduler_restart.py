# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The leading scheduler restarted on its node.

The restart is refused while no other would take over, and proven by the pods that had no node.
"""

import contextlib
import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.changes import (
    journal_entry,
    signals,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.kubeapi.client import ApiError
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import (
    step_kinds,
    step_times,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import (
    step_record,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    health_probe,
    preconditions,
    registry,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.base import Step
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    scheduler_restart,
)
from tests.unit.support import child_process, fake_step
from tests.unit.support.facts import facts
from tests.unit.support.waiting import Clock, until

RUN, STEP = "20261122T101010Z-abcdef", "01-m1-kube-scheduler-restart-leader"
LOCK = {"kind": "Lease", "name": "kube-scheduler"}
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
POD = "/api/v1/namespaces/shop/pods/agent-x"
FORMER, NEW = (
    SimpleNamespace(pid=10, ticks=1, identity=(10, 1), argv=["kube-scheduler"]),
    SimpleNamespace(pid=11, ticks=2, identity=(11, 2), started_at=1.0),
)


def mirror(node, ready="True", mark="kubernetes.io/config.mirror", name="kube-scheduler"):
    return {
        "metadata": {"annotations": {mark: "x"}},
        "spec": {"nodeName": node, "containers": [{"name": name}]},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


SHORT = "0/4 nodes are available: 3 node(s) didn't match node selector."


class Node:
    """A master whose scheduler leads, and an API server.

    takes: who leads once the scheduler has ended
    places: whether the pod gets its node then
    here: whether the pod has its node without the step
    """

    def __init__(self, folder, monkeypatch):
        self.root, self.holder, self.takes, self.places, self.well, self.ended = (
            str(folder / "k"),
            "m1_a",
            "m2_b",
            True,
            True,
            [],
        )
        self.pods, self.away, self.gone, self.running, self.former = (
            [mirror("m1"), mirror("m2")],
            [],
            False,
            [FORMER],
            FORMER,
        )
        # here: the pod has its node without us
        self.messages, self.here, self.lasts = [SHORT, SHORT], False, 15
        self.clock = Clock()
        monkeypatch.setattr(scheduler_restart, "time", self.clock)
        for name, value in (("LEADS", 0.05), ("PLACED", 0.05), ("EVERY", 0.01)):
            monkeypatch.setattr(scheduler_restart, name, value)
        monkeypatch.setattr(
            preconditions,
            "check",
            lambda step, params: preconditions.PreconditionResult(self.former, [], []),
        )
        monkeypatch.setattr(preconditions, "resume", lambda step, params: [])
        monkeypatch.setattr(scheduler_restart.api_object_change, "reached", self.reached)
        monkeypatch.setattr(signals, "terminate", self.end)
        monkeypatch.setattr(health_probe, "instances", lambda component: self.running)
        monkeypatch.setattr(health_probe, "wait", self.wait)

    @contextlib.contextmanager
    def reached(self, via, seconds=0):
        assert via["cluster_uid"] == "ks"
        if self.away and self.away.pop(0):
            raise ApiError("error", "no answer")
        yield self, {}

    def end(self, instance):
        self.ended.append(instance.pid)
        self.holder, self.running = self.takes, [NEW]

    def wait(self, want, credentials, end, later=None):
        assert (want.component, want.not_identity, want.elect) == (
            "kube-scheduler",
            FORMER.identity,
            True,
        )
        found = health_probe.HealthResult()
        found.ok, found.reason, found.instance = (
            self.well,
            None if self.well else "no process of kube-scheduler runs",
            NEW,
        )
        found.answer = {"healthz": 200, "elect": True}
        return found

    def get(self, path):
        if path == LEASE:
            return {"spec": {"holderIdentity": self.holder, "leaseDurationSeconds": self.lasts}}
        if path == POD:
            if self.gone:
                raise ApiError("absent", "not found", 404)
            said = [
                {"type": "Ready"},
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "message": self.messages[bool(self.ended)],
                },
            ]
            return {
                "spec": {"nodeName": "m3"} if self.here or (self.places and self.ended) else {},
                "status": {"conditions": said},
            }
        record = json.dumps({"holderIdentity": self.holder, "leaseDurationSeconds": self.lasts})
        return {
            "metadata": {
                "annotations": {
                    scheduler_restart.ANNOTATION: record if "endpoints" in path else "x{"
                }
            }
        }

    def items(self, path, query=None):
        assert (path, query) == (
            "/api/v1/namespaces/kube-system/pods",
            {"fieldSelector": "status.phase=Running"},
        )
        return iter(self.pods)

    def do(self, allow=(), lock=None, pid=None, **change):
        told = dict(
            {
                "kind": "restart_leader",
                "lock": lock or LOCK,
                "holder": "m1_a",
                "node": "m1",
                "pods": [["shop", "agent-x", "m3"]],
                "cluster_uid": "ks",
            },
            **change,
        )
        wanted = {
            "id": STEP,
            "remedy": "restart_leader",
            "change": told,
            "expect": {"component": "kube-scheduler", "restart": "signal", "pid": pid},
            "guard": {"allow": list(allow)},
        }
        context = journal_entry.StepContext(RUN, STEP, "restart", "KM202", self.root)
        return scheduler_restart.RestartLeader().run(Step(context, wanted, "m1"))


@pytest.fixture
def node(tmp_path, monkeypatch):
    return Node(tmp_path, monkeypatch)


def test_another_one_leads_and_the_pod_is_placed(node):
    state, why, seen = node.do()
    assert state == step_record.PROVEN
    facts(why, "m2 leads", "shop/agent-x", "placed")
    assert node.ended == [10]
    assert seen["pid"] == 11
    record = step_record.read(RUN, STEP, node.root)
    assert (record["state"], record["component"], record["kind"], record["former"]["pid"]) == (
        "proven",
        "kube-scheduler",
        "none",
        10,
    )
    # the same step once more: a connection that was made twice
    assert node.do(holder="m2_b")[0] == step_record.FAILED
    assert node.ended == [10]


def test_the_same_node_may_lead_again(node):
    node.takes = "m1_c"
    state, why, _seen = node.do()
    assert state == step_record.PROVEN
    facts(why, "m1 leads", "shop/agent-x", "placed")


def test_of_several_pods_and_of_one_that_is_gone(node):
    node.gone = True
    facts(node.do(pods=[["shop", "agent-x", "m3"]] * 2)[1], "m2 leads", "2 pods", "placed")


@pytest.mark.parametrize(
    "pods",
    [
        [],
        [mirror("m1")],
        [mirror("m1"), mirror("m2", "False")],
        [mirror("m1"), mirror("m2", mark="other")],
        [mirror("m1"), mirror("m2", name="batch")],
    ],
)
def test_nobody_would_take_over(node, pods):
    node.pods = pods
    state, why, _seen = node.do()
    assert state == step_record.NOT_DONE
    assert "no other kube-scheduler is ready" in why
    assert "kubemend_allow: [scheduler_pause]" in why
    assert node.ended == []
    assert step_record.read(RUN, STEP, node.root) is None
    assert node.do(allow=["scheduler_pause"])[0] == step_record.PROVEN


def test_another_one_leads_already(node):
    node.holder = "m3_z"
    state, why, _seen = node.do()
    assert state == step_record.NOT_DONE
    assert "does not lead any more (m3_z does)" in why
    assert node.ended == []


def test_the_api_does_not_answer_before_it(node):
    node.away = [True]
    state, why, _seen = node.do()
    assert state == step_record.NOT_DONE
    assert "who leads is not known" in why
    assert node.ended == []


def test_another_one_leads_since_and_the_pod_is_placed(node):
    """As after another step of the run that edited the manifest of the one that led."""
    node.holder, node.here = "m3_z", True
    state, why, _seen = node.do()
    assert state == step_record.PROVEN
    assert node.ended == []
    assert step_record.read(RUN, STEP, node.root)["state"] == "proven"
    facts(why, "nothing was restarted", "m3 leads", "shop/agent-x", "placed")


@pytest.fixture
def replaced(node, monkeypatch):
    """Give the process of the plan is gone, which the guards refuse.

    Its lock is held until its time is over.
    """

    def refuse(step, params):
        raise preconditions.PreconditionFailed("the evidence is old")

    monkeypatch.setattr(preconditions, "check", refuse)
    node.running, node.here = [NEW], True
    return node


def test_the_lock_of_one_that_has_ended_is_waited_for(replaced, monkeypatch):
    monkeypatch.setattr(
        scheduler_restart.time, "sleep", lambda seconds: setattr(replaced, "holder", "m1_c")
    )
    state, why, _seen = replaced.do(pid=10)
    assert state == step_record.PROVEN
    assert "nothing was restarted: m1 leads now" in why
    assert replaced.ended == []


def test_nobody_else_leads_in_time(replaced):
    assert replaced.do(pid=10)[:2] == (step_record.NOT_DONE, "the evidence is old")
    assert step_record.read(RUN, STEP, replaced.root) is None
    replaced.away = [True] * 1000
    assert replaced.do(pid=10)[:2] == (step_record.NOT_DONE, "the evidence is old")


@pytest.mark.parametrize(
    "said",
    [
        "3 node(s) didn't match node selector, 1 Insufficient cpu.",
        "3 node(s) didn't match node selector, 1 node(s) didn't have free ports.",
        (
            "1 node(s) had taint {a: b}, that the pod didn't tolerate, 3 node(s) didn't match."
            " preemption: 0/4 nodes are available: 4 No victims."
        ),
        "1 Insufficient cpu, 1 Insufficient memory, 3 node(s) didn't match node selector.",
    ],
)
def test_a_pod_that_waits_for_another_reason_is_served(node, said):
    node.places, node.messages[1] = False, "0/4 nodes are available: " + said
    state, why, _seen = node.do()
    assert state == step_record.PROVEN
    facts(why, "m2 leads", "shop/agent-x", "4 nodes", "another reason", node.messages[1])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (SHORT, SHORT),
        (SHORT, ""),
        (SHORT, None),
        (SHORT, "0/3 nodes are available: 3 node(s) didn't match."),
        (SHORT, "0/4 nodes are available: 3 x, y."),
        # two of one node, and the fourth is lost still
        (
            SHORT,
            (
                "0/4 nodes are available: 2 node(s) didn't match, 1 Insufficient cpu, 1"
                " Insufficient memory."
            ),
        ),
        (SHORT, "0/4 nodes are available: 3 x. preemption: 0/4 nodes are available: 4 y."),
        (SHORT, "0/0 nodes are available: "),
        ("none", "0/4 nodes are available: 4 node(s) didn't match."),
    ],
)
def test_a_message_that_does_not_speak_of_all_nodes_is_none(node, before, after):
    node.places, node.messages = False, [before, after]
    state, why, _seen = node.do()
    assert state == step_record.FAILED
    assert "these pods still wait" in why


def test_some_are_placed_and_some_wait_for_another_reason():
    told = {"pods": [["shop", "a", "m3"], ["shop", "b", "m3"]]}
    state, why = scheduler_restart._ended(told, "m2_b", [], ["the pod shop/b waits"])
    assert state == step_record.PROVEN
    facts(why, "m2 leads", "one pod", "placed", "the pod shop/b waits")


def test_it_does_not_run_any_more(node):
    node.former = None
    assert "no kube-scheduler runs on m1 now" in node.do()[1]
    assert node.ended == []


def test_what_the_guards_refuse(node, monkeypatch):
    def refuse(step, params):
        raise preconditions.PreconditionFailed("the kubelet of m1 is not healthy")

    monkeypatch.setattr(preconditions, "check", refuse)
    assert node.do()[:2] == (step_record.NOT_DONE, "the kubelet of m1 is not healthy")


def test_the_api_that_is_away_for_a_moment_is_asked_again(node):
    node.away = [False, True]
    assert node.do()[0] == step_record.PROVEN


def test_the_api_that_stays_away(node):
    node.away = [False] + [True] * 100
    state, why, _seen = node.do()
    assert state == step_record.FAILED
    assert "whether the pods are placed is not known" in why
    assert node.ended == [10]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"well": False}, "component down: kube-scheduler of m1 did not come back"),
        ({"takes": "m1_a"}, "no instance leads"),
        ({"takes": ""}, "no instance leads"),
        ({"places": False}, "m2 leads now, but these pods still wait after 0 s: shop/agent-x"),
    ],
)
def test_what_is_no_cure_fails(node, more, why):
    vars(node).update(more)
    state, said, _seen = node.do()
    assert state == step_record.FAILED
    assert why in said
    assert step_record.read(RUN, STEP, node.root)["state"] == "failed"


@pytest.mark.parametrize("kind", ["Lease", "Endpoints"])
@pytest.mark.parametrize(
    ("lasts", "state"),
    [
        (15, step_record.FAILED),
        (None, step_record.FAILED),
        ("x", step_record.FAILED),
        (16.5, step_record.PROVEN),
    ],
)
def test_a_lock_that_lasts_longer_is_waited_for_longer(node, monkeypatch, kind, lasts, state):
    """The pods get their time from then on."""
    node.lasts, node.takes, took = lasts, "m1_a", []

    def sleep(seconds):
        took.append(seconds)
        node.clock.now += 0.02
        if len(took) == 10:
            node.holder = "m2_b"

    monkeypatch.setattr(node.clock, "sleep", sleep)
    found, why, _seen = node.do(lock={"kind": kind, "name": "kube-scheduler"})
    assert found == state
    assert ("m2 leads now" in why) is (state == step_record.PROVEN)
    assert ("no instance leads after 0 s" in why) is (state == step_record.FAILED)


def test_older_kinds_of_locks(node):
    assert node.do(lock={"kind": "Endpoints", "name": "kube-scheduler"})[0] == step_record.PROVEN
    assert scheduler_restart.holder(node, {"kind": "ConfigMap", "name": "kube-scheduler"}) is None


RECORD = {"host": "m1", "limit": 1, "expect": {}, "former": {"pid": 10, "ticks": 1}}


def test_killed_before_anything_was_ended(node):
    state, reason = scheduler_restart.RestartLeader().recover(RECORD, None)
    assert state == step_record.NOT_DONE
    facts(reason, "kube-scheduler", "m1", "not restarted")


@pytest.mark.parametrize(
    ("well", "state"), [(True, step_record.PROVEN), (False, step_record.FAILED)]
)
def test_killed_after_it(node, well, state):
    node.running, node.well = [NEW], well
    assert scheduler_restart.RestartLeader().recover(RECORD, None)[0] == state


class Cluster:
    """An API that real processes share.

    Another instance leads, and the pod has its node, as soon as the former process is gone.
    """

    def __init__(self, former):
        self.former = former

    @contextlib.contextmanager
    def reached(self, via, seconds=0):
        yield self, {}

    def get(self, path):
        gone = not Path(f"/proc/{self.former:d}").exists()
        if path == LEASE:
            return {"spec": {"holderIdentity": "m1_b" if gone else "m2_a"}}
        return {
            "spec": {"nodeName": "m3"} if gone else {},
            "status": {
                "conditions": [{"type": "PodScheduled", "status": "False", "message": SHORT}]
            },
        }

    def items(self, path, query=None):
        return iter([mirror("m1"), mirror("m2")])


@pytest.fixture
def real(monkeypatch):
    """Yield real processes: a kubelet that starts a scheduler again as soon as its image is there.

    The image goes with the scheduler's end.
    """
    with fake_step.made(monkeypatch) as one:
        one.write_manifest(["--leader-elect=true"])  # who leads elects
        wait(lambda: [item for item in one.running() if "--leader-elect=true" in item.argv])
        one.wait_healthy()
        (one.former,) = one.running()
        cluster, terminate = Cluster(one.former.pid), signals.terminate

        def end(instance):
            (one.state / "image").unlink()
            terminate(instance)

        monkeypatch.setattr(scheduler_restart.api_object_change, "reached", cluster.reached)
        monkeypatch.setattr(signals, "terminate", end)
        one.wanted = one.step(
            b"secure-port",
            b"secure-port",
            id=STEP,
            remedy="restart_leader",
            code=["KM202"],
            limit=120,
            change={
                "kind": "restart_leader",
                "lock": LOCK,
                "holder": "m2_a",
                "node": "m2",
                "pods": [["shop", "agent-x", "m3"]],
                "cluster_uid": "ks",
            },
        )
        one.wanted["expect"].update(restart="signal", flags={})
        yield one


def wait(told):
    assert until(told), "it did not come to that"


def begun(real, work):
    """Give a process that does the step, once it has ended the scheduler and waits for another."""

    def begin():
        with Path(os.devnull).open("w", encoding="ascii") as null:
            os.dup2(null.fileno(), 2)
        work(real.params(real.wanted))

    child = child_process.fork(begin)
    wait(lambda: not real.running())
    assert step_record.read(fake_step.RUN, STEP, str(real.root))["state"] == step_record.AWAITED
    return child


def ended(child):
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


RECOVERY = {
    "id": "01-m2-recover",
    "host": "m2",
    "remedy": "recover",
    "code": "KM902",
    "change": None,
    "expect": None,
}


def test_killed_between_the_end_of_the_former_and_its_proof(real):
    ended(begun(real, step_executor.work))
    (record,) = step_record.unproven(str(real.root))
    assert (record["running"], record["remedy"], record["former"]["pid"]) == (
        False,
        "restart_leader",
        real.former.pid,
    )
    (real.state / "image").touch()
    recovery = dict(RECOVERY, guard=real.wanted["guard"])
    answer = real.run(recovery, run_id=fake_step.NEXT)
    assert answer["state"] == "done"
    facts(answer["reason"], STEP, fake_step.RUN, "done", "runs again")
    assert [one.identity != real.former.identity for one in real.running()] == [True]
    assert step_record.unproven(str(real.root)) == []
    assert step_record.read(fake_step.RUN, STEP, str(real.root))["ended_by"] == fake_step.NEXT
    assert (
        real.run(dict(recovery, id="02-m2-recover"), run_id=fake_step.NEXT)["reason"]
        == "nothing was interrupted"
    )


def test_killed_and_it_does_not_come_back(real, monkeypatch):
    monkeypatch.setattr(step_times, "BACK_OFF", 5)
    real.wanted["limit"] = 3
    ended(begun(real, step_executor.work))
    answer = real.run(dict(RECOVERY, guard=real.wanted["guard"]), run_id=fake_step.NEXT)
    assert answer["state"] == "failed"
    assert "component down: kube-scheduler of m2 does not run" in answer["reason"]
    assert step_record.read(fake_step.RUN, STEP, str(real.root))["state"] == step_record.FAILED


def test_it_proves_itself_without_whoever_asked_for_it(real):
    """As when the controller is killed: the work is in a session of its own."""
    ended(begun(real, step_executor.run))
    (real.state / "image").touch()
    wait(
        lambda: step_record.read(fake_step.RUN, STEP, str(real.root))["state"] == step_record.PROVEN
    )
    assert step_record.unproven(str(real.root)) == []
    answer = real.run(real.wanted)  # who asks again is told
    assert answer["state"] == "done"
    facts(answer["reason"], "m1 leads", "shop/agent-x", "placed")


def test_the_program_knows_the_step():
    assert "restart_leader" in step_kinds.in_plans()
    assert isinstance(registry.handler_of("restart_leader"), scheduler_restart.RestartLeader)
    assert (
        step_executor.budget({"remedy": "restart_leader", "expect": {"restart": "signal"}})
        > step_times.BACK_OFF + scheduler_restart.PLACED
    )
