# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The space of etcd freed: which steps in which order, when not, and what the plan says of it."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    REMEDIES,
    etcd_space,
)
from tests.unit.support import etcd_evidence
from tests.unit.support.election_plan import cordon
from tests.unit.support.etcd_evidence import metrics, resize, settle

CODES = ("KM140", "KM141", "KM143")
MASTERS = ("m1", "m2", "m3")
ALARM = [{"member_id": "2", "alarm": "NOSPACE"}]


def planned(world, max_risk=2, allow=(), codes=CODES, remedies=etcd_space.REMEDIES):
    documents = copy.deepcopy(world.documents)
    result, found = fault_engine.evaluate_clusters(
        [*documents.values(), world.api], frozenset(codes)
    )
    return plan.plan(
        result.findings,
        found,
        documents.__getitem__,
        plan.Consent(max_risk, frozenset(allow)),
        remedies,
        fault_engine.KEY_DIGITS,
    )


@pytest.fixture
def full(world):
    """Three members at their quota, of which one raised the alarm; the first one leads."""
    settle(world)
    for name in MASTERS:
        resize(world, name, 2049, 19)
        world.data(name, "etcd")["alarms"] = ALARM
    metrics(world, "m1")["is_leader"] = 1.0
    return world


def refusal(world, **more):
    """Return the one reason that blocks every step."""
    steps = planned(world, **more)
    assert steps
    assert not any(step.allowed for step in steps)
    (text,) = {step.blocked_by for step in steps}
    assert text
    return text


def test_members_follow_one_another_and_the_leader_is_last(full):
    steps = planned(full)
    assert [(step.remedy, step.host, step.risk, step.allowed) for step in steps] == [
        ("etcd_snapshot", "m2", 2, True),
        ("etcd_compact", "m2", 2, True),
        ("etcd_defragment", "m2", 2, True),
        ("etcd_defragment", "m3", 2, True),
        ("etcd_defragment", "m1", 2, True),
        ("etcd_alarm", "m2", 2, True),
    ]
    assert {step.code for step in steps} == {"KM140"}
    assert all(step.change["members"] == ["1", "2", "3"] for step in steps)
    assert [step.change["member_id"] for step in steps] == ["2", "2", "2", "3", "1", "2"]
    assert all(step.change["alarm"] for step in steps[:5])
    assert steps[5].change["quotas"] == dict.fromkeys(("1", "2", "3"), 2048 * etcd_evidence.MIB)
    assert steps[5].change["prefix"] == "/registry"
    assert all("cannot be undone" in step.note for step in steps[:2])
    assert "Secrets" in steps[0].note
    assert "leadership" in steps[4].diff
    assert "leadership" not in steps[3].diff


def test_a_write_that_is_refused_is_no_reason_against_it(full):
    """KM115 blocks what needs a write; these steps make writes possible."""
    steps = planned(full, codes=(*CODES, "KM115"))
    assert steps
    assert all(step.allowed for step in steps)


def test_without_consent_the_risk_is_said(full):
    assert "-e kubemend_max_risk=2" in refusal(full, max_risk=1)


def test_only_members_that_are_full_are_made_smaller(full):
    resize(full, "m1", 20, 19)
    resize(full, "m3", 20, 19)
    assert [(step.remedy, step.host) for step in planned(full)] == [
        ("etcd_snapshot", "m2"),
        ("etcd_compact", "m2"),
        ("etcd_defragment", "m2"),
        ("etcd_alarm", "m2"),
    ]


def test_an_alarm_over_databases_that_are_small_is_only_taken_back(full):
    for name in MASTERS:
        resize(full, name, 20, 19)
    (step,) = planned(full)
    assert (step.remedy, step.allowed) == ("etcd_alarm", True)


def without_client(world):
    """Let only the address of metrics answer, as with certificates that have expired."""
    for name in MASTERS:
        world.data(name, "etcd").update(
            status=None,
            alarms=None,
            members=[],
            cluster_id=None,
            health={"status": 200, "body": '{"health":"false","reason":"ALARM NOSPACE"}'},
        )


