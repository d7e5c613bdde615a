# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drain against an API server that refuses and hurries.

The tests also check what it says of pods that do not leave.
"""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.steps.drain import (
    eviction,
)
from tests.unit.support.fake_drain import (
    FREE,
    LEASES,
    NODES,
    OURS,
    THEIRS,
    Cluster,
    budget,
    node,
    pod,
    run,
    served,
    stamp,
    status,
    unproven,
)
from tests.unit.support.fake_file_change import NEXT, RUN
from tests.unit.support.waiting import until


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> "Iterator[Cluster]":
    with served(monkeypatch) as cluster:
        yield cluster


def test_everyone_leaves_who_may(tmp_path: Path, fake: Cluster) -> None:
    fake.add(
        pod("a"),
        pod("b", phase="Failed"),
        pod("bare-done", None, phase="Succeeded", emptydir=True),
        pod("agent", "DaemonSet"),
        pod("static", None, mirror=True),
        pod("elsewhere", on="w2"),
    )
    answer = run(tmp_path)
    assert answer["state"] == "done", answer
    assert answer["changed"], answer
    assert "w1 is drained: 3 pods evicted" in answer["reason"]
    assert "would come back at once: n/agent" in answer["reason"]
    assert "from files: n/static" in answer["reason"]
    assert fake.left() == {"agent", "static"}
    assert fake.left("w2") == {"elsewhere"}
    assert fake.cordon() == OURS
    assert unproven(tmp_path) == []
    mark = json.loads(fake.the_node()["metadata"]["annotations"]["kubemend.io/cordon"])
    assert (mark["run"], mark["reason"]) == (RUN, "test")
    assert mark["at"].endswith("Z")
    assert not any(one.startswith("DELETE") for one in fake.seen)
    # the same step once more is the same answer
    assert run(tmp_path)["state"] == "done"
    assert len(fake.asked) == 3


def test_drained_again_and_uncordoned(tmp_path: Path, fake: Cluster) -> None:
    fake.add(pod("a"))
    assert run(tmp_path)["state"] == "done"
    answer = run(tmp_path, NEXT)
    assert answer["state"] == "done"
    assert "0 pods evicted" in answer["reason"]
    assert fake.cordon() == OURS
    fake.objects[NODES + "w1"]["status"] = node("w1", "Unknown", "NodeStatusUnknown")["status"]
    answer = run(tmp_path, "20261121T110000Z-aaaaaa", "uncordon")
    assert answer["state"] == "failed"
    assert "stays cordoned, because it is not ready" in answer["reason"]
    assert fake.cordon() == OURS
    fake.objects[NODES + "w1"]["status"] = node("w1")["status"]
    answer = run(tmp_path, "20261121T120000Z-aaaaaa", "uncordon")
    assert answer["state"] == "done"
    assert answer["changed"]
    assert fake.cordon() == FREE
    assert "not cordoned any more" in run(tmp_path, "20261121T130000Z-aaaaaa", "uncordon")["reason"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"status": node("w1", "Unknown", "NodeStatusUnknown")["status"]},
            "does not post its status",
        ),
        ({"status": {"conditions": []}}, "does not post its status"),
        (
            {
                "spec": {
                    "taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]
                }
            },
            "fenced on purpose",
        ),
        ({"spec": {"unschedulable": True}}, "another client cordoned it"),
    ],
)
def test_a_node_that_is_refused_is_not_touched(
    tmp_path: Path, fake: Cluster, change: "dict[str, Any]", said: str
) -> None:
    fake.add(pod("a"))
    fake.put(NODES + "w1", dict(node("w1"), **change))
    before = json.dumps(fake.the_node())
    answer = run(tmp_path)
    assert (answer["state"], answer["changed"]) == ("refused", False), answer
    assert said in answer["reason"], answer
    assert fake.asked == []
    assert json.dumps(fake.the_node()) == before
    assert unproven(tmp_path) == []


def test_a_lease_that_is_not_renewed_refuses_it_one_that_only_looks_old_does_not(
    tmp_path: Path, fake: Cluster
) -> None:
    fake.add(pod("a"))
    fake.objects[LEASES + "w1"]["spec"]["renewTime"] = stamp(100)
    answer = run(tmp_path)
    assert answer["state"] == "refused"
    assert "has not renewed its lease for 100 s" in answer["reason"]
    assert fake.asked == []

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
    assert answer["state"] == "failed"
    assert "the cordon is another client's and stays" in answer["reason"]
    assert fake.cordon() == THEIRS
    fake.budgets = []
    answer = run(tmp_path, NEXT, allow=["fenced"])
    assert answer["state"] == "done"
    assert "stays theirs" in answer["reason"]
    assert fake.cordon() == THEIRS
    assert (
        "is not of this tool and stays"
        in run(tmp_path, "20261121T110000Z-aaaaaa", "uncordon")["reason"]
    )
    assert fake.cordon() == THEIRS


def test_what_would_be_lost_is_named_before_anything_goes(tmp_path: Path, fake: Cluster) -> None:
    fake.add(
        pod("a"),
        pod("bare1", None),
        pod("bare2", None),
        pod("local", emptydir=True),
        pod("both", labels={"app": "x", "tier": "y"}),
    )
    fake.budgets = [
        budget("one", "x", 1),
        dict(budget("two", "x"), spec={"selector": {"matchLabels": {"tier": "y"}}}),
    ]
    answer = run(tmp_path)
    for said in (
        "n/bare1, n/bare2; delete or move them, or allow it with kubemend_allow: [drain_bare_pods]",
        "n/local; allow it with kubemend_allow: [drain_local_storage]",
        "n/both is selected by 2 PodDisruptionBudgets (n/one, n/two)",
    ):
        assert said in answer["reason"], answer
    assert answer["state"] == "refused"
    assert fake.asked == []
    assert fake.cordon() == FREE
    fake.budgets = fake.budgets[:1]
    assert run(tmp_path, NEXT, allow=["drain_bare_pods", "drain_local_storage"])["state"] == "done"
    assert fake.left() == set()


def test_devices_that_a_restart_behind_the_drain_may_take_refuse_it_before_anything_goes(
    tmp_path: Path, fake: Cluster
) -> None:
    exporter = pod("exporter", "DaemonSet")
    exporter["spec"]["containers"] = [
        {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    ]
    fake.add(pod("a"), exporter)
    answer = run(tmp_path, restarts=True)
    assert answer["state"] == "refused", answer
    assert "may lose their devices then: n/exporter (nvidia.com/gpu)" in answer["reason"], answer
    assert fake.asked == []
    assert fake.cordon() == FREE
    assert run(tmp_path, NEXT, restarts=True, allow=["kubelet_restart"])["state"] == "done"
    assert fake.left() == {"exporter"}


def test_not_more_nodes_out_than_allowed(tmp_path: Path, fake: Cluster) -> None:
    fake.put(NODES + "w2", node("w2", unschedulable=True))
    answer = run(tmp_path)
    assert answer["state"] == "refused"
    assert "other nodes are out already: w2 (cordoned)" in answer["reason"]
    assert run(tmp_path, NEXT, max_unavailable=2)["state"] == "done"


def test_a_budget_that_frees_later(tmp_path: Path, fake: Cluster) -> None:
    fake.add(*[pod(f"web{number:d}", labels={"app": "web"}) for number in range(4)])
    fake.budgets, fake.ends = [budget("web", "web", 1, 3, 2, 4)], 0.05

    def remade(gone: "dict[str, Any]") -> None:
        name = gone["metadata"]["name"]
        fake.add(pod(name, labels={"app": "web"}, on="w2", uid="new-" + name))
        threading.Thread(target=frees, daemon=True).start()

    def frees() -> None:
        """Free a place once the budget has refused a pod.

        All pods are asked for at the same time.
        """
        assert until(lambda: any(code == 429 for dummy, dummy, code, dummy in fake.asked))
        fake.budgets[0]["status"].update(disruptionsAllowed=1)

    fake.on_end = remade
    answer = run(tmp_path)
    assert answer["state"] == "done"
    assert "4 pods evicted" in answer["reason"]
    assert fake.left("w2") == {"web0", "web1", "web2", "web3"}
    assert sorted(fake.evicted()) == ["web0", "web1", "web2", "web3"]
    assert any(code == 429 for dummy, dummy, code, dummy in fake.asked)


def test_a_budget_that_never_frees(tmp_path: Path, fake: Cluster) -> None:
    fake.add(pod("a"), pod("web", labels={"app": "web"}))
    fake.budgets = [budget("web", "web", 0, 1, 1, 1)]
    fake.over_when(
        lambda: (
            fake.left() == {"web"} and any(code == 429 for dummy, dummy, code, dummy in fake.asked)
        )
    )
    answer = run(tmp_path, timeout=60)
    assert answer["state"] == "failed", answer
    assert answer["changed"], answer
    for said in (
        "w1 is not drained within 60 s",
        (
            "1 pod left (n/web: PodDisruptionBudget n/web does not let it go (disruptionsAllowed 0:"
            " 1 of 1 expected pod is healthy, 1 must be)"
        ),
        "1 pod evicted (n/a)",
        "it takes pods again",
    ):
        assert said in answer["reason"], (said, answer)
    assert fake.cordon() == FREE
    assert fake.left() == {"web"}
    assert unproven(tmp_path) == []
    again = run(tmp_path, NEXT, timeout=0.5, allow=["keep_cordon"])
    assert again["state"] == "failed"
    assert "stays cordoned (kubemend_allow: [keep_cordon])" in again["reason"]
    assert fake.cordon() == OURS


def test_a_request_that_gets_no_answer_does_not_unsay_the_budget(
    tmp_path: Path, fake: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eviction, "REQUEST", 1)
    hung = []
    fake.add(pod("web", labels={"app": "web"}))
    fake.budgets = [budget("web", "web")]

    def hangs(dummy: str, path: str) -> None:
        if path.endswith("/eviction") and fake.asked:
            hung.append(path)
            if len(hung) > 1:  # the one before got no answer
                fake.clock.over()
            time.sleep(2)

    fake.before = hangs
    answer = run(tmp_path)
    assert answer["state"] == "failed", answer
    assert "1 pod left (n/web: PodDisruptionBudget n/web does not let it go" in answer["reason"], (
        answer
    )


def test_retry_after_is_kept(
    tmp_path: Path, fake: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long it means to wait is exact.

    How long it waited is no less, and more by as much as the machine is slow.
    """
    meaning = eviction.disruption_budgets.meaning

    def told(error: Any) -> Any:
        answer = meaning(error)
        # the drain is at work in another process
        with Path(tmp_path / "waits").open("a", encoding="ascii") as waits:
            waits.write(f"{answer[1]}\n")
        return answer

    monkeypatch.setattr(eviction.disruption_budgets, "meaning", told)
    fake.add(pod("a"))
    fake.refusals = [
        (429, ({"kind": "Status", "message": "busy"}, {"Retry-After": "1"})),
        (429, (b"Too many requests", {})),
    ]
    fake.before = lambda method, path: (
        sent.append(time.monotonic()) if path.endswith("/eviction") else None
    )
    sent: list[float] = []
    answer = run(tmp_path)
    first, second, third = sent
    assert answer["state"] == "done"
    assert (tmp_path / "waits").read_text().split() == ["1.0", "0.05"]
    assert second - first >= 1
    assert third - second >= 0.05


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        (
            status(
                500,
                "This pod has more than one PodDisruptionBudget, which the eviction subresource"
                " does not support.",
            ),
            "more than one PodDisruptionBudget",
        ),
        (status(403, "evictions are forbidden by policy"), "forbidden by policy"),
    ],
)
def test_what_only_somebody_can_change_is_not_waited_for(
    tmp_path: Path, fake: Cluster, refused: Any, said: str
) -> None:
    fake.add(pod("a"))
    fake.refusals = [refused]
    begun, answer = time.monotonic(), run(tmp_path, timeout=600)
    assert answer["state"] == "failed", answer
    assert said in answer["reason"], answer
    assert "more time would not help" in answer["reason"], answer
    assert time.monotonic() - begun < 300
    assert fake.cordon() == FREE


