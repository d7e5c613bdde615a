# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One clear sentence of the pod that was asked for, or of why there is nothing to tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    sources as evidence_sources,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    pending_notices,
)
from tests.unit.support.facts import facts, facts_of_each

RECORDED = Path(__file__).resolve().parents[4] / "fixtures" / "recorded"
SINCE = "2027-01-15T07:59:58Z"
FORBIDDEN = (
    (
        'GET /api/v1/pods: HTTP 403 pods is forbidden: User "narrow" cannot list resource "pods" in'
        ' API group "" at the cluster scope'
    ),
    (
        'GET /apis/apps/v1/daemonsets: HTTP 403 daemonsets.apps is forbidden: User "narrow" cannot'
        ' list resource "daemonsets" in API group "apps" at the cluster scope'
    ),
)


def told(world, symptom=pending_notices.SYMPTOM):
    return pending_notices.render_sentences(
        fault_engine.evaluate_clusters([*world.documents.values(), world.api])[1], symptom
    )


def asked(world, phase="Pending", node=None, **more):
    world.api["collectors"]["pod"] = {
        "status": "ok",
        "data": {"namespace": "shop", "name": "a", "pod": {"phase": phase, "node": node, **more}},
    }


def waits(world, name, **more):
    world.data("api", "pending")[name].append(
        {
            "namespace": "shop",
            "names": ["a"],
            "pods": 1,
            "since": SINCE,
            "owner": None,
            "asked": True,
            "scheduler": "default-scheduler",
            "tolerations": [],
            "targets": [],
            **more,
        }
    )


def test_no_pending_pod(world):
    assert told(world) == (("no pod is Pending",), None)
    assert told(world, None) == ((), None)  # an audit says nothing of it


def test_whose_turn_it_is(world):
    world.data("api", "pending").update(read=4, taken=2, items=[{"pods": 2}])
    (sentence,), _dummy = told(world)
    assert sentence.startswith(
        "4 pods are Pending: 2 found no node, 2 were taken up by a kubelet (images, volumes"
    )


def test_a_list_that_was_cut_is_not_empty(world):
    world.api["collectors"]["pending"]["truncated"] = True
    assert told(world)[0][0].startswith("0 pods are Pending, the list was cut")


def test_a_pod_that_does_not_exist_is_wrong_input(world):
    world.api["collectors"]["pod"] = {
        "status": "absent",
        "data": None,
        "error": "the API knows no pod shop/a and no event about one",
    }
    (notice,), problem = told(world)
    assert problem == notice
    facts(notice, "kubemend_pod", "the API knows no pod shop/a and no event about one")
    assert told(world, None) == ((), None)


@pytest.mark.parametrize(
    ("phase", "node", "stated"),
    [
        ("Running", "w1", ("shop/a", "not Pending", "Running", "w1")),
        ("Failed", None, ("shop/a", "not Pending", "Failed", "without a node")),
    ],
)
def test_a_pod_that_is_not_pending(world, phase, node, stated):
    asked(world, phase, node)
    notices, problem = told(world)
    assert problem is None
    facts_of_each(notices, stated)
    assert told(world, None) == ((), None)


def test_a_pod_that_is_no_more(world):
    asked(world)
    world.data("api", "pod")["pod"] = None
    assert told(world)[0][0].startswith("pod shop/a is no more")


def test_the_api_is_down(world):
    world.api.update(status="error", reason="connection refused", collectors={})
    (sentence,), wrong = told(world)
    assert sentence.startswith(
        "the API does not answer (m1: connection refused): which pods stay Pending is not known"
    )
    assert wrong is None


def test_the_api_of_a_real_cluster_is_down():
    (sentence,), wrong = pending_notices.render_sentences(
        fault_engine.evaluate_clusters(
            evidence_sources.stream([str(RECORDED / "v1.36.3-api-down" / "evidence")])
        )[1],
        pending_notices.SYMPTOM,
    )
    assert sentence.startswith("the API does not answer (m3: /etc/kubernetes/admin.conf (https://")
    assert "connection refused" in sentence
    assert wrong is None
    assert sentence.endswith(
        ": which pods stay Pending is not known before it does; what the hosts themselves say is"
        " judged below"
    )


def test_rights_that_are_missing(world):
    for name, error in zip(("pending", "unmade"), FORBIDDEN, strict=True):
        world.api["collectors"][name] = {
            "status": "denied",
            "data": None,
            "error": error,
            "source": "https://m1:6443 as /root/narrow.conf",
        }
    facts_of_each(
        told(world)[0],
        (
            "RBAC",
            "narrow",
            "https://m1:6443",
            "/root/narrow.conf",
            "list pods",
            "list daemonsets.apps",
            "kubemend_kubeconfig",
        ),
    )


