# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taints: whose they are, what a scheduler says of them, which pods they keep away."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import contract
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    api_pod,
    pending,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    nodes as nodes_answer,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.decode import decode
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.taints import (
    EFFECTS,
    Taint,
    Told,
    explained,
    keeps_away,
    parse_reasons,
    tolerated,
)

NODE = "node.kubernetes.io/"
Toleration = api_pod.Toleration


def taint(key: Any, effect: str = "NoSchedule", **more: Any) -> nodes_answer.Taint:
    return decode(nodes_answer.Taint, {"key": key, "effect": effect, **more}).answer


def tolerations(raw: Any) -> tuple[Toleration, ...] | None:
    return decode(pending.PendingPods, {"tolerations": raw}).answer.tolerations


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize(
    "key",
    [
        "not-ready",
        "unreachable",
        "memory-pressure",
        "disk-pressure",
        "pid-pressure",
        "network-unavailable",
    ],
)
def test_taints_of_the_lifecycle_controller(key, effect):
    """NoSchedule of all, NoExecute of two.

    Somebody else's taint that bears such a key is not removed by it.
    """
    mine = effect == "NoSchedule" or (effect == "NoExecute" and key in ("not-ready", "unreachable"))
    found = explained(taint(NODE + key, effect))
    assert found.owner.kind == ("lifecycle" if mine else "user")
    assert ("5 s" in found.owner.never) is mine
    assert not found.owner.fence


@pytest.mark.parametrize(
    ("one", "kind", "fence"),
    [
        (taint(NODE + "unschedulable"), "administrator", True),
        (taint(NODE + "unschedulable", "NoExecute"), "user", False),
        (taint(NODE + "out-of-service", "NoExecute", value="nodeshutdown"), "administrator", True),
        (taint("node.cloudprovider.kubernetes.io/uninitialized", value="true"), "cloud", False),
        (taint("node.cloudprovider.kubernetes.io/shutdown"), "cloud", True),
        (taint("node-role.kubernetes.io/master"), "kubeadm", False),
        (taint("node-role.kubernetes.io/control-plane", "PreferNoSchedule"), "kubeadm", False),
        (taint("ToBeDeletedByClusterAutoscaler", value="1700000000"), "autoscaler", True),
        (taint("ToBeDeletedByClusterAutoscaler", "NoExecute"), "user", False),
        (taint("DeletionCandidateOfClusterAutoscaler", "PreferNoSchedule"), "autoscaler", True),
        (taint("karpenter.sh/unregistered", "NoExecute"), "autoscaler", False),
        (taint("startup-taint.cluster-autoscaler.kubernetes.io/net"), "administrator", False),
        (taint(NODE + "out-of-disk"), "unknown", False),
        (taint("x.k8s.io/y"), "unknown", False),
        (taint("notkubernetes.io/y"), "user", False),
        (taint("caf", "NoExecute", value="log"), "user", False),
    ],
)
def test_owners(one, kind, fence):
    found = explained(one)
    assert (found.owner.kind, found.owner.fence) == (kind, fence)
    assert all((found.owner.who, found.owner.means, found.owner.removed_by, found.owner.never))


def test_a_key_without_an_effect_is_its_owners():
    """As a scheduler's message names it."""
    assert explained(Taint(NODE + "unreachable")).owner.kind == "lifecycle"
    assert explained(Taint("caf")).owner.kind == "user"


@pytest.mark.parametrize(
    "doubtful", [{"key": "caf", "operator": "Gt"}, {"key": "caf", "operator": "exists"}]
)
def test_a_toleration_that_nobody_can_read_leaves_doubt(doubtful):
    assert (
        tolerated(taint("caf"), tolerations([doubtful, {"key": "other"}]))
        is tolerated(taint("caf"), tolerations([{"key": "other"}, doubtful]))
        is None
    )


@pytest.mark.parametrize(
    "raw",
    [
        "Exists",
        {"operator": "Exists"},
        5,
        [None],
        ["caf"],
        [{"key": 5}],
        [{"key": "caf", "effect": 5}],
    ],
)
def test_tolerations_of_another_type_make_the_list_of_pods_a_failed_answer(raw):
    answer = {"status": "ok", "data": {"items": [{"tolerations": raw}]}}
    document = {"kind": "cluster", "collectors": {"pending": answer}}
    assert contract.checked(document)["collectors"]["pending"]["status"] == "error"


