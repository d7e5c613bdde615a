# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that no scheduler can help.

Held back, with a kubelet that does not take them up, or not created (KM218 to KM223).
"""

from __future__ import annotations

import pytest

from tests.unit.support import known_rows, unmade_pods
from tests.unit.support.facts import facts

CODES = frozenset(("KM218", "KM219", "KM220", "KM221", "KM222", "KM223"))
LONG_AGO, MINUTES_AGO, JUST_NOW = (
    "2027-01-15T07:40:00Z",
    "2027-01-15T07:58:00Z",
    "2027-01-15T07:59:58Z",
)
CAF = {"key": "caf", "value": "log", "effect": "NoSchedule"}


def judged(world, *codes):
    result = world.judge(faults=frozenset(codes) or CODES)
    return {item.code: item.verdict for item in result.verdicts}, list(result.findings)


def node(world, name):
    return next(one for one in world.data("api", "nodes")["items"] if one["name"] == name)


def row(world, collector, rows, /, **more):
    world.data("api", collector)[rows].append(more)


def gated(world, **more):
    row(
        world,
        "pending",
        "gated",
        **{
            "namespace": "shop",
            "owner": None,
            "gates": ["lab/one", "lab/two"],
            "pods": 2,
            "names": ["shop/a"],
            "since": LONG_AGO,
            **more,
        },
    )


def bound(world, name, **more):
    row(
        world,
        "pending",
        "bound",
        **{"node": name, "pods": 1, "names": ["shop/a"], "since": LONG_AGO, **more},
    )


def refused(world, message, **more):
    row(
        world,
        "unmade",
        "refused",
        **{
            "kind": "ReplicaSet",
            "namespace": "shop",
            "name": "cart-1",
            "owner": "Deployment/cart",
            "message": message,
            "first": LONG_AGO,
            "last": JUST_NOW,
            "wanted": 2,
            "has": 0,
            **more,
        },
    )


def daemonset(world, *nodes, **more):
    row(
        world,
        "unmade",
        "daemonsets",
        **{
            "namespace": "shop",
            "name": "log",
            "nodes": list(nodes),
            "desired": 2,
            "tolerations": [],
            **more,
        },
    )


def test_a_healthy_cluster(world):
    assert judged(world) == (dict.fromkeys(CODES, "clear"), [])


def test_no_api(world):
    world.api.update(status="error", reason="connection refused", collectors={})
    assert judged(world) == (dict.fromkeys(CODES, "unknown"), [])


def test_no_cluster(world):
    world.leave_kubernetes()
    assert judged(world)[0] == dict.fromkeys(CODES, "not_applicable")


def test_evidence_of_an_older_release(world):
    del world.api["collectors"]["unmade"]
    for name in ("gated", "bound"):
        del world.data("api", "pending")[name]
    assert {item.code for item in world.judge(faults=CODES).not_judged} == CODES


@pytest.mark.parametrize(
    ("collector", "codes"),
    [("pending", {"KM219", "KM220"}), ("unmade", CODES - {"KM219", "KM220"})],
)
def test_a_list_that_was_cut_is_never_clear(world, collector, codes):
    world.api["collectors"][collector]["truncated"] = True
    assert {code for code, verdict in judged(world)[0].items() if verdict == "unknown"} == codes


# KM218


def test_a_daemonset_that_leaves_a_tainted_node_out(world):
    node(world, "w1")["taints"] = [dict(CAF)]
    daemonset(world, "w1")
    _verdicts, (found,) = judged(world)
    assert (found.code, found.severity) == (
        "KM218",
        "info",
    )
    assert "shop/log (none on w1)" in found.summary
    assert found.evidence[0].object == "DaemonSet shop/log"
    assert "caf=log:NoSchedule of w1" in found.evidence[0].text


@pytest.mark.parametrize(
    ("tolerations", "key"),
    [
        ([{"key": "caf", "operator": "Exists"}], "caf"),
        ([], "node.kubernetes.io/unreachable"),
        ([], "node.kubernetes.io/unschedulable"),
    ],
)
def test_a_daemonset_that_tolerates_it_or_of_which_nobody_knows(world, tolerations, key):
    node(world, "w1")["taints"] = [{**CAF, "key": key}]
    daemonset(world, "w1", "gone", tolerations=tolerations)
    assert judged(world, "KM218") == ({"KM218": "clear"}, [])


def test_of_nodes_that_nobody_looked_at_no_daemonset_is_cleared(world):
    world.data("api", "unmade")["unlooked"] = 3
    assert judged(world, "KM218", "KM221")[0] == {"KM218": "unknown", "KM221": "clear"}


# KM219


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({}, "present"),
        ({"since": MINUTES_AGO}, "clear"),
        ({"since": MINUTES_AGO, "asked": True}, "present"),
        ({"since": None}, "unknown"),
    ],
)
def test_pods_that_gates_hold(world, more, verdict):
    gated(world, **more)
    verdicts, findings = judged(world, "KM219")
    assert verdicts == {"KM219": verdict}
    for found in findings:
        facts(found.summary, "2 pods", "lab/one, lab/two", "shop/a", "1 more")
        # a queue of batch jobs holds pods so for hours
        assert found.severity == ("warning" if "asked" in more else "info")


# KM220


@pytest.mark.parametrize(
    ("name", "ready", "more", "verdict"),
    [
        # it may have joined since nodes were listed
        ("gone", None, {"since": MINUTES_AGO}, "present"),
        ("gone", None, {"since": JUST_NOW}, "clear"),
        ("gone", None, {"since": JUST_NOW, "asked": True}, "clear"),
        ("gone", None, {"since": JUST_NOW, "absent": True}, "present"),
        ("w1", "True", {}, "present"),
        ("w1", "True", {"since": MINUTES_AGO}, "clear"),
        ("w1", "True", {"since": MINUTES_AGO, "asked": True}, "present"),
        ("w1", "True", {"since": JUST_NOW, "asked": True}, "clear"),
        ("w1", "Unknown", {"since": MINUTES_AGO}, "present"),
        ("w1", "Unknown", {"since": JUST_NOW}, "clear"),
        ("w1", "Unknown", {"since": JUST_NOW, "asked": True}, "present"),
        ("w1", "True", {"since": None}, "unknown"),
    ],
)
def test_a_kubelet_that_does_not_take_it_up(world, name, ready, more, verdict):
    if ready:
        node(world, name).update(
            ready=ready,
            conditions=[
                {"type": "Ready", "status": ready, "reason": "NodeStatusUnknown", "since": LONG_AGO}
            ],
        )
    bound(world, name, **more)
    verdicts, findings = judged(world, "KM220")
    assert verdicts == {"KM220": verdict}
    for found in findings:
        clause = "is not ready (Ready is Unknown since"
        if name == "gone":
            clause = "does not exist in this cluster"
        elif ready == "True":
            clause = "is Ready but does not"
        assert clause in found.summary
        assert found.node == name
        assert (found.host == "w1") is (name == "w1")


def test_without_the_nodes_nobody_says_that_one_is_missing(world):
    bound(world, "gone")
    world.api["collectors"]["nodes"] = {"status": "denied", "data": None}
    assert judged(world, "KM220")[0] == {"KM220": "unknown"}


# KM221 to KM223: words of 1.18 and 1.36


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (
            (
                'Error creating: pods "cart-1-x" is forbidden: exceeded quota: none, requested:'
                " pods=1, used: pods=0, limited: pods=0"
            ),
            "KM221",
        ),
        (
            (
                'create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden:'
                " failed quota: compute: must specify limits.cpu"
            ),
            "KM221",
        ),
        (
            (
                'Error creating: pods "cart-1-" is forbidden: error looking up service account'
                ' shop/nobody: serviceaccount "nobody" not found'
            ),
            "KM222",
        ),
        (
            (
                'Error creating: pods "x" is forbidden: service account shop/nobody was not found,'
                " retry after the service account is created"
            ),
            "KM222",
        ),
        (
            (
                'Error creating: pods "x" is forbidden: maximum cpu usage per Container is 1, but'
                " limit is 2"
            ),
            "KM223",
        ),
        (
            (
                'Error creating: Internal error occurred: failed calling webhook "v.example.com":'
                " connection refused"
            ),
            "KM223",
        ),
        (
            (
                'Error creating: pods "x" is forbidden: unable to create new content in namespace'
                " shop because it is being terminated"
            ),
            None,
        ),
    ],
)
def test_why_pods_are_not_made(world, message, code):
    refused(world, message)
    verdicts, findings = judged(world)
    assert {one: verdict for one, verdict in verdicts.items() if verdict != "clear"} == (
        {code: "present"} if code else {}
    )
    for found in findings:
        assert "ReplicaSet shop/cart-1 of Deployment/cart" in found.summary
        assert found.severity == "warning"
        assert "has 0 of 2 pods" in found.evidence[0].text


@pytest.mark.parametrize(("first", "verdict"), [(MINUTES_AGO, "clear"), (None, "unknown")])
def test_a_refusal_of_a_moment_is_no_fault(world, first, verdict):
    refused(world, "exceeded quota: none", first=first)
    assert judged(world, "KM221")[0] == {"KM221": verdict}


@pytest.mark.parametrize(
    ("last", "verdict"),
    [("2027-01-15T07:40:00Z", "present"), ("2027-01-15T07:39:59Z", "clear"), (None, "unknown")],
)
def test_a_refusal_that_is_long_over_is_no_fault(world, last, verdict):
    """A controller would have tried again since."""
    refused(world, "exceeded quota: none", first="2027-01-15T07:00:00Z", last=last)
    assert judged(world, "KM221")[0] == {"KM221": verdict}


@pytest.mark.parametrize(
    ("ready", "others", "because"), [(0, (), ("KM176",)), (1, (), ()), (0, ("mesh two",), ())]
)
def test_pods_that_a_webhook_without_a_server_refuses(world, ready, others, because):
    unmade_pods.refuse(world)
    for name in others:
        unmade_pods.refuse(world, unmade_pods.MESSAGE.replace(unmade_pods.WEBHOOK, name))
    unmade_pods.add_dead_webhook(world, ready=ready)
    (found,) = judged(world, "KM223")[1]
    assert found.because == because


def test_the_cause_of_a_known_refusal_is_told(world):
    text = "failed calling webhook: listen unix /run/hook.sock: bind: address already in use"
    unmade_pods.refuse(world, text)
    (found,) = (one for one in world.judge().findings if one.code == "KM223")
    assert "Known cause: A file is at the place of its socket /run/hook.sock" in found.summary
    assert found.remedy.startswith("ss -lxp on the node")


def test_a_refusal_of_another_release_has_no_known_cause(world, monkeypatch):
    unmade_pods.refuse(world, "listen unix /run/hook.sock: bind: address already in use")
    known_rows.of_a_later_release(monkeypatch)
    (found,) = (one for one in world.judge().findings if one.code == "KM223")
    assert "Known cause" not in found.summary
