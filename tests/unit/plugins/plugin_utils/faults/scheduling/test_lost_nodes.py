# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Schedulers that lose nodes: KM201 before it strikes, KM202 when it has. Tables."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.scheduling import (
    lost_nodes,
)
from tests.unit.support.facts import facts

CODES = frozenset(("KM201", "KM202"))
BETA, STABLE = "failure-domain.beta.kubernetes.io/", "topology.kubernetes.io/"
SHORT = "0/4 nodes are available: 3 node(s) didn't match node selector."
LONG_AGO, NOW = "2027-01-15T07:30:00Z", "2027-01-15T08:00:00Z"
MASTER = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}


def judged(world, *codes):
    result = world.judge(faults=frozenset(codes) or CODES)
    return {item.code: item.verdict for item in result.verdicts}, list(result.findings)


def zoned(world, **zones):
    """Give every node labels: of the beta zone that is named for it, none else."""
    for item in world.data("api", "nodes")["items"]:
        zone = zones.get(item["name"])
        item["labels"] = {BETA + "region": "sh", BETA + "zone": zone} if zone else {}


def versions(world, *told, host=None):
    """Set the schedulers' versions, one for each master or one for all."""
    masters = [name for name in world.documents if name.startswith("m")]
    if len(told) == 1:
        told *= len(masters)
    for name, version in zip(masters, told, strict=False):
        next(
            one
            for one in world.data(name, "component_http")["components"]
            if one["component"] == "kube-scheduler"
        )["metrics"]["git_version"] = version


def image(world, version):
    """Make the masters as 1.18 is.

    Its scheduler does not tell its version, and the manifest's image does.
    """
    versions(world, None)
    for name in ("m1", "m2", "m3"):
        for record in world.data(name, "manifests")["files"]:
            if record["name"] == "kube-scheduler.yaml":
                record["text"] = record["text"].replace("v1.30.1", version)


@pytest.fixture
def incident(world):
    """Incident B: three masters in one zone, a worker in another, v1.18.4.

    The DaemonSet's pod for m3 waits.
    """
    versions(world, "v1.18.4")
    zoned(world, m1="200002", m2="200002", m3="200002", w1="200004")
    return world


def waiting(world, message=SHORT, target="m3", **more):
    entry = {
        "namespace": "kube-system",
        "names": ["agent-x"],
        "pods": 1,
        "since": LONG_AGO,
        "owner": "DaemonSet/agent",
        "scheduler": "default-scheduler",
        "message": message,
        "tolerations": [{"operator": "Exists"}],
        "targets": [["agent-x", target]] if target else [],
        **more,
    }
    world.data("api", "pending")["items"].append(entry)
    return entry


def test_a_healthy_cluster(world):
    assert judged(world) == (dict.fromkeys(CODES, "clear"), [])
    zoned(world, m1="a", m2="b")
    assert judged(world) == (dict.fromkeys(CODES, "clear"), [])


def test_no_cluster(world):
    world.leave_kubernetes()
    assert judged(world)[0] == dict.fromkeys(CODES, "not_applicable")


# KM201


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("v1.16.15", "clear"),
        ("v1.17.4", "clear"),
        ("v1.18.0", "present"),
        ("v1.18.6", "present"),
        ("v1.18.8", "clear"),
        ("v1.19.0-rc.1", "present"),
        ("v1.19.0", "clear"),
        ("v1.18.4-tke.5", "unknown"),
        ("v1.18.6-gke.1", "unknown"),
        ("v1.18.9-eks-1", "clear"),
        ("v1.30.4+k3s1", "clear"),
        ("", "unknown"),
        ("latest", "unknown"),
    ],
)
@pytest.mark.parametrize("how", [versions, image])
def test_versions(incident, how, version, verdict):
    how(incident, version or ("sha-1" if how is image else None))
    if (how is versions and not version) or (how is versions and version == "latest"):
        image(incident, "latest")
    verdicts, findings = judged(incident, "KM201")
    assert verdicts == {"KM201": verdict}
    assert len(findings) == (verdict == "present")


def test_the_risk_is_said_with_its_zones_and_its_cure(incident):
    _verdicts, (found,) = judged(incident, "KM201")
    assert found.summary.startswith("kube-scheduler v1.18.4 on m1, m2, m3 loses nodes")
    assert "sh/200002 (3), sh/200004 (1)" in found.summary
    assert "v1.18.8" in found.remedy
    assert (found.risk, found.severity, found.command) == (
        0,
        "warning",
        None,
    )
    assert [proof.kind for proof in found.evidence] == ["process"] * 3 + ["api"]


@pytest.mark.parametrize("zones", [{}, dict.fromkeys(("m1", "m2", "m3", "w1"), "a")])
def test_one_zone_loses_nothing(incident, zones):
    zoned(incident, **zones)
    waiting(incident)
    incident.silence("m2")
    assert judged(incident) == (dict.fromkeys(CODES, "clear"), [])


