# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a scheduler says of a pod that stays Pending, in the words of 1.14 to 1.36."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.scheduling import (
    message,
)

KINDS = message.KINDS
MAX_REASONS = message.MAX_REASONS
MAX_TEXT = message.MAX_TEXT
Message = message.Message
parse = message.parse
plain = message.plain

PROFILE = settings(deadline=None, database=None, derandomize=True, max_examples=100)
HEAD = "0/4 nodes are available: "
# (kind, the words, the name)
WORDINGS = (
    ("resource", "Insufficient cpu", "cpu"),
    ("resource", "Insufficient memory", "memory"),
    ("resource", "Insufficient nvidia.com/gpu", "nvidia.com/gpu"),
    ("resource", "Insufficient ephemeral-storage", "ephemeral-storage"),
    ("resource", "Insufficient hugepages-2Mi", "hugepages-2Mi"),
    ("pods", "Insufficient pods", ""),
    ("pods", "Too many pods", ""),
    ("taint", "node(s) had taints that the pod didn't tolerate", ""),
    ("taint", "node(s) had untolerated taint(s)", ""),
    ("taint", "node(s) had taint {caf: log}, that the pod didn't tolerate", "caf=log"),
    (
        "taint",
        "node(s) had taint {node-role.kubernetes.io/master: }, that the pod didn't tolerate",
        "node-role.kubernetes.io/master",
    ),
    (
        "taint",
        "node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }",
        "node-role.kubernetes.io/control-plane",
    ),
    ("cordon", "node(s) were unschedulable", ""),
    ("unready", "node(s) were not ready", ""),
    ("unready", "node(s) had disk pressure", ""),
    ("unready", "node(s) had unknown conditions", ""),
    ("unready", "node(s) were out of disk space", ""),
    ("unready", "node(s) had unavailable network", ""),
    ("affinity", "node(s) didn't match node selector", ""),
    ("affinity", "node(s) didn't match Pod's node affinity", ""),
    ("affinity", "node(s) didn't match Pod's node affinity/selector", ""),
    ("affinity", "node(s) didn't match scheduler-enforced node affinity", ""),
    ("affinity", "node(s) didn't satisfy plugin(s) [NodeAffinity]", ""),
    ("affinity", "node(s) didn't have the requested labels", ""),
    ("node_name", "node(s) didn't match the requested hostname", ""),
    ("node_name", "node(s) didn't match the requested node name", ""),
    ("pod_affinity", "node(s) didn't match pod affinity/anti-affinity", ""),
    ("pod_affinity", "node(s) didn't match pod affinity rules", ""),
    ("pod_affinity", "node(s) didn't match pod anti-affinity rules", ""),
    ("pod_affinity", "node(s) didn't satisfy existing pods anti-affinity rules", ""),
    ("spread", "node(s) didn't match pod topology spread constraints", ""),
    ("spread", "node(s) didn't match pod topology spread constraints (missing required label)", ""),
    ("port", "node(s) didn't have free ports for the requested pod ports", ""),
    ("volume", "node(s) had volume node affinity conflict", ""),
    ("volume", "node(s) had no available volume zone", ""),
    ("volume", "node(s) didn't match PersistentVolume's node affinity", ""),
    ("volume", "node(s) exceed max volume count", ""),
    ("volume", "node(s) didn't find available persistent volumes to bind", ""),
    ("volume", "node(s) did not have enough free storage", ""),
    ("volume", "node(s) had no available disk", ""),
    ("volume", "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", ""),
    ("claim", "pod has unbound immediate PersistentVolumeClaims", ""),
    ("claim", 'persistentvolumeclaim "data" not found', ""),
    ("prefilter", "node is filtered out by the prefilter result", ""),
    ("prefilter", "node(s) didn't satisfy plugin(s) [A B] simultaneously", ""),
    ("unknown", "node(s) were full of ghosts, as one says", ""),
)
TRIED = (
    "0/{n} nodes are available: {n} Preemption is not helpful for scheduling.",
    "0/{n} nodes are available: {n} No preemption victims found for incoming pod..",
    "not eligible due to a terminating pod on the nominated node.",
)
BEFORE = (
    "",
    "no new claims to deallocate, ",
    "still not schedulable, ",
    "deallocation of ResourceClaim completed, ",
)
# Of 1.36 where nothing is preempted, too.
ALONE = (
    " no new claims to deallocate",
    " deallocation of ResourceClaim completed",
    " deletion of ResourceClaim completed",
    " All PostFilter plugins are skipped",
)
SUFFIXES = ("", *ALONE, *(f" {before}preemption: {tried}" for before in BEFORE for tried in TRIED))
COUNTS = st.lists(
    st.tuples(st.sampled_from(WORDINGS), st.integers(1, 5000)),
    max_size=8,
    unique_by=lambda one: one[0][1],
)


