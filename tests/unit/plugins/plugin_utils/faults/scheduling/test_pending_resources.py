# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that ask for a resource, on a cluster that also has nodes with taints.

The tables show which of both is the cause (KM210 or KM513), in the messages of 1.14 to 1.36.
"""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    sources as evidence_sources,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from tests.unit.support.facts import facts

REAL = (
    Path(__file__).resolve().parents[5]
    / "fixtures"
    / "recorded"
    / "v1.36.3-pods-pending"
    / "evidence"
)

CODES = frozenset(
    (
        "KM210",
        "KM211",
        "KM212",
        "KM213",
        "KM214",
        "KM215",
        "KM216",
        "KM217",
        "KM224",
        "KM225",
        "KM513",
    )
)
GPU, MASTER, OWN = "nvidia.com/gpu", "node-role.kubernetes.io/control-plane", "dedicated"
NO_HELP = (
    ". preemption: 0/{all} nodes are available: {all} Preemption is not helpful for scheduling."
)
NEWEST = (
    ". no new claims to deallocate, preemption: 0/{all} nodes are available: {all} Preemption is"
    " not helpful for scheduling."
)
# What each release says of {n} nodes with the taint {key}, and after its reasons. Up to 1.17 the
# taint is not named, nor from 1.35 on.
TAINTED = {
    "1.14": ("{n} node(s) had taints that the pod didn't tolerate", "."),
    "1.20": ("{n} node(s) had taint {{{key}: }}, that the pod didn't tolerate", "."),
    "1.24": ("{n} node(s) had untolerated taint {{{key}: }}", NO_HELP),
    "1.36": ("{n} node(s) had untolerated taint(s)", NEWEST),
}
RELEASES = sorted(TAINTED)


def said(release, *tainted, short=0, more=""):
    """Return a message of a release.

    tainted: of how many nodes each taint is; short: how many lack the resource; more: any clause.
    """
    pattern, end = TAINTED[release]
    clauses, nodes = [], short + sum(n for n, _key in tainted)
    if more:
        clauses.append(more)
        nodes += int(more.split()[0])
    if short:
        clauses.append(f"{short} Insufficient {GPU}")
    if tainted and "{key}" not in pattern:
        tainted = [(sum(n for n, _key in tainted), "")]
    clauses += [pattern.format(n=n, key=key) for n, key in tainted]
    return f"0/{nodes} nodes are available: {', '.join(clauses)}{end.format(all=nodes)}"


def judged(world, *codes):
    return list(world.judge(faults=frozenset(codes) or CODES).findings)


def node(world, name):
    items = world.data("api", "nodes")["items"]
    if not any(one["name"] == name for one in items):
        items.append(
            {
                **copy.deepcopy(next(one for one in items if one["name"] == "w1")),
                "name": name,
                "taints": [],
                "devices": {},
                "unschedulable": False,
            }
        )
    return next(one for one in items if one["name"] == name)


def offers(world, name, count, free=None):
    if free is None:
        free = count
    node(world, name)["devices"] = {GPU: [count, free]}


def taint(world, name, key=OWN):
    node(world, name)["taints"].append({"key": key, "effect": "NoSchedule"})


def waiting(world, message, asks=1, **more):
    if asks and not isinstance(asks, dict):
        asks = {GPU: asks}
    if asks:
        more = {"asks": asks, **more}
    world.data("api", "pending")["items"].append(
        {
            "namespace": "shop",
            "names": ["train-1"],
            "pods": 1,
            "since": "2027-01-15T07:40:00Z",
            "owner": "Job/train",
            "scheduler": "default-scheduler",
            "message": message,
            "tolerations": [],
            "targets": [],
            "off": [],
            **more,
        }
    )


def known(found):
    """Return {what the finding says of nodes: which}."""
    told = {
        proof.text: proof.object
        for proof in found.evidence
        if str(proof.object).startswith("Nodes ")
    }
    return {
        text: names for text, names in told.items() if not text.startswith("not for shop/train-1: ")
    }


def spared(found):
    return [
        proof.object
        for proof in found.evidence
        if (proof.text or "").startswith("not for shop/train-1: ")
    ]


# without what the pod asks for, as of an older release of kubemend
@pytest.mark.parametrize("asks", [1, None])
@pytest.mark.parametrize(
    "message",
    [
        *(said(release, (3, MASTER), short=1) for release in RELEASES),
        f"0/4 nodes are available: 4 Insufficient {GPU}.",
    ],
)
def test_what_no_node_offers_is_the_cause_and_not_the_masters_taint(world, message, asks):
    waiting(world, message, asks)
    (found,) = judged(world)
    assert (found.code, found.severity) == ("KM210", "warning")
    facts(found.summary, "1 pod", "no node", GPU, "Job shop/train")
    assert "device plugin" in found.remedy
    facts(found.remedy, "taint", "does not help")
    assert "w1" in known(found)[f"excluded: Insufficient {GPU}"]
    assert spared(found) == ([] if "4 Ins" in message else ["Nodes m1, m2, m3"])


@pytest.mark.parametrize(
    "message",
    [
        *(said(release, (3, MASTER), short=1) for release in RELEASES),
        f"0/4 nodes are available: 4 Insufficient {GPU}.",
    ],
)
def test_what_is_in_use_is_not_enough_left(world, message):
    """Up to 1.18 the masters have none either, before the scheduler checks their taint.

    That is no reason as long as w1 has some.
    """
    offers(world, "w1", 2)
    waiting(world, message)
    (found,) = judged(world)
    assert (found.code, found.severity) == (
        "KM210",
        "warning",
    )
    assert "nodes have not enough left of what is requested" in found.summary
    assert known(found) == {f"excluded: Insufficient {GPU}": "Nodes w1"}
    assert "lower the requests" in found.remedy
    assert spared(found) == ["Nodes m1, m2, m3"]


@pytest.mark.parametrize("release", RELEASES)
def test_a_taint_of_the_one_node_that_has_it_is_the_cause(world, release):
    """The others have none on purpose, as they lack a label."""
    offers(world, "w1", 2)
    taint(world, "w1")
    node(world, "w2")
    waiting(world, said(release, (3, MASTER), (1, OWN), short=1))
    (found,) = judged(world)
    assert (found.code, found.severity, found.node) == (
        "KM513",
        "warning",
        "w1",
    )
    assert "give them a toleration" in found.remedy


@pytest.mark.parametrize("release", RELEASES)
def test_a_taint_of_a_node_that_has_none_is_not(world, release):
    offers(world, "w1", 2)
    node(world, "w2")
    taint(world, "w2")
    waiting(world, said(release, (3, MASTER), (1, OWN), short=1))
    (found,) = judged(world)
    assert (found.code, found.severity) == ("KM210", "warning")
    assert "not enough left" in found.summary
    assert known(found) == {f"excluded: Insufficient {GPU}": "Nodes w1"}


@pytest.mark.parametrize("release", RELEASES)
def test_where_the_scheduler_ends_at_a_taint_it_says_nothing_of_what_no_node_has(world, release):
    taint(world, "w1")
    waiting(world, said(release, (3, MASTER), (1, OWN)))
    resource, of_taint = judged(world)
    assert (resource.code, resource.severity) == (
        "KM210",
        "warning",
    )
    assert "no node offers what is requested" in resource.summary
    ((text, names),) = known(resource).items()
    assert text.startswith(f"have too little {GPU}; the scheduler ends at another reason of theirs")
    assert names == "Nodes m1, m2, m3, w1"
    assert (of_taint.code, of_taint.severity, of_taint.node) == ("KM513", "info", "w1")
    assert of_taint.remedy.startswith(
        f"a toleration alone does not help: no node with this taint has the {GPU} that these pods"
        " ask for (KM210)"
    )
    offers(world, "w1", 2)
    (found,) = judged(world)
    assert (found.code, found.severity) == ("KM513", "warning")


@pytest.mark.parametrize("said_of_w1", ["1 Insufficient cpu", "1 Too many pods"])
def test_what_the_scheduler_passes_over_where_it_looks_for_resources_is_not_missed(
    world, said_of_w1
):
    """An extender or a driver has it: it names all that is short on a node at once."""
    waiting(world, f"0/4 nodes are available: {said_of_w1}, 3 node(s) had untolerated taint(s).")
    (found,) = judged(world)
    assert found.code in ("KM210", "KM214")
    assert GPU not in found.summary


def test_on_one_node_alone_both_have_to_go(single):
    items = single.data("api", "nodes")["items"]
    items[:] = [one for one in items if one["name"] == "m1"]
    waiting(single, said("1.36", (1, MASTER)))
    assert [(one.code, one.severity) for one in judged(single)] == [
        ("KM210", "warning"),
        ("KM513", "info"),
    ]
    offers(single, "m1", 1)
    (found,) = judged(single)
    assert (found.code, found.severity) == ("KM513", "warning")


@pytest.mark.parametrize("release", RELEASES)
def test_the_masters_taint_is_the_cause_where_only_they_have_it(world, release):
    offers(world, "m2", 1)
    waiting(world, said(release, (3, MASTER), short=1))
    (found,) = judged(world)
    assert (found.code, found.severity, found.node) == ("KM513", "warning", "m2")


def test_another_taint_of_a_master_changes_nothing(world):
    taint(world, "m1")
    waiting(world, said("1.24", (1, OWN), (2, MASTER), short=1))
    assert [(one.code, one.severity) for one in judged(world)] == [("KM210", "warning")]
    world.data("api", "pending")["items"].clear()
    waiting(
        world,
        said("1.24", (1, OWN), (2, MASTER), more="1 node(s) didn't match pod affinity rules"),
        None,
    )
    assert [(one.code, one.severity) for one in judged(world)] == [("KM211", "warning")]


@pytest.mark.parametrize(
    "key",
    [
        "CriticalAddonsOnly",
        *(f"node-role.kubernetes.io/{role}" for role in ("controlplane", "etcd", "master")),
    ],
)
def test_taints_of_other_installers(world, key):
    """As RKE, RKE2 and k3s set them on their servers."""
    for name in ("m1", "m2", "m3"):
        node(world, name)["taints"] = [{"key": key, "value": "true", "effect": "NoExecute"}]
    waiting(
        world,
        f"0/4 nodes are available: 1 Insufficient cpu, 3 node(s) had untolerated taint {{{key}:"
        " true}.",
        None,
    )
    assert [(one.code, one.severity) for one in judged(world)] == [("KM210", "warning")]


@pytest.mark.parametrize("release", RELEASES)
def test_a_cordon_of_the_one_node_that_has_it(world, release):
    offers(world, "w1", 2)
    node(world, "w1")["unschedulable"] = True
    taint(world, "w1", "node.kubernetes.io/unschedulable")
    node(world, "w2")
    waiting(world, said(release, (3, MASTER), short=1, more="1 node(s) were unschedulable"))
    (found,) = judged(world)
    assert (found.code, found.severity) == ("KM216", "warning")
    assert known(found) == {"excluded: node(s) were unschedulable": "Nodes w1"}


def test_a_cordon_of_a_node_that_has_none_is_no_reason(world):
    offers(world, "w1", 2)
    node(world, "w2")["unschedulable"] = True
    taint(world, "w2", "node.kubernetes.io/unschedulable")
    waiting(world, said("1.36", (3, MASTER), short=1, more="1 node(s) were unschedulable"))
    assert [(one.code, one.severity) for one in judged(world)] == [("KM210", "warning")]


def test_of_a_real_cluster_each_node_is_left_out_once():
    """m1 is dedicated, m2 is cordoned, m3 not ready, all three are masters.

    Lab-full may have no pod.
    """
    found = fault_engine.evaluate(evidence_sources.stream([str(REAL)]), faults=CODES).findings
    (claims,) = (one for one in found if one.code == "KM213")
    assert [
        (proof.object, proof.text.split(": ", 1)[1])
        for proof in claims.evidence
        if "not for " in (proof.text or "")
    ] == [
        ("Nodes m2", "node(s) were unschedulable"),
        ("Nodes m1", "node(s) had untolerated taint(s) lab/mine=x"),
        ("Nodes m3", "node(s) were not ready"),
        ("Nodes lab-full", "node(s) didn't match Pod's node affinity/selector"),
    ]
    down, own = sorted((one for one in found if one.code == "KM513"), key=lambda one: one.severity)
    assert (down.node, down.severity, own.node, own.severity) == ("m3", "info", "m1", "warning")
    assert "unreachable" in down.summary
    assert "In addition" not in down.remedy + own.remedy


def test_nodes_that_offer_it_and_are_not_asked_for(world):
    offers(world, "w2", 4)
    waiting(
        world,
        f"0/5 nodes are available: 1 Insufficient {GPU}, 4 node(s) didn't match Pod's node"
        " affinity/selector.",
        off=["m1", "m2", "m3", "w2"],
    )
    (found,) = judged(world)
    assert "because no selected node offers what is requested" in found.summary
    texts = {names: text for text, names in known(found).items()}
    assert (set(texts), len(known(found))) == ({"Nodes w1", "Nodes w2"}, 2)
    facts(texts["Nodes w1"], f"Insufficient {GPU}")
    facts(texts["Nodes w2"], GPU, "selector", "affinity")


def test_nodes_that_have_it_and_give_none(world):
    offers(world, "w1", 2, 0)
    waiting(world, said("1.36", (3, MASTER), short=1))
    (found,) = judged(world)
    assert "no node offers" in found.summary
    ((text, names),) = (row for row in known(found).items() if "unhealthy" in row[0])
    assert names == "Nodes w1"
    facts(text, GPU, "unhealthy", "no device plugin")


@pytest.mark.parametrize(
    ("asks", "short", "named"),
    [
        ({GPU: 8, "cpu": 500}, GPU, f"{GPU}: 8 of 2 at most"),
        ({"cpu": 1000000}, "cpu", "cpu: 1000 of 3500m at most"),
        ({"memory": 64 * 1024**3}, "memory", "memory: 64Gi of 16Gi at most"),
    ],
)
def test_what_no_node_is_large_enough_for(world, asks, short, named):
    offers(world, "w1", 2)
    world.data("api", "pending")["largest"] = {"cpu": 3500, "memory": 16 * 1024**3}
    waiting(
        world,
        f"0/4 nodes are available: 1 Insufficient {short}, 3 node(s) had untolerated taint(s).",
        asks,
    )
    (found,) = judged(world)
    assert (found.code, found.severity) == ("KM210", "warning")
    assert f"no node is large enough for what is requested ({named})" in found.summary
    assert "add a larger node" in found.remedy


def test_what_is_left_and_what_is_nowhere_are_two_findings(world):
    waiting(
        world,
        f"0/4 nodes are available: 1 Insufficient cpu, 1 Insufficient {GPU}, 3 node(s) had"
        " untolerated taint(s).",
    )
    nowhere, left = judged(world)
    assert (nowhere.severity, left.severity) == ("warning", "info")
    assert "no node offers" in nowhere.summary
    assert "(cpu)" in left.summary


def test_a_hint_names_what_else_there_is(world):
    node(world, "w2")
    waiting(
        world,
        "0/5 nodes are available: 1 Insufficient cpu, 1 node(s) didn't have free ports for the"
        " requested pod ports, 3 node(s) had untolerated taint(s).",
        None,
    )
    found = {one.code: one for one in judged(world)}
    assert {code: one.severity for code, one in found.items()} == {"KM210": "info", "KM213": "info"}
    assert found["KM213"].remedy.endswith(
        ". In addition: Insufficient cpu (1 node). A pod needs one node of which no reason is left"
    )


def test_a_dedicated_node_beside_others_is_the_hint(world):
    """The operator who dedicated it meant these pods too.

    More room elsewhere is the way, a toleration another one.
    """
    node(world, "w2")
    taint(world, "w2")
    waiting(
        world,
        "0/5 nodes are available: 1 Insufficient cpu, 4 node(s) had untolerated taint(s).",
        None,
    )
    resource, of_taint = judged(world)
    assert (resource.code, resource.severity, of_taint.code, of_taint.severity) == (
        "KM210",
        "warning",
        "KM513",
        "info",
    )
    assert of_taint.node == "w2"
    assert known(of_taint) == {"excluded: Insufficient cpu": "Nodes w1"}
    assert of_taint.remedy.endswith(
        "In addition: Insufficient cpu (w1). A pod needs one node of which no reason is left"
    )


@pytest.mark.parametrize("devices", [None, 7, {GPU: 7}, {GPU: ["a", "b"]}, {GPU: [1]}])
def test_nodes_of_another_shape(world, devices):
    node(world, "w1")["devices"] = devices
    waiting(world, said("1.36", (3, MASTER), short=1), None)
    assert [(one.code, one.severity) for one in judged(world)] == [("KM210", "warning")]


def test_without_the_nodes_nobody_knows_what_they_offer(world):
    del world.api["collectors"]["nodes"]
    waiting(world, said("1.36", (3, MASTER), short=1))
    (found,) = judged(world, "KM210")
    assert "nodes have not enough left" in found.summary
