# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The leading scheduler restarted on its node: refused while nobody would take over, proven by the pods that it had no node for."""

import contextlib
import json
from types import SimpleNamespace

import pytest
from ansible_collections.kubemend.remediation.plugins.module_utils import apply_step, guard, journal, proof, prove, scheduler_restart
from ansible_collections.kubemend.remediation.plugins.module_utils.api import ApiError

RUN, STEP = "20261122T101010Z-abcdef", "01-m1-kube-scheduler-restart-leader"
LOCK = {"kind": "Lease", "name": "kube-scheduler"}
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
POD = "/api/v1/namespaces/shop/pods/agent-x"
FORMER, NEW = SimpleNamespace(pid=10, ticks=1, identity=(10, 1), argv=["kube-scheduler"]), SimpleNamespace(
    pid=11, ticks=2, identity=(11, 2), started_at=1.0)


def mirror(node, ready="True", mark="kubernetes.io/config.mirror", name="kube-scheduler"):
    return {"metadata": {"annotations": {mark: "x"}}, "spec": {"nodeName": node, "containers": [{"name": name}]},
            "status": {"conditions": [{"type": "Ready", "status": ready}]}}


class Node:
    """A master whose scheduler leads, and an API. `takes`: who leads once it is ended, and whether the pod gets its node then."""

    def __init__(self, folder, monkeypatch):
        self.root, self.holder, self.takes, self.places, self.well, self.ended = str(folder / "k"), "m1_a", "m2_b", True, True, []
        self.pods, self.away, self.gone, self.running, self.former = [mirror("m1"), mirror("m2")], [], False, [FORMER], FORMER
        for name, value in (("LEADS", 0.05), ("PLACED", 0.05), ("EVERY", 0.01)):
            monkeypatch.setattr(scheduler_restart, name, value)
        monkeypatch.setattr(guard, "check", lambda step, params: guard.Scene(self.former, [], []))
        monkeypatch.setattr(guard, "resume", lambda step, params: [])
        monkeypatch.setattr(scheduler_restart.config_map, "reached", self.reached)
        monkeypatch.setattr(prove, "terminate", self.end)
        monkeypatch.setattr(prove, "instances", lambda component: self.running)
        monkeypatch.setattr(prove, "wait", self.wait)

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
        assert (want.component, want.not_identity, want.elect) == ("kube-scheduler", FORMER.identity, True)
        found = prove.Proof()
        found.ok, found.reason, found.instance = self.well, None if self.well else "no process of kube-scheduler runs", NEW
        found.told = {"healthz": 200, "elect": True}
        return found

    def get(self, path):
        if path == LEASE:
            return {"spec": {"holderIdentity": self.holder}}
        if path == POD:
            if self.gone:
                raise ApiError("absent", "not found", 404)
            return {"spec": {"nodeName": "m3"} if self.places and self.ended else {}}
        record = json.dumps({"holderIdentity": self.holder})
        return {"metadata": {"annotations": {scheduler_restart.ANNOTATION: record if "endpoints" in path else "x{"}}}

    def items(self, path, query=None):
        assert (path, query) == ("/api/v1/namespaces/kube-system/pods", {"fieldSelector": "status.phase=Running"})
        return iter(self.pods)

    def do(self, allow=(), lock=None, **change):
        told = dict({"kind": "restart_leader", "lock": lock or LOCK, "holder": "m1_a", "node": "m1", "pods": [["shop", "agent-x", "m3"]], "cluster_uid": "ks"},
                    **change)
        wanted = {"id": STEP, "remedy": "restart_leader", "change": told, "expect": {"component": "kube-scheduler", "restart": "signal"},
                  "guard": {"allow": list(allow)}}
        return scheduler_restart.do(journal.Step(RUN, STEP, "restart", "KM202", self.root), wanted, "m1", {})


@pytest.fixture
def node(tmp_path, monkeypatch):
    return Node(tmp_path, monkeypatch)


def test_another_one_leads_and_the_pod_is_placed(node):
    state, why, seen = node.do()
    assert (state, why) == (proof.PROVEN, "m2 leads now, and the pod shop/agent-x is placed") and node.ended == [10] and seen["pid"] == 11
    record = proof.read(RUN, STEP, node.root)
    assert (record["state"], record["component"], record["kind"], record["former"]["pid"]) == ("proven", "kube-scheduler", "none", 10)
    assert node.do(holder="m2_b")[0] == proof.FAILED and node.ended == [10]  # the same step once more: a connection that was made twice