@PROFILE
@given(COUNTS, st.integers(1, 9999), st.sampled_from(SUFFIXES))
def test_what_was_counted_is_read_again(counts, nodes, suffix):
    """As the scheduler composes it.

    Clauses sorted as texts, a full stop, and what preemption tried.
    """
    clauses = sorted(
        (f"{count} {words}", kind, count, name) for (kind, words, name), count in counts
    )
    found = parse(
        f"0/{nodes} nodes are available: {', '.join(clause[0] for clause in clauses)}."
        + suffix.format(n=nodes)
    )
    assert [(reason.kind, reason.nodes, reason.name) for reason in found.reasons] == [
        clause[1:] for clause in clauses
    ]
    assert (found.nodes, found.whole, found.total) == (
        nodes,
        True,
        sum(count for _words, count in counts),
    )
    assert found.missing == max(0, nodes - found.total)
    assert [reason.nodes for reason in found.preemption] == (
        [] if "preemption" not in suffix else [nodes] if "{n}" in suffix else [None]
    )


@pytest.mark.parametrize(("kind", "words", "name"), WORDINGS)
def test_each_wording_alone(kind, words, name):
    (reason,) = parse(f"{HEAD}4 {words}.").reasons
    assert (reason.kind, reason.text, reason.nodes, reason.name) == (
        kind,
        words,
        4,
        name,
    )
    assert kind in KINDS


def test_every_kind_has_a_wording():
    assert {kind for kind, _words, _name in WORDINGS} | {"gates"} == set(KINDS)


@pytest.mark.parametrize(
    ("text", "kinds", "missing"),
    [
        # the incident, v1.18.4
        (HEAD + "3 node(s) didn't match node selector.", ["affinity"], 1),
        # incident D, 1.14
        (
            (
                "0/5 nodes are available: 1 node(s) had taints that the pod didn't tolerate, 2"
                " node(s) didn't match node selector."
            ),
            ["taint", "affinity"],
            2,
        ),
        # several reasons of one node
        (
            "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory.",
            ["resource", "resource"],
            0,
        ),
        # no reason at all, without and with preemption
        (HEAD + ".", [], 4),
        (
            HEAD
            + "preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.",
            [],
            4,
        ),
        # of the pod, from 1.22 on
        (
            (
                "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
                " preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
            ),
            ["claim"],
            None,
        ),
        # cut off in an event, and in the middle
        (HEAD + "1 Insufficient cpu, 1 node(s) had vol ...", ["resource", "unknown"], None),
        (HEAD + "1 Insufficient cpu, 1 Insuff", ["resource", "unknown"], None),
        (HEAD + "1 node(s) had taint {example.", ["unknown"], None),
        (HEAD.strip(), [], None),
        ("no nodes available to schedule pods", [], 0),
        ("pod has unbound immediate PersistentVolumeClaims (repeated 3 times)", ["claim"], None),
        (
            (
                'running "VolumeBinding" filter plugin for pod "a": pod has unbound immediate'
                " PersistentVolumeClaims"
            ),
            ["claim"],
            None,
        ),
        ("Scheduling is blocked due to non-empty scheduling gates", ["gates"], None),
    ],
)
def test_messages(text, kinds, missing):
    found = parse(text)
    assert ([reason.kind for reason in found.reasons], found.missing) == (kinds, missing)


@PROFILE
@given(
    st.one_of(
        st.text(max_size=200),
        st.none(),
        st.integers(),
        st.binary(max_size=9),
        st.lists(st.text(max_size=3), max_size=3),
        st.text("0123456789/ ,.:{}'()nodeprtaiv", max_size=80).map(lambda tail: HEAD + tail),
    )
)
def test_no_text_fails_or_claims_more_than_it_says(thing):
    found = parse(thing)
    assert found.missing is None or 0 <= found.missing <= found.nodes
    assert all(reason.kind in KINDS for reason in found.reasons)
    assert plain(found)["total"] == found.total


@pytest.mark.parametrize(
    "text", [None, 5, b"0/1", "", "Successfully assigned", ["0/4 nodes are available: ."]]
)
def test_what_is_no_message(text):
    assert parse(text) == Message()


@pytest.mark.parametrize(
    "part",
    [
        "1 a, ",
        "a" * 50,
        "0/4 nodes are available: ",
        "1 node(s) had taint {a: b}, ",
        ". preemption: ",
        ".   ",
    ],
)
def test_a_huge_message_is_bounded(part):
    """Nothing is claimed to be missing from what was not read, and no pattern takes long."""
    begin = time.process_time()
    found = parse(HEAD + part * (10 * MAX_TEXT // len(part)) + ".")
    assert len(found.reasons) <= MAX_REASONS
    assert not (found.whole and "preemption" not in part)
    assert time.process_time() - begin < 5