def test_a_namespace_that_ends_and_answers_that_get_lost_are_asked_again(
    tmp_path: Path, fake: Cluster
) -> None:
    fake.add(pod("a"), pod("b"), pod("c"))
    fake.refusals = [
        status(403, "it is being terminated", ("NamespaceTerminating", "x")),
        status(500, "etcdserver: timed out"),
        status(409, "conflict"),
    ]
    assert run(tmp_path)["state"] == "done"
    assert fake.left() == set()


def test_a_finalizer_is_named_and_left(tmp_path: Path, fake: Cluster) -> None:
    fake.add(
        pod("job", "Job", finalizers=["batch.kubernetes.io/job-tracking"]),
        pod("slow", finalizers=["example.org/x"]),
    )
    # and its containers run on
    fake.pods_by_uid["u-slow"]["metadata"]["deletionTimestamp"] = stamp()
    fake.over_when(
        lambda: (
            fake.left()
            and fake.pods_by_uid["u-job"]["metadata"].get("deletionGracePeriodSeconds") == 0
        )
    )
    answer = run(tmp_path)
    assert answer["state"] == "failed", answer
    assert (
        "n/job: it has ended, and batch.kubernetes.io/job-tracking holds the object"
        in answer["reason"]
    )
    assert (
        "n/slow: it is ending, with a grace period of 30 s, and then example.org/x must let go"
        " of it" in answer["reason"]
    )
    del fake.pods_by_uid["u-slow"]
    fake.before = lambda method, path: None
    answer = run(tmp_path, NEXT)
    assert answer["state"] == "done", answer
    assert (
        "finalizers hold their objects: n/job (batch.kubernetes.io/job-tracking)"
        in answer["reason"]
    ), answer
    assert fake.pods_by_uid["u-job"]["metadata"]["finalizers"] == [
        "batch.kubernetes.io/job-tracking"
    ]