def test_the_users_own_taint_is_never_ours_to_remove():
    assert str(explained(taint("caf", "NoExecute", value="log")).taint) == "caf=log:NoExecute"
    assert "any repair" in explained(taint("caf", "NoExecute", value="log")).owner.never


@pytest.mark.parametrize(
    "thing",
    [nodes_answer.Taint(), nodes_answer.Taint("a"), taint("a", "Sometimes"), taint(""), taint(5)],
)
def test_what_is_no_taint(thing):
    assert explained(thing) is None
    assert tolerated(thing, []) is None


@pytest.mark.parametrize(
    "taints", ["a", [None], ["a"], [[]], [{"key": "a", "value": 5}], [{"key": 5}]]
)
def test_taints_of_another_type_make_the_list_of_nodes_a_failed_answer(taints):
    answer = {"status": "ok", "data": {"items": [{"name": "w1", "taints": taints}]}}
    document = {"kind": "cluster", "collectors": {"nodes": answer}}
    assert contract.checked(document)["collectors"]["nodes"]["status"] == "error"


CORDON = Taint(NODE + "unschedulable", "", "NoSchedule")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # up to 1.17
        (
            (
                "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) had taints that the pod"
                " didn't tolerate."
            ),
            [Told("taints", 3)],
        ),
        (
            (
                "0/6 nodes are available: 1 node(s) had taint {node-role.kubernetes.io/master: },"
                " that the pod didn't tolerate, 5 Insufficient memory."
            ),
            [Told("taint", 1, Taint("node-role.kubernetes.io/master"))],
        ),  # 1.18 to 1.23
        (
            (
                "0/3 nodes are available: 1 node(s) had untolerated taint {caf: log}, 2 node(s) had"
                " untolerated taint {node.kubernetes.io/unreachable: }. preemption: 0/3 nodes are"
                " available: 3 Preemption is not helpful for scheduling."
            ),
            # 1.24 to 1.34
            [Told("taint", 1, Taint("caf", "log")), Told("taint", 2, Taint(NODE + "unreachable"))],
        ),
        (
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't match"
            " Pod's node affinity/selector. no new claims to deallocate, "
            # 1.35
            "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
            [Told("taints", 1)],
        ),
        (
            (
                "0/2 nodes are available: 1 node(s) were unschedulable, 1 node(s) had untolerated"
                " taint(s)."
            ),
            [Told("cordon", 1, CORDON), Told("taints", 1)],
        ),
        # up to 1.17
        (
            (
                "0/2 nodes are available: 1 node(s) were not ready, 1 node(s) had disk pressure, 1"
                " node(s) had unknown conditions."
            ),
            [
                Told("condition", 1, Taint(NODE + "not-ready")),
                Told("condition", 1, Taint(NODE + "disk-pressure")),
                Told("condition", 1),
            ],
        ),
        (
            "node(s) had taint {a/b: c-d_e.f}, that the pod didn't tolerate",
            [Told("taint", None, Taint("a/b", "c-d_e.f"))],
        ),
        (
            (
                "0/1 nodes are available: 1 node(s) had untolerated taint {a: b}. preemption: 1"
                " node(s) had untolerated taint {c: d}"
            ),
            [Told("taint", 1, Taint("a", "b"))],
        ),
        ("0/1 nodes are available: 1 Insufficient cpu.", []),
        ("", []),
        (None, []),
        (5, []),
        ("1 node(s) had taint {a b: c}", []),
        ("1 node(s) had taint {a: b", []),
        ("99999999999 node(s) were unschedulable", [Told("cordon", None, CORDON)]),
    ],
)
def test_what_schedulers_say(text, found):
    assert list(parse_reasons(text)) == found


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"key": "caf", "operator": "Equal", "value": "log", "effect": "NoExecute"}, True),
        ({"key": "caf", "value": "log"}, True),
        ({"key": "caf", "operator": "", "value": "log"}, True),
        ({"key": "caf"}, False),
        ({"key": "caf", "value": "LOG"}, False),
        ({"key": "caf", "operator": "Exists"}, True),
        ({"key": "caf", "operator": "Exists", "value": "other"}, True),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, False),
        ({"value": "log"}, True),
        ({}, False),
        ({"key": "caf", "operator": "Exists", "effect": ""}, True),
        ({"key": "ca", "operator": "Exists"}, False),
        ({"key": None, "operator": "Exists"}, True),
        ({"key": "caf", "operator": "Gt", "value": "5"}, None),
        ({"key": "caf", "operator": "Lt", "value": "5"}, None),
        ({"key": "other", "operator": "Gt"}, False),
        ({"operator": "Gt", "effect": "NoSchedule"}, False),
        ({"key": "caf", "operator": "exists"}, None),
    ],
)
def test_one_toleration(toleration, fits):
    one = tolerations([toleration])
    assert tolerated(taint("caf", "NoExecute", value="log"), one) is fits


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (None, False),
        ([], False),
        ([{"operator": "Exists"}], True),
        ([{"key": "x"}, {"operator": "Exists"}], True),
        ([{"operator": "Gt"}, {"operator": "Exists"}], True),
        ([{"operator": "Gt"}], None),
        ([{"operator": "Exists"}] * 2000, None),
    ],
)
@pytest.mark.parametrize("effect", ["NoExecute", "NoSchedule", "PreferNoSchedule"])
def test_several_tolerations(raw, expected, effect):
    assert tolerated(taint(NODE + "unreachable", effect), tolerations(raw)) is expected