def test_each_reason_and_the_nodes_that_it_excludes(world):
    asked(world)
    waits(
        world,
        "items",
        message="0/4 nodes are available: 1 Insufficient cpu, 3 node(s) had untolerated taint(s).",
        off=[],
    )
    for symptom in (None, pending_notices.SYMPTOM):
        notices, more = told(world, symptom)
        assert more is None
        facts_of_each(
            notices,
            (
                "shop/a",
                "Pending",
                SINCE,
                "default-scheduler",
                "Insufficient cpu: w1",
                "node-role.kubernetes.io/control-plane: m1, m2, m3",
            ),
        )


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            "1 Insufficient lab/gpu, 3 node(s) had untolerated taint(s)",
            (
                "Insufficient lab/gpu: w1 (no node that it asks for has any, in use or not);"
                " node(s) had "
            ),
        ),
        (
            "1 Insufficient cpu, 3 node(s) had untolerated taint(s)",
            (
                "Insufficient cpu: w1 (no node that it asks for is large enough, in use or not);"
                " node(s) had "
            ),
        ),
        (
            (
                "1 node(s) had untolerated taint {own: }, 3 node(s) had untolerated taint"
                " {node-role.kubernetes.io/control-plane: }"
            ),
            (
                "m1, m2, m3 (as it should be); the pod asks for lab/gpu: m1, m2, m3, w1 (no node"
                " that it asks for has any, in use or not)"
            ),
        ),
    ],
)
def test_what_no_node_has(world, message, said):
    asked(world)
    world.data("api", "pending")["largest"] = {"cpu": 4000}
    waits(
        world,
        "items",
        message=f"0/4 nodes are available: {message}.",
        off=[],
        asks={"lab/gpu": 1} if "cpu" not in message else {"cpu": 5000},
    )
    if "own" in message:
        next(one for one in world.data("api", "nodes")["items"] if one["name"] == "w1")[
            "taints"
        ] = [{"key": "own", "effect": "NoSchedule"}]
    (sentence,), _dummy = told(world)
    assert said in sentence


@pytest.mark.parametrize(
    ("version", "message", "more"),
    [
        ("v1.18.4", "3 node(s) didn't match node selector.", True),
        ("v1.18.4-tke.3", "3 node(s) didn't match node selector.", True),
        ("v1.26.3", "3 node(s) didn't match node selector.", False),
        ("v1.18.4", "4 node(s) didn't match node selector.", False),
    ],
)
def test_a_message_that_passes_over_a_node(world, version, message, more):
    for name in ("m1", "m2", "m3"):
        next(
            one
            for one in world.data(name, "component_http")["components"]
            if one["component"] == "kube-scheduler"
        )["metrics"]["git_version"] = version
    asked(world)
    waits(world, "items", message=f"0/4 nodes are available: {message}", off=["m1", "m2", "w1"])
    (sentence,), _dummy = told(world)
    assert (
        "m1, m2, w1 (as it should be); it says nothing of 1 of 4 nodes: whether one is lost, KM202"
        " shows" in sentence
    ) is more
    assert ("nothing of" in sentence) is more


@pytest.mark.parametrize(
    ("name", "more", "node", "said"),
    [
        ("gated", {"gates": ["lab/wait"]}, None, "scheduling gates hold it: lab/wait"),
        ("unseen", {"scheduler": "other"}, None, "its schedulerName is other"),
        ("bound", {"node": "w9"}, "w9", "it waits for the kubelet of w9 to take it up"),
        ("items", {"message": "odd words"}, None, "says: odd words"),
        ("unseen", {"asked": False}, "w1", "its kubelet has taken it up (app: ImagePullBackOff)"),
        ("unseen", {"asked": False}, None, "nothing is known of why"),
    ],
)
def test_whatever_a_pending_pod_waits_for(world, name, more, node, said):
    asked(
        world,
        node=node,
        containers=[
            {"name": "app", "state": "waiting", "now": {"reason": "ImagePullBackOff"}},
            {"state": "running"},
        ],
    )
    waits(world, name, **more)
    (sentence,), _dummy = told(world)
    assert sentence.startswith("pod shop/a is Pending, ")
    assert said in sentence


def test_evidence_of_another_shape(world):
    asked(world)
    waits(
        world,
        "items",
        message="0/4 nodes are available: 4 Insufficient cpu.",
        targets=7,
        tolerations={"a": 1},
    )
    assert len(told(world)[0]) == 1
    world.data("api", "nodes")["items"][0]["labels"] = 7
    assert len(told(world)[0]) == 1