def test_the_same_node_may_lead_again(node):
    node.takes = "m1_c"
    assert node.do()[:2] == (proof.PROVEN, "m1 leads now, and the pod shop/agent-x is placed")


def test_of_several_pods_and_of_one_that_is_gone(node):
    node.gone = True
    assert node.do(pods=[["shop", "agent-x", "m3"]] * 2)[1] == "m2 leads now, and 2 pods are placed"


@pytest.mark.parametrize("pods", [[], [mirror("m1")], [mirror("m1"), mirror("m2", "False")], [mirror("m1"), mirror("m2", mark="other")],
                                  [mirror("m1"), mirror("m2", name="batch")]])
def test_nobody_would_take_over(node, pods):
    node.pods = pods
    state, why, _seen = node.do()
    assert state == proof.NOT_DONE and "no other kube-scheduler is ready" in why and "kubemend_allow: [scheduler_pause]" in why
    assert node.ended == [] and proof.read(RUN, STEP, node.root) is None
    assert node.do(allow=["scheduler_pause"])[0] == proof.PROVEN


def test_another_one_leads_already(node):
    node.holder = "m3_z"
    state, why, _seen = node.do()
    assert state == proof.NOT_DONE and "does not lead any more (m3_z does)" in why and node.ended == []


def test_the_api_does_not_answer_before_it(node):
    node.away = [True]
    state, why, _seen = node.do()
    assert state == proof.NOT_DONE and "who leads is not known" in why and node.ended == []


def test_it_does_not_run_any_more(node):
    node.former = None
    assert "no kube-scheduler runs on m1 now" in node.do()[1] and node.ended == []


def test_what_the_guards_refuse(node, monkeypatch):
    def refuse(step, params):
        raise guard.Refused("the kubelet of m1 is not healthy")

    monkeypatch.setattr(guard, "check", refuse)
    assert node.do()[:2] == (proof.NOT_DONE, "the kubelet of m1 is not healthy")


def test_the_api_that_is_away_for_a_moment_is_asked_again(node):
    node.away = [False, True]
    assert node.do()[0] == proof.PROVEN


def test_the_api_that_stays_away(node):
    node.away = [False] + [True] * 100
    state, why, _seen = node.do()
    assert state == proof.FAILED and "whether the pods are placed is not known" in why and node.ended == [10]


@pytest.mark.parametrize(("more", "why"), [
    ({"well": False}, "component down: kube-scheduler of m1 did not come back"), ({"takes": "m1_a"}, "nobody leads"), ({"takes": ""}, "nobody leads"),
    ({"places": False}, "m2 leads now, but these pods still wait after 0 s: shop/agent-x")])
def test_what_is_no_cure_fails(node, more, why):
    vars(node).update(more)
    state, said, _seen = node.do()
    assert state == proof.FAILED and why in said and proof.read(RUN, STEP, node.root)["state"] == "failed"


def test_older_kinds_of_locks(node):
    assert node.do(lock={"kind": "Endpoints", "name": "kube-scheduler"})[0] == proof.PROVEN
    assert scheduler_restart.holder(node, {"kind": "ConfigMap", "name": "kube-scheduler"}) is None


RECORD = {"host": "m1", "limit": 1, "expect": {}, "former": {"pid": 10, "ticks": 1}}


def test_killed_before_anything_was_ended(node):
    assert scheduler_restart.resumed(RECORD, None) == (proof.NOT_DONE, "kube-scheduler of m1 was not restarted")


@pytest.mark.parametrize(("well", "state"), [(True, proof.PROVEN), (False, proof.FAILED)])
def test_killed_after_it(node, well, state):
    node.running, node.well = [NEW], well
    assert scheduler_restart.resumed(RECORD, None)[0] == state


def test_the_program_knows_the_step():
    assert scheduler_restart.REMEDY in apply_step.REMEDIES and apply_step._module_of(scheduler_restart.REMEDY) is scheduler_restart
    assert apply_step.budget({"remedy": scheduler_restart.REMEDY, "expect": {"restart": "signal"}}) > apply_step.BACK_OFF + scheduler_restart.PLACED
