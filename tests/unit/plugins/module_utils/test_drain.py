# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drain against an API server that refuses, hurries, forgets and dies; what it leaves, and what the next run makes of it."""

import contextlib
import json
import os
import signal
import threading
import time

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils import apply_api, apply_step, cordon, disruption, drain, proof
from ansible_collections.kubemend.remediation.plugins.module_utils.durable import ChangeError

from tests.unit.plugins.module_utils.api_node import UID, made
from tests.unit.plugins.module_utils.change_node import NEXT, RUN
from tests.unit.plugins.module_utils.drain_node import LEASES, NODES, Cluster, budget, node, pod, stamp, status

FREE, OURS, THEIRS = (False, False), (True, True), (True, False)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> "Iterator[Cluster]":
    for module, name, value in ((drain, "POLL", 0.02), (drain, "TELL", 0.1), (drain, "HELD_SECONDS", 0.1), (drain, "LEASE_WAIT", 0.05),
                                (drain, "BACK_SECONDS", 0.1),
                                (disruption, "RETRY", 0.05), (cordon, "PAUSE", 0.01), (apply_api, "READY_SECONDS", 0.1)):
        monkeypatch.setattr(module, name, value)
    cluster = Cluster()
    with made(monkeypatch, cluster):
        yield cluster


def params(tmp_path: Path, run_id: str = RUN, remedy: str = "drain", check: bool = False, **more: Any) -> "dict[str, Any]":
    change = dict({"kind": remedy, "cluster_uid": UID, "node": "w1", "timeout": 1, "max_unavailable": 1, "allow": [], "reason": "test"}, **more)
    step = {"id": "01-m1-" + remedy, "host": "m1", "code": ["KM301"], "remedy": remedy, "target": "w1", "change": None if remedy == "recover" else change}
    return {"run_id": run_id, "step": step, "lock": None, "check": check, "root": str(tmp_path / "kubemend")}


def run(tmp_path: Path, *args: Any, **more: Any) -> "dict[str, Any]":
    return apply_step.run(params(tmp_path, *args, **more))


def unproven(tmp_path: Path) -> "list[Any]":
    return proof.unproven(str(tmp_path / "kubemend"))


def test_everyone_leaves_who_may(tmp_path: Path, fake: Cluster) -> None:
    fake.add(pod("a"), pod("b", phase="Failed"), pod("bare-done", None, phase="Succeeded", emptydir=True), pod("agent", "DaemonSet"),
             pod("static", None, mirror=True), pod("elsewhere", on="w2"))
    answer = run(tmp_path)
    assert answer["state"] == "done" and answer["changed"], answer
    assert "w1 is drained: 3 pods evicted" in answer["reason"] and "would come back at once: n/agent" in answer["reason"]
    assert "from files: n/static" in answer["reason"] and fake.left() == {"agent", "static"} and fake.left("w2") == {"elsewhere"}
    assert fake.cordon() == OURS and unproven(tmp_path) == []
    mark = json.loads(fake.the_node()["metadata"]["annotations"]["kubemend.io/cordon"])
    assert (mark["run"], mark["reason"]) == (RUN, "test") and mark["at"].endswith("Z")
    assert not any(one.startswith("DELETE") for one in fake.seen)
    assert run(tmp_path)["state"] == "done" and len(fake.asked) == 3  # the same step once more is the same answer


def test_drained_again_and_uncordoned(tmp_path: Path, fake: Cluster) -> None:
    fake.add(pod("a"))
    assert run(tmp_path)["state"] == "done"
    answer = run(tmp_path, NEXT)
    assert answer["state"] == "done" and "0 pods evicted" in answer["reason"] and fake.cordon() == OURS
    fake.objects[NODES + "w1"]["status"] = node("w1", "Unknown", "NodeStatusUnknown")["status"]
    answer = run(tmp_path, "20261121T110000Z-aaaaaa", "uncordon")
    assert answer["state"] == "failed" and "stays cordoned, because it is not ready" in answer["reason"] and fake.cordon() == OURS
    fake.objects[NODES + "w1"]["status"] = node("w1")["status"]
    answer = run(tmp_path, "20261121T120000Z-aaaaaa", "uncordon")
    assert answer["state"] == "done" and answer["changed"] and fake.cordon() == FREE
    assert "not cordoned any more" in run(tmp_path, "20261121T130000Z-aaaaaa", "uncordon")["reason"]


