# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expired certificates and an etcd at its quota at once: one plan, in the order that works."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import contract
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    certificates,
    etcd_space,
)
from tests.unit.plugins.plugin_utils.planning.remedies.test_certificates import (
    LOAD,
    RENEW,
    expire,
)
from tests.unit.support import etcd_evidence, pki

MASTERS = ("m1", "m2", "m3")
REMEDIES = {**certificates.REMEDIES, **etcd_space.REMEDIES}
ALARM = '{"health":"false","reason":"ALARM NOSPACE"}'
FREE = ("etcd_snapshot", "etcd_compact", *["etcd_defragment"] * 3, "etcd_alarm")


@pytest.fixture
def parted(world: Any) -> pki.Pki:
    """Three full members, each of which only its address of metrics can be asked of."""
    made = pki.Pki(world.data("m1", "system")["clock"])
    pki.certify(world, made)
    etcd_evidence.settle(world)
    for id_ in etcd_evidence.MEMBERS:
        name = f"m{id_}"
        etcd_evidence.resize(world, name, 2049, 19)
        etcd_evidence.disconnect(world, id_)
        etcd_evidence.metrics(world, name)["has_leader"] = 0.0
        health = {"status": 503, "body": ALARM}
        world.data(name, "etcd").update(
            status=None, alarms=None, members=[], cluster_id=None, health=health
        )
    return made


def planned(world: Any, allow: Iterable[str] = ()) -> tuple[plan.Step, ...]:
    documents = copy.deepcopy(world.documents)
    result, found = fault_engine.evaluate_clusters(
        [*documents.values(), world.api], frozenset(REMEDIES)
    )
    return plan.plan(
        result.findings,
        found,
        lambda host: contract.checked(documents[host]),
        plan.Consent(2, frozenset(allow)),
        REMEDIES,
        fault_engine.KEY_DIGITS,
    )


def test_etcd_is_freed_between_the_renewals_and_the_restarts(world: Any, parted: pki.Pki) -> None:
    for host in MASTERS:
        expire(world, parted, host, "apiserver", "etcd/peer", "etcd/server")
    steps = planned(world)
    assert [step.remedy for step in steps] == [*[RENEW] * 3, *FREE, *[LOAD] * 3]
    assert all(step.allowed for step in steps), [step.blocked_by for step in steps]
    assert [step.id[:2] for step in steps] == [f"{number:02}" for number in range(1, 13)]
    freeing = steps[3:9]
    assert all((step.change or {})["waits"] for step in freeing)
    assert [step.remedy for step in freeing if (step.change or {}).get("loads_follow")] == [
        "etcd_alarm"
    ]


def test_members_that_no_certificate_parts_need_their_quorum_first(
    world: Any, parted: pki.Pki
) -> None:
    """Only the client of etcd has expired: what keeps the members apart is something else."""
    for host in MASTERS:
        expire(world, parted, host, "apiserver-etcd-client")
        world.data(host, "etcd")["health"]["body"] = ALARM[:-2] + '; NO LEADER"}'
    steps = [step for step in planned(world) if step.code == "KM140"]
    assert not any(step.allowed for step in steps)
    assert any("quorum" in (step.blocked_by or "") for step in steps), steps


def test_leases_are_proven_by_etcd_where_nothing_is_loaded_later(
    world: Any, parted: pki.Pki
) -> None:
    for host in MASTERS:
        expire(world, parted, host, "etcd/peer", "etcd/server")
    steps = planned(world)
    assert [step.remedy for step in steps] == [*[RENEW] * 3, *FREE]
    assert not any((step.change or {}).get("loads_follow") for step in steps)


def step(remedy: str, **more: Any) -> plan.Step:
    return plan.Step("x", "m1", "KM140", remedy, 2, "t", **{"cluster": "c", **more})


@pytest.mark.parametrize(
    ("alarm_blocked", "load_blocked"),
    [(None, None), (None, "no"), ("no", None), ("no", "no")],
)
def test_nothing_is_loaded_while_etcd_stays_full_and_leases_are_proven_once(
    monkeypatch: Any, alarm_blocked: str | None, load_blocked: str | None
) -> None:
    rows = [(step("etcd_alarm"), alarm_blocked), (step(LOAD), load_blocked)]
    monkeypatch.setattr(plan, "_rows", lambda _groups: plan._loaded_last(rows))
    alarm, load = plan.plan([], [], dict, plan.Consent(2), {}, 4)
    assert (alarm.allowed, load.allowed) == (not alarm_blocked, not (alarm_blocked or load_blocked))
    assert bool((alarm.change or {}).get("loads_follow")) is load.allowed
    assert ("KM140" in (load.blocked_by or "")) is (load_blocked is None and bool(alarm_blocked))


@pytest.mark.parametrize(("of_load", "is_loaded"), [("c", False), ("d", True)])
def test_a_full_etcd_keeps_no_other_cluster_from_loading(
    monkeypatch: Any, of_load: str, is_loaded: bool
) -> None:
    rows = [(step("etcd_alarm"), "no"), (step(LOAD, cluster=of_load), None)]
    monkeypatch.setattr(plan, "_rows", lambda _groups: plan._loaded_last(rows))
    _alarm, load = plan.plan([], [], dict, plan.Consent(2), {}, 4)
    assert load.allowed is is_loaded


@pytest.mark.parametrize(("of_load", "is_left"), [("c", True), ("d", False)])
def test_the_loads_of_another_cluster_prove_no_leases(
    monkeypatch: Any, of_load: str, is_left: bool
) -> None:
    rows = [(step("etcd_alarm"), None), (step(LOAD), "no"), (step(LOAD, cluster=of_load), None)]
    monkeypatch.setattr(plan, "_rows", lambda _groups: plan._loaded_last(rows))
    alarm, *_loads = plan.plan([], [], dict, plan.Consent(2), {}, 4)
    assert alarm.allowed
    assert bool((alarm.change or {}).get("loads_follow")) is is_left