def test_metrics_alone_are_enough_for_the_order(full):
    without_client(full)
    steps = planned(full)
    assert [step.host for step in steps if step.remedy == "etcd_defragment"] == ["m2", "m3", "m1"]
    assert all(step.allowed for step in steps)
    assert all(step.change["members"] == [] for step in steps)


def test_a_certificate_that_has_expired_comes_first(full, monkeypatch):
    without_client(full)
    monkeypatch.setattr(
        etcd_space, "_expired", lambda _scene, host: ("KM120",) if host.host == "m3" else ()
    )
    steps = planned(full)
    (blocked,) = [step for step in steps if not step.allowed]
    assert (blocked.host, blocked.remedy) == ("m3", "etcd_defragment")
    assert "KM120" in (blocked.blocked_by or "")


def gone(world):
    etcd_evidence.end(world, "3")


def learner(world):
    for name in MASTERS:
        world.data(name, "etcd")["members"][2]["learner"] = True


def unstarted(world):
    for name in MASTERS:
        world.data(name, "etcd")["members"].append(
            {"id": "9", "name": "", "peer_urls": ["https://10.9.9.9:2380"], "client_urls": []}
        )


def elsewhere(world):
    for name in MASTERS:
        metrics(world, name)["peers"].append({"id": "9", "active": True})
        world.data(name, "etcd")["members"].append(
            {"id": "9", "name": "m9", "peer_urls": ["https://10.9.9.9:2380"], "client_urls": []}
        )


def corrupt(world):
    for name in MASTERS:
        world.data(name, "etcd")["alarms"] = [*ALARM, {"member_id": "3", "alarm": "CORRUPT"}]


def rancher(world):
    for name in MASTERS:
        world.data(name, "etcd")["local"]["settings"]["config-file"] = (
            "/var/lib/rancher/rke2/server/db/etcd/config"
        )


def embedded(world):
    for name in MASTERS:
        world.data(name, "etcd")["local"]["embedded"] = True


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (gone, ("KM145", "m3")),
        (learner, ("learner", "KM148")),
        (unstarted, ("never started", "KM147")),
        (elsewhere, ("m9", "inventory")),
        (corrupt, ("CORRUPT", "KM142")),
        (rancher, ("RKE2", "/etc/rancher/rke2/config.yaml", "snapshot save")),
        (embedded, ("k3s", "/etc/rancher/k3s/config.yaml", "snapshot save")),
        (lambda world: metrics(world, "m2").update(version="3.5.4"), ("3.5.6", "upgrade")),
        (lambda world: metrics(world, "m2").update(version="3.5.26"), ("3.5 and 3.6",)),
        (lambda world: cordon(world, "m2"), ("cordoned m2", "kubemend_allow=fenced")),
    ],
)
def test_each_obstacle_blocks_all_of_it(full, trouble, words):
    trouble(full)
    text = refusal(full)
    assert [word for word in words if word not in text] == [], text


def probed(world, host, path="/health"):
    """Give the etcd of a master the liveness probe of a release of kubeadm."""
    world.manifest(host, "etcd", f"--name={host}")
    (record,) = [item for item in world.data(host, "manifests")["files"] if "etcd" in item["name"]]
    probe = f"    livenessProbe: {{httpGet: {{host: 127.0.0.1, path: {path}, port: 2381}}}}\n"
    record["text"] += probe
    record["size"] = len(record["text"])


@pytest.mark.parametrize(
    ("path", "is_allowed"),
    [
        ("/health", True),
        ("/health?serializable=true", True),
        ("/health?exclude=NOSPACE&serializable=true", False),
        ("/livez", False),
    ],
)
def test_a_member_that_the_kubelet_restarts_for_its_alarm_is_waited_for(full, path, is_allowed):
    gone(full)
    probed(full, "m3", path)
    steps = planned(full)
    assert {step.allowed for step in steps} == {is_allowed}
    assert "etcd_defragment" in {step.remedy for step in steps if step.host == "m3"}
    assert all((step.change or {})["waits"] for step in steps)


def test_a_member_that_no_kubelet_starts_again_is_not_waited_for(full):
    gone(full)
    probed(full, "m3")
    full.data("m3", "kubelet")["process"] = None
    assert "KM145" in refusal(full)