@pytest.mark.parametrize("change, said", [
    ({"status": node("w1", "Unknown", "NodeStatusUnknown")["status"]}, "does not post its status"),
    ({"status": {"conditions": []}}, "does not post its status"),
    ({"spec": {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}}, "fenced on purpose"),
    ({"spec": {"unschedulable": True}}, "somebody else cordoned it"),
])
def test_a_node_that_is_refused_is_not_touched(tmp_path: Path, fake: Cluster, change: "dict[str, Any]", said: str) -> None:
    fake.add(pod("a"))
    fake.put(NODES + "w1", dict(node("w1"), **change))
    before = json.dumps(fake.the_node())
    answer = run(tmp_path)
    assert (answer["state"], answer["changed"]) == ("refused", False) and said in answer["reason"], answer
    assert fake.asked == [] and json.dumps(fake.the_node()) == before and unproven(tmp_path) == []


def test_a_lease_that_is_not_renewed_refuses_it_one_that_only_looks_old_does_not(tmp_path: Path, fake: Cluster) -> None:
    fake.add(pod("a"))
    fake.objects[LEASES + "w1"]["spec"]["renewTime"] = stamp(100)
    answer = run(tmp_path)
    assert answer["state"] == "refused" and "has not renewed its lease for 100 s" in answer["reason"] and fake.asked == []

    def renewed(method: str, path: str) -> None:
        if path == LEASES + "w1":
            fake.objects[path]["spec"]["renewTime"] = stamp(100)

    fake.before = renewed  # a clock that is off, and moves
    assert run(tmp_path, NEXT)["state"] == "done"


def test_somebody_elses_cordon_is_kept_in_any_case(tmp_path: Path, fake: Cluster) -> None:
    fake.add(pod("a", labels={"app": "a"}))
    fake.put(NODES + "w1", node("w1", unschedulable=True))
    fake.budgets = [budget("a", "a")]
    answer = run(tmp_path, allow=["fenced"], timeout=0.3)
    assert answer["state"] == "failed" and "the cordon is somebody else's and stays" in answer["reason"] and fake.cordon() == THEIRS
    fake.budgets = []
    answer = run(tmp_path, NEXT, allow=["fenced"])
    assert answer["state"] == "done" and "stays theirs" in answer["reason"] and fake.cordon() == THEIRS
    assert "is somebody else's and stays" in run(tmp_path, "20261121T110000Z-aaaaaa", "uncordon")["reason"] and fake.cordon() == THEIRS


def test_what_would_be_lost_is_named_before_anything_goes(tmp_path: Path, fake: Cluster) -> None:
    fake.add(pod("a"), pod("bare1", None), pod("bare2", None), pod("local", emptydir=True), pod("both", labels={"app": "x", "tier": "y"}))
    fake.budgets = [budget("one", "x", 1), dict(budget("two", "x"), spec={"selector": {"matchLabels": {"tier": "y"}}})]
    answer = run(tmp_path)
    for said in ("n/bare1, n/bare2; delete or move them, or allow it with kubemend_allow: [drain_bare_pods]", "n/local; allow it with kubemend_allow: "
                 "[drain_local_storage]", "n/both is selected by 2 PodDisruptionBudgets (n/one, n/two)"):
        assert said in answer["reason"], answer
    assert answer["state"] == "refused" and fake.asked == [] and fake.cordon() == FREE
    fake.budgets = fake.budgets[:1]
    assert run(tmp_path, NEXT, allow=["drain_bare_pods", "drain_local_storage"])["state"] == "done" and fake.left() == set()


def test_not_more_nodes_out_than_allowed(tmp_path: Path, fake: Cluster) -> None:
    fake.put(NODES + "w2", node("w2", unschedulable=True))
    answer = run(tmp_path)
    assert answer["state"] == "refused" and "other nodes are out already: w2 (cordoned)" in answer["reason"]
    assert run(tmp_path, NEXT, max_unavailable=2)["state"] == "done"


def test_a_budget_that_frees_later(tmp_path: Path, fake: Cluster) -> None:
    fake.add(*[pod("web%d" % number, labels={"app": "web"}) for number in range(4)])
    fake.budgets, fake.ends = [budget("web", "web", 1, 3, 2, 4)], 0.05

    def remade(gone: "dict[str, Any]") -> None:
        name = gone["metadata"]["name"]
        fake.add(pod(name, labels={"app": "web"}, on="w2", uid="new-" + name))
        threading.Timer(0.05, lambda: fake.budgets[0]["status"].update(disruptionsAllowed=1)).start()

    fake.on_end = remade
    answer = run(tmp_path, timeout=20)
    assert answer["state"] == "done" and "4 pods evicted" in answer["reason"] and fake.left("w2") == {"web0", "web1", "web2", "web3"}
    assert sorted(fake.evicted()) == ["web0", "web1", "web2", "web3"] and any(code == 429 for dummy, dummy, code, dummy in fake.asked)


