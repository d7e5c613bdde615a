# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What KM202 says of the order in which nodes joined.

Replayed where it is known, and what is not known is said.
"""

from __future__ import annotations

import pytest

from tests.unit.support.facts import facts

SCHEDULER = "kube-scheduler"
ZONE = "failure-domain.beta.kubernetes.io/zone"
ZONES = {"m1": "200002", "m2": "200002", "m3": "200002", "w1": "200004"}
EARLY, LATE = "2027-01-15T05:00:00Z", "2027-01-15T07:10:00Z"  # the scheduler started at 07:00
LOG = [
    *(["add", name, f"/{ZONES[name]}"] for name in ("m1", "m2", "m3")),
    ["round", "", ""],
    ["add", "w1", "/200004"],
    ["round", "", ""],
]


@pytest.fixture
def struck(world):
    """Three masters in one zone, a worker that joined later in another, v1.18.4.

    The DaemonSet's pod for m3 waits.
    """
    for name in ("m1", "m2", "m3"):
        next(
            one
            for one in world.data(name, "component_http")["components"]
            if one["component"] == SCHEDULER
        )["metrics"]["git_version"] = "v1.18.4"
    for item in world.data("api", "nodes")["items"]:
        item.update(
            labels={ZONE: ZONES[item["name"]]}, created=LATE if item["name"] == "w1" else EARLY
        )
    waiting(world, "m3")
    return world


def waiting(
    world, target, message="0/4 nodes are available: 3 node(s) didn't match node selector."
):
    world.data("api", "pending")["items"].append(
        {
            "namespace": "kube-system",
            "names": [f"agent-{target}"],
            "pods": 1,
            "since": "2027-01-15T07:30:00Z",
            "owner": "DaemonSet/agent",
            "scheduler": "default-scheduler",
            "message": message,
            "tolerations": [{"operator": "Exists"}],
            "targets": [[f"agent-{target}", target]],
        }
    )


def node(world, name):
    return next(item for item in world.data("api", "nodes")["items"] if item["name"] == name)


def logged(world, events, **more):
    world.documents["m1"]["collectors"]["scheduler_log"] = {
        "status": "ok",
        "data": {
            "logs": [
                {
                    "pid": 100,
                    "level": 2,
                    "path": "/var/log/pods/x/kube-scheduler/0.log",
                    "whole": True,
                    "events": events,
                    **more,
                }
            ]
        },
    }


def told(world):
    (found,) = world.judge(faults=frozenset(("KM202",))).findings
    return found, next(
        proof.text
        for proof in found.evidence
        if proof.text
        and ("replay" in proof.text or "order" in proof.text or "not known" in proof.text)
    )


def test_who_joined_later_is_replayed(struck):
    facts(
        told(struck)[1],
        "3 nodes",
        "w1 (200004)",
        "lacks 1 of 200002",
        "m3",
        "not known",
    )


def test_its_log_tells_it_all(struck):
    logged(struck, LOG)
    found, text = told(struck)
    facts(text, "log", "lacks m3", "w1 twice")
    assert "replay" not in found.summary


def test_a_node_that_no_pod_names(struck):
    """Two workers of zones of their own push out two masters, and a pod tells of one of them."""
    extra = dict(
        node(struck, "w1"), name="w2", labels={ZONE: "200006"}, created="2027-01-15T07:20:00Z"
    )
    struck.data("api", "nodes")["items"].append(extra)
    struck.data("api", "pending")["items"][0]["message"] = (
        "0/5 nodes are available: 3 node(s) didn't match node selector."
    )
    logged(struck, [*LOG[:4], LOG[4], ["add", "w2", "/200006"], ["round", "", ""]])
    found, text = told(struck)
    assert "its list lacks m2, m3" in text
    assert "; by the replay of its log also m2, which no pod names" in found.summary
    logged(struck, [])
    # whether a pod was scheduled between the two
    assert "depends on what is not known" in told(struck)[1]


def test_what_pods_prove_rules_out_the_rest(struck):
    """Had a pod been scheduled between the two workers, no node would be lost now."""
    struck.data("api", "nodes")["items"].append(
        dict(node(struck, "w1"), name="w2", created="2027-01-15T07:20:00Z")
    )
    struck.data("api", "pending")["items"][0]["message"] = (
        "0/5 nodes are available: 4 node(s) didn't match node selector."
    )
    assert (
        "then joined w1 (200004), w2 (200004); replayed, its list lacks 1 of 200002, which is m3"
        in told(struck)[1]
    )


@pytest.mark.parametrize(
    "more", [{"whole": False}, {"events": LOG[1:]}, {"pid": 7}, {"events": None}]
)
def test_a_log_that_does_not_tell_all_is_no_log(struck, more):
    logged(struck, LOG)
    struck.documents["m1"]["collectors"]["scheduler_log"]["data"]["logs"][0].update(more)
    assert "were there when it started" in told(struck)[1]


def test_a_log_that_says_otherwise_than_the_pods(struck):
    waiting(struck, "m1", "0/4 nodes are available: 2 node(s) didn't match node selector.")
    logged(struck, LOG)
    findings = struck.judge(faults=frozenset(("KM202",))).findings
    proofs = [proof for finding in findings for proof in finding.evidence]
    texts = [proof.text for proof in proofs if proof.kind == "log"]
    assert len(texts) == 2
    assert all("the pods show more than that" in text for text in texts)


@pytest.mark.parametrize(
    ("created", "text"),
    [
        ({"w1": EARLY}, "no node that is there joined since the scheduler started"),
        ({"w1": None}, "is not known, so that nothing can be replayed"),
        ({"w1": "2027-01-15T07:00:10Z"}, "joined within 30 s of the scheduler's start"),
        ({"m2": LATE}, "several in one second"),
        (
            {
                "m1": "2027-01-15T07:05:00Z",
                "m2": "2027-01-15T07:06:00Z",
                "m3": "2027-01-15T07:07:00Z",
                "w1": EARLY,
            },
            "that alone does not lose m3",
        ),
    ],
)
def test_what_is_not_known_is_said(struck, created, text):
    for name, at in created.items():
        node(struck, name)["created"] = at
    assert text in told(struck)[1]


def test_nobody_knows_who_leads(struck):
    for server in struck.data("api", "locks")["servers"]:
        for one in server["objects"]:
            one["holder"] = ""
    facts(told(struck)[1], "leads", "not known")


# Where no pod says which node is lost


def ordinary(struck, **more):
    """Make it a pod that can have several nodes, which all lack something but the lost one."""
    struck.data("api", "pending")["items"][0].update(
        names=["web-x"],
        owner="ReplicaSet/web",
        targets=[],
        message="0/4 nodes are available: 3 Insufficient cpu.",
        **more,
    )


def noted(struck):
    result = struck.judge(faults=frozenset(("KM202",)))
    assert not result.findings  # no repair rests on the text of a log
    return result.verdicts[0].verdict, result.verdicts[0].note


NOTHING = "is not known here"


def test_the_log_names_the_node_that_no_pod_names(struck):
    ordinary(struck)
    verdict, note = noted(struck)
    assert verdict == "unknown"
    facts(note, "kube-system/web-x", "Pending", "3 nodes of 4", NOTHING)
    logged(struck, LOG)
    verdict, note = noted(struck)
    assert verdict == "unknown"
    facts(note, "kube-system/web-x", "Pending", "3 nodes of 4", "log", "lacks m3")


@pytest.mark.parametrize(
    "more",
    [
        # two are lost, and the log tells of one
        {"message": "0/4 nodes are available: 2 Insufficient cpu."},
        # of another number of nodes than there are now
        {"message": "0/5 nodes are available: 4 Insufficient cpu."},
        {"since": "2027-01-15T07:59:30Z"},
        {"since": None},
    ],
)
def test_what_the_log_does_not_tell(struck, more):
    logged(struck, LOG)
    ordinary(struck)
    struck.data("api", "pending")["items"][0].update(more)
    assert noted(struck)[0] == "unknown"
    assert noted(struck)[1].endswith(NOTHING)


def test_a_log_after_which_nobody_is_lost_tells_nothing(struck):
    ordinary(struck)
    logged(
        struck, [["add", name, f"/{zone}"] for name, zone in ZONES.items()] + [["round", "", ""]]
    )
    assert noted(struck)[1].endswith(NOTHING)


def test_a_silent_master_may_lead_with_another_list(struck):
    ordinary(struck)
    logged(struck, LOG)
    struck.silence("m2")
    assert noted(struck)[0] == "unknown"
    assert noted(struck)[1].endswith(NOTHING)