def test_nodes_without_labels_are_a_zone_of_their_own(incident):
    zoned(incident, w1="200004")
    assert judged(incident, "KM201")[0] == {"KM201": "present"}


def test_a_build_of_a_vendor_is_said(incident):
    versions(incident, "v1.18.4-tke.5")
    (verdict,) = incident.judge(faults=frozenset({"KM201"})).verdicts
    assert verdict.verdict == "unknown"
    assert "v1.18.4-tke.5" in verdict.note
    assert {item.host for item in verdict.missing} == {"m1", "m2", "m3"}


def test_one_master_of_three_is_enough_for_the_risk_and_a_silent_one_for_doubt(incident):
    versions(incident, "v1.18.8", "v1.18.4", "v1.18.8")
    assert judged(incident, "KM201")[0] == {"KM201": "present"}
    versions(incident, "v1.18.8")
    incident.silence("m2")
    assert judged(incident, "KM201")[0] == {"KM201": "unknown"}


def test_the_api_is_down(incident):
    incident.api.update(status="error", reason="connection refused", collectors={})
    assert judged(incident)[0] == dict.fromkeys(CODES, "unknown")
    versions(incident, "v1.36.3")
    assert judged(incident)[0] == dict.fromkeys(CODES, "clear")


def test_evidence_without_labels(incident):
    for item in incident.data("api", "nodes")["items"]:
        del item["labels"]
    result = incident.judge(faults=CODES)
    assert {item.code for item in result.not_judged} == CODES
    assert not result.findings


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        ({}, ""),
        ({BETA + "zone": "a"}, "/a"),
        ({BETA + "region": "r", BETA + "zone": "a", STABLE + "zone": "b"}, "r/a"),
        ({STABLE + "zone": "b"}, "/b"),
        ({BETA + "zone": "", STABLE + "zone": "b"}, ""),
        ({BETA + "region": "", BETA + "zone": "", STABLE + "region": "x"}, ""),
    ],
)
def test_the_zone_as_the_scheduler_reads_it(labels, key):
    assert lost_nodes.zone_key(labels) == key


def test_a_cluster_without_a_scheduler_of_its_own(world):
    """As k3s is: its scheduler is no process of that name."""
    for name in ("m1", "m2", "m3"):
        running = world.data(name, "instances")["processes"]
        running[:] = [one for one in running if one["component"] != "kube-scheduler"]
    assert judged(world)[0] == dict.fromkeys(CODES, "not_applicable")


# KM202


def test_the_incident_names_the_node(incident):
    assert judged(incident, "KM202") == ({"KM202": "clear"}, [])
    waiting(incident)
    verdicts, findings = judged(incident)
    assert verdicts == dict.fromkeys(CODES, "present")
    found = next(one for one in findings if one.code == "KM202")
    assert (found.node, found.host, found.severity, found.because) == (
        "m3",
        "m3",
        "critical",
        ("KM201",),
    )
    assert found.node == "m3"
    facts(found.summary, "this node", "kube-system/agent-x", "Pending", "3 nodes of 4")
    assert "v1.18.8" in found.remedy
    assert found.evidence[0].text == SHORT


def test_several_pods_of_one_node_and_several_nodes(incident):
    waiting(incident)
    waiting(incident, names=["log-y"], owner="DaemonSet/log", targets=[["log-y", "m3"]])
    waiting(
        incident,
        "0/4 nodes are available: 2 node(s) didn't match node selector.",
        names=["net-z"],
        targets=[["net-z", "m2"]],
    )
    _verdicts, findings = judged(incident, "KM202")
    assert [(one.node, "log-y" in one.summary) for one in findings] == [("m2", False), ("m3", True)]


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        # everybody is counted
        (
            {
                "message": (
                    "0/4 nodes are available: 3 node(s) didn't match node selector, 1 Insufficient"
                    " cpu."
                )
            },
            "clear",
        ),
        # it may be the target's
        (
            {
                "message": (
                    "0/4 nodes are available: 2 node(s) didn't match node selector, 1 Insufficient"
                    " cpu."
                )
            },
            "unknown",
        ),
        (
            {
                "message": (
                    "0/4 nodes are available: 2 node(s) didn't match node selector, 1 node(s) were"
                    " unschedulable."
                )
            },
            "present",
        ),
        (
            {
                "message": (
                    "0/4 nodes are available: 2 node(s) didn't match node selector, 1 node(s) had"
                    " taint {a: b}, that the pod didn't tolerate."
                )
            },
            "present",
        ),
        # of another number of nodes than there are now
        ({"message": "0/5 nodes are available: 3 node(s) didn't match node selector."}, "unknown"),
        ({"message": "0/4 nodes are available: ."}, "unknown"),
        ({"message": SHORT[:-5]}, "clear"),
        ({"message": ""}, "clear"),
        ({"since": NOW}, "unknown"),
        ({"since": None}, "unknown"),
        ({"tolerations": []}, "unknown"),
        ({"tolerations": None}, "unknown"),
        ({"targets": []}, "unknown"),
        ({"targets": [["agent-x", "gone"]]}, "unknown"),
        ({"scheduler": "volcano"}, "clear"),
        ({"unfit": True}, "unknown"),  # it is one of the three, and another node is lost
        ({"targets": [], "off": ["m1", "m2", "w1"]}, "present"),  # its selector leaves m3 only
        ({"targets": [], "off": ["m1", "m2", "w1"], "tolerations": []}, "unknown"),
        ({"targets": [], "off": ["m1", "m2"]}, "unknown"),
        ({"targets": [], "off": []}, "unknown"),
        ({"targets": [], "off": None}, "unknown"),
        ({"targets": [], "off": ["m1", "m2", "m3", "w1"]}, "unknown"),
    ],
)
def test_what_is_no_proof(incident, change, verdict):
    waiting(incident, **change)
    assert judged(incident, "KM202")[0] == {"KM202": verdict}