def test_a_budget_that_never_frees(tmp_path: Path, fake: Cluster) -> None:
    fake.add(pod("a"), pod("web", labels={"app": "web"}))
    fake.budgets = [budget("web", "web", 0, 1, 1, 1)]
    answer = run(tmp_path, timeout=0.4)
    assert answer["state"] == "failed" and answer["changed"], answer
    for said in ("w1 is not drained within 0 s", "1 pod left (n/web: PodDisruptionBudget n/web does not let it go (disruptionsAllowed 0: 1 of 1 expected "
                 "pods are healthy, 1 must be)", "1 pod evicted (n/a)", "it takes pods again"):
        assert said in answer["reason"], (said, answer)
    assert fake.cordon() == FREE and fake.left() == {"web"} and unproven(tmp_path) == []
    again = run(tmp_path, NEXT, timeout=0.2, allow=["keep_cordon"])
    assert again["state"] == "failed" and "stays cordoned (kubemend_allow: [keep_cordon])" in again["reason"] and fake.cordon() == OURS


def test_retry_after_is_kept(tmp_path: Path, fake: Cluster) -> None:
    fake.add(pod("a"))
    fake.refusals = [(429, ({"kind": "Status", "message": "busy"}, {"Retry-After": "1"})), (429, (b"Too many requests", {}))]
    answer = run(tmp_path, timeout=5)
    first, second, third = [at for dummy, at, dummy, dummy in fake.asked]
    assert answer["state"] == "done" and 1 <= second - first < 1.5 and 0.05 <= third - second < 0.5