def test_finished_pods_of_a_job_that_works_stay(tmp_path: Path, fake: Cluster) -> None:
    fake.add(pod("x", "Job", phase="Failed"))
    path = "/apis/batch/v1/namespaces/n/jobs/owner"
    fake.put(path, {"metadata": {"uid": "u-owner"}, "status": {}})
    answer = run(tmp_path)
    assert answer["state"] == "done"
    assert (
        "a Job that has not ended stay: without them older releases run them again: n/x"
        in answer["reason"]
    )
    fake.objects[path]["status"]["conditions"] = [{"type": "Failed", "status": "True"}]
    assert run(tmp_path, NEXT)["state"] == "done"
    assert fake.left() == set()


def test_a_name_that_comes_back_is_another_pod(tmp_path: Path, fake: Cluster) -> None:
    fake.add(pod("db-0", "StatefulSet"), pod("slow"))
    fake.ends = 0.1
    fake.on_end = lambda gone: (
        fake.add(pod("db-0", "StatefulSet", on="w2", uid="new"))
        if gone["metadata"]["name"] == "db-0"
        else None
    )
    assert run(tmp_path)["state"] == "done"
    assert fake.left("w2") == {"db-0"}
    assert fake.evicted().count("db-0") == 1


def test_what_always_comes_back_is_named(tmp_path: Path, fake: Cluster) -> None:
    fake.add(pod("x"))
    fake.on_end = lambda gone: fake.add(pod("x", uid=f"x{len(fake.asked):d}"))
    answer = run(tmp_path)
    assert answer["state"] == "failed"
    assert "n/x: made again on this node although it is cordoned" in answer["reason"]
    assert fake.cordon() == FREE