def test_a_member_on_a_host_that_does_not_answer_is_not_waited_for(full):
    gone(full)
    probed(full, "m3")
    full.silence("m3")
    assert "m3" in refusal(full)


def test_a_member_that_runs_for_long_apart_from_the_others_is_not_waited_for(full):
    probed(full, "m3")
    etcd_evidence.disconnect(full, "3")
    error = "https://127.0.0.1:2379: refused"
    full.data("m3", "etcd").update(status=None, endpoint=None, error=error)
    local = full.data("m3", "etcd")["local"]
    local.update(metrics=None, uptime_s=3600.0)
    assert "KM145" in refusal(full)
    local["uptime_s"] = 20.0
    assert all(step.allowed for step in planned(full))


def test_members_that_the_kubelet_restarts_may_be_too_few_for_a_quorum(full):
    for id_ in ("2", "3"):
        etcd_evidence.end(full, id_)
        probed(full, f"m{id_}")
    full.data("m1", "etcd")["status"]["leader"] = "0"
    metrics(full, "m1").update(has_leader=0.0, is_leader=0.0)
    assert all(step.allowed for step in planned(full, allow=["api_down"]))
    full.data("m3", "kubelet")["process"] = None
    assert "KM146" in refusal(full, allow=["api_down"])


def test_while_no_api_server_answers_a_word_is_needed(full):
    full.api["collectors"] = {}
    full.api["status"] = "error"
    text = refusal(full)
    assert "api_down" in text
    assert all(step.allowed for step in planned(full, allow=["api_down"]))


@pytest.mark.parametrize("count", [1, 2])
def test_a_quorum_that_one_member_breaks_needs_a_word(full, count):
    for name in MASTERS:
        full.data(name, "etcd")["members"] = full.data(name, "etcd")["members"][:count]
    text = refusal(full)
    assert "single_control_plane" in text
    steps = planned(full, allow=["single_control_plane"])
    assert all(step.allowed for step in steps)


def test_an_etcd_on_no_host_of_the_run_is_left_to_its_own_hosts(full):
    for name in MASTERS:
        full.data(name, "etcd")["local"] = None
        for row in full.data(name, "etcd")["members"]:
            row.update(
                name="e" + row["id"],
                peer_urls=["https://10.9.9.9:2380"],
                client_urls=["https://10.9.9.9:2379"],
            )
        full.data(name, "etcd")["status"]["endpoint"] = "https://10.9.9.9:2379"
    assert "elsewhere" in refusal(full)


@pytest.fixture
def near(world):
    """One member near its quota, mostly of empty pages, and no alarm."""
    settle(world)
    resize(world, "m3", 1700, 200)
    return world


def test_an_etcd_that_serves_is_defragmented_with_its_word_alone(near):
    text = refusal(near, max_risk=3, codes=("KM141",))
    assert "etcd_defragment" in text
    steps = planned(near, 3, ["etcd_defragment"], ("KM141",))
    assert [(step.remedy, step.host, step.risk, step.allowed) for step in steps] == [
        ("etcd_snapshot", "m3", 3, True),
        ("etcd_defragment", "m3", 3, True),
    ]
    assert not any(step.change.get("alarm") for step in steps)


def test_without_an_alarm_a_member_that_is_down_is_not_waited_for(near):
    etcd_evidence.end(near, "2")
    probed(near, "m2")
    assert "KM145" in refusal(near, max_risk=3, allow=["etcd_defragment"])


def test_the_word_is_no_consent_to_the_risk(near):
    text = refusal(near, max_risk=2, allow=["etcd_defragment"], codes=("KM141",))
    assert "kubemend_max_risk=3" in text


def test_one_defragmentation_answers_both_faults(near):
    steps = planned(near, 3, ["etcd_defragment"])
    assert [step.remedy for step in steps] == ["etcd_snapshot", "etcd_defragment"]


def test_a_database_that_is_really_full_is_not_defragmented(near):
    resize(near, "m3", 1700, 1690)
    assert planned(near, 3, ["etcd_defragment"]) == ()
    resize(near, "m3", 1700, None)
    assert planned(near, 3, ["etcd_defragment"]) == ()


def test_every_remedy_is_registered():
    assert {code: REMEDIES[code] for code in CODES} == etcd_space.REMEDIES