@pytest.mark.parametrize("refused, said", [
    (status(500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."), "more than one PodDisruptionBudget"),
    (status(403, "evictions are forbidden by policy"), "forbidden by policy")])
def test_what_only_somebody_can_change_is_not_waited_for(tmp_path: Path, fake: Cluster, refused: Any, said: str) -> None:
    fake.add(pod("a"))
    fake.refusals = [refused]
    begun, answer = time.monotonic(), run(tmp_path, timeout=30)
    assert answer["state"] == "failed" and said in answer["reason"] and "more time would not help" in answer["reason"], answer
    assert time.monotonic() - begun < 5 and fake.cordon() == FREE


def test_a_namespace_that_ends_and_answers_that_get_lost_are_asked_again(tmp_path: Path, fake: Cluster) -> None:
    fake.add(pod("a"), pod("b"), pod("c"))
    fake.refusals = [status(403, "it is being terminated", ("NamespaceTerminating", "x")), status(500, "etcdserver: timed out"), status(409, "conflict")]
    assert run(tmp_path, timeout=5)["state"] == "done" and fake.left() == set()


def test_a_finalizer_is_named_and_left(tmp_path: Path, fake: Cluster) -> None:
    fake.add(pod("job", "Job", finalizers=["batch.kubernetes.io/job-tracking"]), pod("slow", finalizers=["example.org/x"]))
    fake.pods_by_uid["u-slow"]["metadata"]["deletionTimestamp"] = stamp()  # and its containers run on
    answer = run(tmp_path, timeout=0.5)
    assert answer["state"] == "failed", answer
    assert "n/job: it has ended, and batch.kubernetes.io/job-tracking holds the object" in answer["reason"]
    assert "n/slow: it is ending, with a grace period of 30 s, and then example.org/x must let go of it" in answer["reason"]
    del fake.pods_by_uid["u-slow"]
    answer = run(tmp_path, NEXT)
    assert answer["state"] == "done" and "finalizers hold their objects: n/job (batch.kubernetes.io/job-tracking)" in answer["reason"], answer
    assert fake.pods_by_uid["u-job"]["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]


def test_finished_pods_of_a_job_that_works_stay(tmp_path: Path, fake: Cluster) -> None:
    fake.add(pod("x", "Job", phase="Failed"))
    path = "/apis/batch/v1/namespaces/n/jobs/owner"
    fake.put(path, {"metadata": {"uid": "u-owner"}, "status": {}})
    answer = run(tmp_path)
    assert answer["state"] == "done" and "a Job that has not ended stay: without them older releases run them again: n/x" in answer["reason"]
    fake.objects[path]["status"]["conditions"] = [{"type": "Failed", "status": "True"}]
    assert run(tmp_path, NEXT)["state"] == "done" and fake.left() == set()


def test_a_name_that_comes_back_is_another_pod(tmp_path: Path, fake: Cluster) -> None:
    fake.add(pod("db-0", "StatefulSet"), pod("slow"))
    fake.ends = 0.1
    fake.on_end = lambda gone: fake.add(pod("db-0", "StatefulSet", on="w2", uid="new")) if gone["metadata"]["name"] == "db-0" else None
    assert run(tmp_path)["state"] == "done" and fake.left("w2") == {"db-0"} and fake.evicted().count("db-0") == 1


def test_what_always_comes_back_is_named(tmp_path: Path, fake: Cluster) -> None:
    fake.add(pod("x"))
    fake.on_end = lambda gone: fake.add(pod("x", uid="x%d" % len(fake.asked)))
    answer = run(tmp_path, timeout=5)
    assert answer["state"] == "failed" and "n/x: made again on this node although it is cordoned" in answer["reason"] and fake.cordon() == FREE


def test_a_thousand_pods_leave_side_by_side(tmp_path: Path, fake: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "POLL", 0.5)
    fake.add(*[pod("p%04d" % number) for number in range(1000)])
    fake.ends = 0.2
    answer = run(tmp_path, timeout=60)
    assert answer["state"] == "done" and "1000 pods evicted" in answer["reason"] and len(answer["reason"]) < 1000
    assert len(fake.evicted()) == 1000 and 1 < fake.most <= drain.PARALLEL


@pytest.mark.parametrize("minor, policy", [("36", "v1"), ("18+", "v1beta1"), ("17", "v1beta1")])
def test_check_mode_predicts_and_touches_nothing(tmp_path: Path, fake: Cluster, minor: str, policy: str) -> None:
    fake.minor, fake.policy = minor, policy
    fake.add(pod("a"), pod("web", labels={"app": "web"}), pod("sick", labels={"app": "sick"}, ready=False), pod("agent", "DaemonSet"))
    fake.budgets = [budget("web", "web"), budget("sick", "sick", 0, 1, 1, 2)]
    fake.budgets[1]["status"]["disruptionsAllowed"] = 0 if minor == "17" else 1
    answer = run(tmp_path, check=True)
    assert answer["state"] == "skipped" and answer["changed"], answer
    assert "3 pods would be evicted from w1; 1 of them could not go now: n/web: PodDisruptionBudget n/web does not let it go" in answer["reason"]
    assert ("too old for a dry run" in answer["reason"]) == (minor == "17") and len(fake.asked) == (0 if minor == "17" else 3)
    assert all(dry for dummy, dummy, dummy, dry in fake.asked) and fake.left() == {"a", "web", "sick", "agent"} and fake.cordon() == FREE
    assert "no cordon of ours is on w1" in run(tmp_path, NEXT, "uncordon", check=True)["reason"]
    assert not any(one.startswith("PATCH") for one in fake.seen) and not (tmp_path / "kubemend" / "journal").exists()


def test_an_api_that_dies_leaves_it_open_and_the_next_run_ends_it(tmp_path: Path, fake: Cluster) -> None:
    fake.add(*[pod("p%d" % number) for number in range(3)])
    fake.before = lambda method, path: setattr(fake, "dead", fake.dead or bool(fake.evicted()))
    answer = run(tmp_path, timeout=0.4)
    assert answer["state"] == "failed" and answer["changed"] and "KM902" in answer["reason"], answer
    record, = unproven(tmp_path)
    assert record["remedy"] == "drain" and record["node"] == "w1"
    assert "is not known" in run(tmp_path, NEXT, "recover")["reason"] and len(unproven(tmp_path)) == 1
    fake.before, fake.dead = (lambda method, path: None), False
    assert fake.cordon() == OURS
    answer = run(tmp_path, "20261121T110000Z-aaaaaa", "recover")
    assert answer["state"] == "done" and "w1 takes pods again" in answer["reason"] and fake.cordon() == FREE and unproven(tmp_path) == []
    assert run(tmp_path, "20261121T120000Z-aaaaaa")["state"] == "done" and fake.left() == set()


def test_a_cordon_that_somebody_comes_back_for_is_good_as_it_is(tmp_path: Path, fake: Cluster) -> None:
    assert run(tmp_path, held=True)["changed"] and json.loads(fake.the_node()["metadata"]["annotations"]["kubemend.io/cordon"])["held"]
    again = run(tmp_path, NEXT, held=True)
    assert again["state"] == "done" and not again["changed"] and sum(one.startswith("PATCH") for one in fake.seen) == 1
    other = run(tmp_path, "20261121T110000Z-aaaaaa")  # of a run that would take it away again
    assert other["state"] == "refused" and "somebody else cordoned it" in other["reason"]
    assert not run(tmp_path, "20261121T120000Z-aaaaaa", "uncordon")["changed"] and fake.cordon() == OURS
    assert run(tmp_path, "20261121T130000Z-aaaaaa", "uncordon", check=True, held=True)["changed"] and fake.cordon() == OURS
    assert run(tmp_path, "20261121T130000Z-aaaaaa", "uncordon", held=True)["changed"] and fake.cordon() == FREE


def test_a_cordon_that_the_api_refuses_leaves_nothing_open(tmp_path: Path, fake: Cluster) -> None:
    fake.add(pod("a"))
    fake._patch = lambda path, sent: status(403, "nodes is forbidden")  # type: ignore[method-assign]
    answer = run(tmp_path)
    assert (answer["state"], answer["changed"]) == ("refused", False) and "could not be cordoned" in answer["reason"], answer
    assert fake.asked == [] and unproven(tmp_path) == []


def test_an_answer_about_the_cordon_that_gets_lost(tmp_path: Path, fake: Cluster) -> None:
    fake.before = lambda method, path: fake.wrong.update(PATCH="drop" if sum(one.startswith("PATCH") for one in fake.seen) < 2 else "")
    assert run(tmp_path)["state"] == "done" and fake.cordon() == OURS and sum(one.startswith("PATCH") for one in fake.seen) == 1


def begun_and_killed(tmp_path: Path, when: Any, **more: Any) -> None:
    child = os.fork()
    if not child:
        apply_step.work(params(tmp_path, timeout=60, **more))
        os._exit(0)
    end = time.monotonic() + 20
    while not when() and time.monotonic() < end:
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


@pytest.mark.parametrize("held", [False, True])
def test_killed_half_way_and_started_again(tmp_path: Path, fake: Cluster, held: bool) -> None:
    fake.add(pod("a"), pod("web", labels={"app": "web"}))
    fake.budgets = [budget("web", "web")]
    begun_and_killed(tmp_path, lambda: "a" not in fake.left(), held=held)
    assert fake.cordon() == OURS and fake.left() == {"web"} and len(unproven(tmp_path)) == 1
    fake.budgets = []
    goes_on = run(tmp_path, NEXT, held=held)  # without a recovery before it
    assert goes_on["state"] == "done" and "1 pod evicted" in goes_on["reason"] and fake.cordon() == OURS
    answer = run(tmp_path, "20261121T110000Z-aaaaaa", "recover")
    assert "no cordon of that run is on w1" in answer["reason"] and fake.cordon() == OURS and unproven(tmp_path) == []
    assert run(tmp_path, "20261121T120000Z-aaaaaa", "uncordon", held=held)["state"] == "done" and fake.cordon() == FREE


def marked(fake: Cluster) -> "dict[str, Any]":
    return dict(json.loads(fake.the_node()["metadata"]["annotations"]["kubemend.io/cordon"]))


@pytest.mark.parametrize("held", [False, True])
def test_the_kubelet_dies_meanwhile(tmp_path: Path, fake: Cluster, held: bool) -> None:
    fake.add(pod("a"))
    fake.ends = 60
    threading.Timer(0.3, lambda: fake.the_node().update(status=node("w1", "Unknown", "NodeStatusUnknown")["status"])).start()
    answer = run(tmp_path, timeout=20, held=held)
    assert marked(fake)["run"] == RUN and not marked(fake).get("held"), "nobody comes back for it: KM903"
    assert answer["state"] == "failed" and "because its kubelet does not post its status" in answer["reason"]
    assert "stays cordoned until its kubelet is back" in answer["reason"] and fake.cordon() == OURS and unproven(tmp_path) == []


@pytest.mark.parametrize("allow, left", [([], False), (["keep_cordon"], True)])
def test_killed_and_its_node_dies(tmp_path: Path, fake: Cluster, allow: "list[str]", left: bool) -> None:
    """Its record is ended, and so only the annotation can tell of the cordon."""
    fake.add(pod("web", labels={"app": "web"}))
    fake.budgets = [budget("web", "web")]
    begun_and_killed(tmp_path, lambda: fake.cordon() == OURS, held=True, allow=allow)
    fake.the_node().update(status=node("w1", "Unknown", "NodeStatusUnknown")["status"])
    assert run(tmp_path, NEXT, "recover")["state"] == "done" and unproven(tmp_path) == []
    assert fake.cordon() == OURS and bool(marked(fake).get("held")) == left


DENIED = status(403, 'pods "a" is forbidden: User "kubernetes-admin" cannot create resource "pods/eviction" in API group "" in the namespace "n"')


@pytest.mark.parametrize("patience, state", [(60, "done"), (0, "failed")])
def test_an_api_server_that_has_just_started_knows_no_rights_yet(tmp_path: Path, fake: Cluster, monkeypatch: pytest.MonkeyPatch, patience: int,
                                                                 state: str) -> None:
    monkeypatch.setattr(drain, "DENIED_SECONDS", patience)
    fake.add(pod("a"))
    fake.refusals = [DENIED, DENIED]
    answer = run(tmp_path, timeout=5)
    assert answer["state"] == state and unproven(tmp_path) == [], answer
    assert state == "done" or "cannot create resource" in answer["reason"] and fake.cordon() == FREE


@pytest.mark.parametrize("allow, state", [([], "refused"), (["fenced"], "done")])
def test_somebody_cordons_it_between_the_look_and_ours(tmp_path: Path, fake: Cluster, allow: "list[str]", state: str) -> None:
    def meanwhile(method: str, path: str) -> None:
        if "poddisruptionbudgets" in path:
            fake.the_node()["spec"]["unschedulable"] = True

    fake.add(pod("a"))
    fake.before = meanwhile
    answer = run(tmp_path, allow=allow)
    assert answer["state"] == state and fake.cordon() == THEIRS and (fake.left() == {"a"}) is (state == "refused"), answer
    assert state == "done" or "somebody else cordoned w1 at this moment" in answer["reason"]


def test_somebody_writes_the_node_at_the_same_moment(tmp_path: Path, fake: Cluster) -> None:
    times = []

    def meanwhile(method: str, path: str) -> None:
        if method == "PATCH" and len(times) < 2:
            times.append(fake.put(path, fake.the_node()))

    fake.before = meanwhile
    assert run(tmp_path)["state"] == "done" and fake.cordon() == OURS and len(times) == 2


def test_what_came_between_the_two_looks_refuses_it_and_takes_the_cordon_back(tmp_path: Path, fake: Cluster) -> None:
    fake.before = lambda method, path: fake.add(pod("bare", None)) if method == "PATCH" and not fake.cordon()[0] else None
    answer = run(tmp_path)
    assert (answer["state"], answer["changed"]) == ("refused", False) and "n/bare" in answer["reason"], answer
    assert fake.cordon() == FREE and unproven(tmp_path) == []


def test_whoever_waits_is_told_how_far_it_is(tmp_path: Path, fake: Cluster) -> None:
    fake.add(*[pod("p%d" % number) for number in range(12)])
    fake.ends = 1.5
    asked, answer, told = 0, {"state": apply_step.AT_WORK}, []
    while answer["state"] == apply_step.AT_WORK and asked < 40:
        answer, asked = apply_step.run(dict(params(tmp_path, timeout=30), patience=0.4)), asked + 1
        told.append(answer["reason"])
    assert answer["state"] == "done" and "w1: 12 pods left" in told and asked > 2, told
    assert len(fake.evicted()) == 12


def test_whoever_waits_is_told_why_it_stays_open(tmp_path: Path, fake: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def left_alone(dummy: Any) -> Any:
        time.sleep(1)
        raise ChangeError("the API is away", changed=True)

    monkeypatch.setattr(drain.Drain, "run", left_alone)
    asked, answer = 0, {"state": apply_step.AT_WORK}
    while answer["state"] == apply_step.AT_WORK and asked < 40:
        answer, asked = apply_step.run(dict(params(tmp_path, timeout=30), patience=0.3)), asked + 1
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)  # as init does on a node
    assert (answer["state"], answer["reason"]) == ("failed", "the API is away") and asked > 1 and len(unproven(tmp_path)) == 1