def test_a_pod_whose_selector_leaves_one_node_names_it(incident):
    waiting(
        incident,
        names=["db-0", "db-1"],
        pods=2,
        owner="StatefulSet/db",
        targets=[],
        off=["m1", "m2", "w1"],
    )
    _verdicts, (found,) = judged(incident, "KM202")
    assert (found.node, found.severity) == (
        "m3",
        "critical",
    )
    assert "kube-system/db-0, kube-system/db-1 stay Pending for it" in found.summary
    (alone,) = [proof.text for proof in found.evidence if (proof.text or "").startswith("Ready, ")]
    facts(alone, "tolerates", "it alone", "selector", "affinity")


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"ready": "False"}, "unknown"),
        ({"taints": [MASTER]}, "present"),
        ({"taints": [{"key": "a", "effect": "Odd"}]}, "unknown"),
    ],
)
def test_the_node_must_be_well_and_take_the_pod(incident, change, verdict):
    waiting(incident)
    next(item for item in incident.data("api", "nodes")["items"] if item["name"] == "m3").update(
        change
    )
    assert judged(incident, "KM202")[0] == {"KM202": verdict}


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        (("v1.18.8",), "clear"),
        (("v1.36.3",), "clear"),
        (("v1.18.4-tke.5",), "unknown"),
        (("v1.18.4", "v1.18.8", "v1.18.4"), "unknown"),
        (("v1.18.4", "v1.18.4-tke.5", "v1.18.4"), "unknown"),
        (("v1.17.9",), "clear"),
    ],
)
def test_a_scheduler_without_the_defect_has_lost_nobody(incident, told, verdict):
    """1.24 to 1.28 count fewer nodes than there are for another reason."""
    versions(incident, *told)
    waiting(incident)
    assert judged(incident, "KM202")[0] == {"KM202": verdict}


@pytest.mark.parametrize("told", [("v1.18.4-tke.3",), ("v1.18.4", "v1.18.8", "v1.18.4")])
def test_where_only_the_version_is_in_doubt_the_node_is_named(incident, told):
    """The operator of a vendor's build may know what it contains."""
    versions(incident, *told)
    waiting(incident)
    (verdict,) = incident.judge(faults=frozenset({"KM202"})).verdicts
    assert verdict.verdict == "unknown"
    assert verdict.note.endswith(
        "kube-system/agent-x stays Pending for m3, and the reasons speak of 3 nodes of 4: a"
        " scheduler with the defect of KM201 has lost m3 then, and one that begins to lead has it"
        " again"
    )
    assert ("whether v1.18.4-tke.3 has the cure" in verdict.note) is ("tke" in told[0])


def test_what_makes_it_unknown_is_said(incident):
    waiting(incident, "0/4 nodes are available: 2 Insufficient cpu.", targets=[], names=["web-x"])
    (verdict,) = incident.judge(faults=frozenset({"KM202"})).verdicts
    assert verdict.verdict == "unknown"
    facts(verdict.note, "kube-system/web-x", "Pending", "2 nodes of 4", "is not known here")
    waiting(incident)
    (verdict,) = incident.judge(faults=frozenset({"KM202"})).verdicts
    assert (verdict.verdict, verdict.note) == ("present", "")


def test_a_silent_master_may_lead_with_another_version(incident):
    waiting(incident)
    incident.silence("m2")
    assert judged(incident, "KM202")[0] == {"KM202": "unknown"}


def test_a_list_that_was_cut_is_never_clear(incident):
    incident.api["collectors"]["pending"]["truncated"] = True
    assert judged(incident, "KM202")[0] == {"KM202": "unknown"}
    waiting(incident)
    assert judged(incident, "KM202")[0] == {"KM202": "present"}
