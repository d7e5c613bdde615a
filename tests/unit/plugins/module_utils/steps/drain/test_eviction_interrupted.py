# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drain that is interrupted, and what the next run makes of it.

The API server, the node or the drain's own process dies, another client writes the node, or the
caller waits.
"""

import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import step_kinds
from ansible_collections.kubemend.remediation.plugins.module_utils.state.storage import ChangeError
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import (
    executor as step_executor,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.drain import (
    eviction,
)
from tests.unit.support import child_process
from tests.unit.support.fake_drain import (
    FREE,
    OURS,
    THEIRS,
    Cluster,
    budget,
    node,
    params,
    pod,
    run,
    served,
    status,
    unproven,
)
from tests.unit.support.fake_file_change import NEXT, RUN
from tests.unit.support.waiting import until


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> "Iterator[Cluster]":
    with served(monkeypatch) as cluster:
        yield cluster


def test_an_api_that_dies_leaves_it_open_and_the_next_run_ends_it(
    tmp_path: Path, fake: Cluster
) -> None:
    fake.add(*[pod(f"p{number:d}") for number in range(3)])
    denied: list[str] = []

    def dies_then(dummy: str, path: str) -> None:
        fake.dead = fake.dead or bool(fake.evicted())
        denied.extend([path] if fake.dead else [])
        if len(denied) > 9:  # it was asked again for long enough
            fake.clock.over()

    fake.before = dies_then
    answer = run(tmp_path)
    assert answer["state"] == "failed", answer
    assert answer["changed"], answer
    assert "KM902" in answer["reason"], answer
    (record,) = unproven(tmp_path)
    assert record["remedy"] == "drain"
    assert record["node"] == "w1"
    assert "is not known" in run(tmp_path, NEXT, "recover")["reason"]
    assert len(unproven(tmp_path)) == 1
    fake.before, fake.dead = (lambda method, path: None), False
    assert fake.cordon() == OURS
    answer = run(tmp_path, "20261121T110000Z-aaaaaa", "recover")
    assert answer["state"] == "done"
    assert "w1 takes pods again" in answer["reason"]
    assert fake.cordon() == FREE
    assert unproven(tmp_path) == []
    assert run(tmp_path, "20261121T120000Z-aaaaaa")["state"] == "done"
    assert fake.left() == set()


def test_a_cordon_that_somebody_comes_back_for_is_good_as_it_is(
    tmp_path: Path, fake: Cluster
) -> None:
    assert run(tmp_path, held=True)["changed"]
    assert json.loads(fake.the_node()["metadata"]["annotations"]["kubemend.io/cordon"])["held"]
    again = run(tmp_path, NEXT, held=True)
    assert again["state"] == "done"
    assert not again["changed"]
    assert sum(one.startswith("PATCH") for one in fake.seen) == 1
    other = run(tmp_path, "20261121T110000Z-aaaaaa")  # of a run that would take it away again
    assert other["state"] == "refused"
    assert "another client cordoned it" in other["reason"]
    assert not run(tmp_path, "20261121T120000Z-aaaaaa", "uncordon")["changed"]
    assert fake.cordon() == OURS
    assert run(tmp_path, "20261121T130000Z-aaaaaa", "uncordon", check=True, held=True)["changed"]
    assert fake.cordon() == OURS
    assert run(tmp_path, "20261121T130000Z-aaaaaa", "uncordon", held=True)["changed"]
    assert fake.cordon() == FREE


def test_an_api_that_dies_before_a_held_cordon_is_away(tmp_path: Path, fake: Cluster) -> None:
    assert run(tmp_path, held=True)["changed"]
    fake.before = lambda method, path: setattr(fake, "dead", fake.dead or method == "PATCH")
    answer = run(tmp_path, NEXT, "uncordon", held=True)
    assert answer["state"] == "failed", answer
    assert "is not known" in answer["reason"], answer
    fake.before, fake.dead = (lambda method, path: None), False
    assert fake.cordon() == OURS
    assert len(unproven(tmp_path)) == 1
    answer = run(tmp_path, NEXT, "recover")
    assert answer["state"] == "done"
    assert "w1 takes pods again" in answer["reason"]
    assert fake.cordon() == FREE
    assert unproven(tmp_path) == []


def test_a_cordon_that_the_api_refuses_leaves_nothing_open(tmp_path: Path, fake: Cluster) -> None:
    def refuse(path: str, sent: Any) -> Any:
        return status(403, "nodes is forbidden")

    fake.add(pod("a"))
    fake._patch = refuse  # type: ignore[method-assign]
    answer = run(tmp_path)
    assert (answer["state"], answer["changed"]) == (
        "refused",
        False,
    ), answer
    assert "could not be cordoned" in answer["reason"], answer
    assert fake.asked == []
    assert unproven(tmp_path) == []


def test_an_answer_about_the_cordon_that_gets_lost(tmp_path: Path, fake: Cluster) -> None:
    fake.before = lambda method, path: fake.wrong.update(
        PATCH="drop" if sum(one.startswith("PATCH") for one in fake.seen) < 2 else ""
    )
    assert run(tmp_path)["state"] == "done"
    assert fake.cordon() == OURS
    assert sum(one.startswith("PATCH") for one in fake.seen) == 1


def begun_and_killed(tmp_path: Path, when: Any, **more: Any) -> None:
    child = child_process.fork(lambda: step_executor.work(params(tmp_path, timeout=600, **more)))
    came = until(when)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert came


@pytest.mark.parametrize("held", [False, True])
def test_killed_half_way_and_started_again(tmp_path: Path, fake: Cluster, held: bool) -> None:
    fake.add(pod("a"), pod("web", labels={"app": "web"}))
    fake.budgets = [budget("web", "web")]
    begun_and_killed(tmp_path, lambda: "a" not in fake.left(), held=held)
    assert fake.cordon() == OURS
    assert fake.left() == {"web"}
    assert len(unproven(tmp_path)) == 1
    fake.budgets = []
    goes_on = run(tmp_path, NEXT, held=held)  # without a recovery before it
    assert goes_on["state"] == "done"
    assert "1 pod evicted" in goes_on["reason"]
    assert fake.cordon() == OURS
    answer = run(tmp_path, "20261121T110000Z-aaaaaa", "recover")
    assert "no cordon of that run is on w1" in answer["reason"]
    assert fake.cordon() == OURS
    assert unproven(tmp_path) == []
    assert run(tmp_path, "20261121T120000Z-aaaaaa", "uncordon", held=held)["state"] == "done"
    assert fake.cordon() == FREE


def marked(fake: Cluster) -> "dict[str, Any]":
    return dict(json.loads(fake.the_node()["metadata"]["annotations"]["kubemend.io/cordon"]))


def dies(fake: Cluster) -> None:
    """Let the kubelet die as soon as the node is marked and its pod is evicted."""
    until(lambda: fake.cordon() == OURS and fake.evicted())
    fake.the_node().update(status=node("w1", "Unknown", "NodeStatusUnknown")["status"])


@pytest.mark.parametrize("held", [False, True])
def test_the_kubelet_dies_meanwhile(tmp_path: Path, fake: Cluster, held: bool) -> None:
    fake.add(pod("a"))
    fake.ends = 6000
    threading.Thread(target=dies, args=[fake], daemon=True).start()
    answer = run(tmp_path, timeout=600, held=held)
    assert marked(fake)["run"] == RUN, "nobody comes back for it: KM903"
    assert not marked(fake).get("held"), "nobody comes back for it: KM903"
    assert answer["state"] == "failed"
    assert "because its kubelet does not post its status" in answer["reason"]
    assert "stays cordoned until its kubelet is back" in answer["reason"]
    assert fake.cordon() == OURS
    assert unproven(tmp_path) == []


@pytest.mark.parametrize(("allow", "left"), [([], False), (["keep_cordon"], True)])
def test_killed_and_its_node_dies(
    tmp_path: Path, fake: Cluster, allow: "list[str]", left: bool
) -> None:
    """Its record is ended, and so only the annotation can tell of the cordon."""
    fake.add(pod("web", labels={"app": "web"}))
    fake.budgets = [budget("web", "web")]
    begun_and_killed(tmp_path, lambda: fake.cordon() == OURS, held=True, allow=allow)
    fake.the_node().update(status=node("w1", "Unknown", "NodeStatusUnknown")["status"])
    assert run(tmp_path, NEXT, "recover")["state"] == "done"
    assert unproven(tmp_path) == []
    assert fake.cordon() == OURS
    assert bool(marked(fake).get("held")) == left


DENIED = status(
    403,
    'pods "a" is forbidden: User "kubernetes-admin" cannot create resource "pods/eviction" in API'
    ' group "" in the namespace "n"',
)


@pytest.mark.parametrize(("patience", "state"), [(60, "done"), (0, "failed")])
def test_an_api_server_that_has_just_started_knows_no_rights_yet(
    tmp_path: Path, fake: Cluster, monkeypatch: pytest.MonkeyPatch, patience: int, state: str
) -> None:
    monkeypatch.setattr(eviction, "DENIED_SECONDS", patience)
    fake.add(pod("a"))
    fake.refusals = [DENIED, DENIED]
    answer = run(tmp_path)
    assert answer["state"] == state, answer
    assert unproven(tmp_path) == [], answer
    assert state == "done" or (
        "cannot create resource" in answer["reason"] and fake.cordon() == FREE
    )


@pytest.mark.parametrize(("allow", "state"), [([], "refused"), (["fenced"], "done")])
def test_somebody_cordons_it_between_the_look_and_ours(
    tmp_path: Path, fake: Cluster, allow: "list[str]", state: str
) -> None:
    def meanwhile(method: str, path: str) -> None:
        if "poddisruptionbudgets" in path:
            fake.the_node()["spec"]["unschedulable"] = True

    fake.add(pod("a"))
    fake.before = meanwhile
    answer = run(tmp_path, allow=allow)
    assert answer["state"] == state, answer
    assert fake.cordon() == THEIRS, answer
    assert (fake.left() == {"a"}) is (state == "refused"), answer
    assert state == "done" or "another client cordoned w1 at this moment" in answer["reason"]


def test_somebody_writes_the_node_at_the_same_moment(tmp_path: Path, fake: Cluster) -> None:
    times = []

    def meanwhile(method: str, path: str) -> None:
        if method == "PATCH" and len(times) < 2:
            times.append(fake.put(path, fake.the_node()))

    fake.before = meanwhile
    assert run(tmp_path)["state"] == "done"
    assert fake.cordon() == OURS
    assert len(times) == 2


def test_what_came_between_the_two_looks_refuses_it_and_takes_the_cordon_back(
    tmp_path: Path, fake: Cluster
) -> None:
    fake.before = lambda method, path: (
        fake.add(pod("bare", None)) if method == "PATCH" and not fake.cordon()[0] else None
    )
    answer = run(tmp_path)
    assert (answer["state"], answer["changed"]) == ("refused", False), answer
    assert "n/bare" in answer["reason"], answer
    assert fake.cordon() == FREE
    assert unproven(tmp_path) == []


def test_whoever_waits_is_told_how_far_it_is(tmp_path: Path, fake: Cluster) -> None:
    fake.add(*[pod(f"p{number:d}") for number in range(12)])
    fake.ends = 6000
    asked, answer, told = 0, {"state": step_kinds.RUNNING}, []
    while answer["state"] == step_kinds.RUNNING and asked < 400:
        answer, asked = (
            step_executor.run(dict(params(tmp_path, timeout=600), patience=0.4)),
            asked + 1,
        )
        told.append(answer["reason"])
        if "w1: 12 pods left" in told and asked > 2:
            fake.let_go()
    assert answer["state"] == "done", told
    assert "w1: 12 pods left" in told, told
    assert asked > 2, told
    assert len(fake.evicted()) == 12


def test_whoever_waits_is_told_why_it_stays_open(
    tmp_path: Path, fake: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left_alone(dummy: Any) -> Any:
        until((tmp_path / "asked-twice").exists)
        raise ChangeError("the API is away", changed=True)

    monkeypatch.setattr(eviction.Drain, "run", left_alone)
    asked, answer = 0, {"state": step_kinds.RUNNING}
    while answer["state"] == step_kinds.RUNNING and asked < 400:
        answer, asked = step_executor.run(dict(params(tmp_path), patience=0.3)), asked + 1
        if asked == 2:
            (tmp_path / "asked-twice").touch()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)  # as init does on a node
    assert (answer["state"], answer["reason"]) == ("failed", "the API is away")
    assert asked > 1
    assert len(unproven(tmp_path)) == 1