def test_a_thousand_pods_leave_side_by_side(
    tmp_path: Path, fake: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eviction, "POLL", 0.5)
    fake.add(*[pod(f"p{number:04d}") for number in range(1000)])
    fake.ends = 0.2
    answer = run(tmp_path, timeout=900)
    assert answer["state"] == "done"
    assert "1000 pods evicted" in answer["reason"]
    assert len(answer["reason"]) < 1000
    assert len(fake.evicted()) == 1000
    assert 1 < fake.most <= eviction.PARALLEL


@pytest.mark.parametrize(("minor", "policy"), [("36", "v1"), ("18+", "v1beta1"), ("17", "v1beta1")])
def test_check_mode_predicts_and_touches_nothing(
    tmp_path: Path, fake: Cluster, minor: str, policy: str
) -> None:
    fake.minor, fake.policy = minor, policy
    fake.add(
        pod("a"),
        pod("web", labels={"app": "web"}),
        pod("sick", labels={"app": "sick"}, ready=False),
        pod("agent", "DaemonSet"),
    )
    fake.budgets = [budget("web", "web"), budget("sick", "sick", 0, 1, 1, 2)]
    fake.budgets[1]["status"]["disruptionsAllowed"] = 0 if minor == "17" else 1
    answer = run(tmp_path, check=True)
    assert answer["state"] == "skipped", answer
    assert answer["changed"], answer
    assert (
        "3 pods would be evicted from w1; 1 of them could not go now: n/web: PodDisruptionBudget"
        " n/web does not let it go" in answer["reason"]
    )
    assert ("too old for a dry run" in answer["reason"]) == (minor == "17")
    assert len(fake.asked) == (0 if minor == "17" else 3)
    assert all(dry for dummy, dummy, dummy, dry in fake.asked)
    assert fake.left() == {"a", "web", "sick", "agent"}
    assert fake.cordon() == FREE
    assert (
        "no cordon of this tool is on w1" in run(tmp_path, NEXT, "uncordon", check=True)["reason"]
    )
    assert not any(one.startswith("PATCH") for one in fake.seen)
    assert not (tmp_path / "kubemend" / "journal").exists()