def test_what_keeps_a_pod_away():
    taints = [
        taint("a"),
        taint("b", "NoExecute"),
        taint("c", "PreferNoSchedule"),
        taint("d"),
        taint(5),
    ]
    off, doubtful = keeps_away(
        taints,
        tolerations(
            [{"key": "a", "operator": "Exists"}, {"key": "d", "operator": "Gt", "value": "1"}]
        ),
    )
    assert ([one.key for one in off], [one.key for one in doubtful]) == (["b"], ["d", ""])
    assert keeps_away((), None) == ([], [])
    assert keeps_away(taints, tolerations([{}] * 2000))[0] == []
    assert keeps_away([taint("a")] * 2000, None) == ([], [Taint("")])


KEYS, VALUES, OPERATORS = ("", "a", "b"), ("", "x", "y"), ("", "Equal", "Exists")


def test_every_pair_as_the_scheduler_has_it():
    """A second, flat statement of the rule over all small cases."""
    for key, value, effect, tkey, tvalue, teffect, operator in itertools.product(
        KEYS[1:], VALUES, EFFECTS, KEYS, VALUES, ("", *EFFECTS), OPERATORS
    ):
        expected = (
            teffect in ("", effect)
            and tkey in ("", key)
            and (operator == "Exists" or tvalue == value)
        )
        one = tolerated(
            taint(key, effect, value=value),
            [Toleration(tkey, operator, tvalue, teffect)],
        )
        assert one is expected


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(("Exists", "NoExecute", "a")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("key", "value", "effect", "operator", "tolerationSeconds")),
            inner,
            max_size=5,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(ANY, ANY)
def test_hostile_objects_do_not_raise(one, others):
    raw = tolerations(others)
    carried = decode(nodes_answer.Taint, one).answer
    assert (explained(carried) is None) or tolerated(carried, raw) in (True, False, None)
    keeps_away([carried], raw)
    keeps_away(decode(nodes_answer.Node, {"taints": one}).answer.taints or (), raw)
    parse_reasons(one)


@settings(max_examples=200, deadline=None)
@given(
    st.from_regex(r"[a-z][a-z0-9.-]{0,20}(/[a-z]{1,9})?", fullmatch=True),
    st.from_regex(r"[A-Za-z0-9_.-]{0,12}", fullmatch=True),
    st.integers(1, 5000),
    st.sampled_from(
        ("had taint {%s: %s}, that the pod didn't tolerate", "had untolerated taint {%s: %s}")
    ),
)
def test_any_taint_is_found_in_a_message(key, value, nodes, form):
    text = (
        f"0/{nodes} nodes are available: {nodes} node(s) {form % (key, value)}, 1 Insufficient cpu."
    )
    assert parse_reasons(text) == (Told("taint", nodes, Taint(key, value)),)
