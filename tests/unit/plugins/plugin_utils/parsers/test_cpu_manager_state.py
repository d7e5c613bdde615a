# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's cpu_manager_state.

Real files, both generations, and whatever else may lie there.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    cpu_manager_state,
)

cpu_state = cpu_manager_state.cpu_state

POD, OTHER = "777870b5-c64f-42f5-9296-688b9dc212ba", "fb15e10a-b6a5-4aaa-8fcd-76c1aa64e6fd"
# Written by kubelets.
REAL = [
    '{"policyName":"static","defaultCpuSet":"0-3","checksum":611748604}',
    (
        '{"policyName":"static","defaultCpuSet":"0,10-15,25-31",'
        f'"entries":{{"{POD}":{{"container-1":"16-24"}},"{OTHER}":{{"container-1":"1-9"}}}},'
        '"checksum":318470969}'
    ),
    '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}',
]


@pytest.mark.parametrize("text", REAL)
def test_what_a_kubelet_wrote_is_right(text):
    assert (cpu_state(text).checksum, cpu_state(text).problem) == ("right", "")


def test_its_sets_and_policy():
    state = cpu_state(REAL[1])
    assert (state.policy, state.generation, len(state.default)) == ("static", 2, 14)
    assert state.entries == {
        (POD, "container-1"): frozenset(range(16, 25)),
        (OTHER, "container-1"): frozenset(range(1, 10)),
    }
    assert state.assigned == frozenset(range(1, 10)) | frozenset(range(16, 25))
    assert state.overlaps == ()
    assert cpu_state(REAL[0]).generation is None
    assert cpu_state(REAL[2]).default == frozenset()


@pytest.mark.parametrize(
    "change",
    [
        {"policyName": "none"},
        {"defaultCpuSet": "0-2"},
        {"entries": {POD: {"a": "1"}}},
        {"checksum": 1},
    ],
)
def test_a_change_makes_the_checksum_wrong(change):
    assert cpu_state(json.dumps({**json.loads(REAL[0]), **change})).checksum == "wrong"


@pytest.mark.parametrize("checksum", [{}, {"checksum": 0}, {"checksum": None}])
def test_none_is_accepted(checksum):
    assert (
        cpu_state(json.dumps({"policyName": "static", "defaultCpuSet": "0", **checksum})).checksum
        == "absent"
    )


def test_the_older_generation_is_by_container():
    state = cpu_state(
        json.dumps(
            {"policyName": "static", "defaultCpuSet": "0", "entries": {"c1": "1", "c2": "2-3"}}
        )
    )
    assert (state.generation, state.entries) == (
        1,
        {("", "c1"): frozenset({1}), ("", "c2"): frozenset({2, 3})},
    )


def test_sets_that_meet():
    entries = {POD: {"a": "1-2", "b": "2"}, OTHER: {"a": "5"}}
    state = cpu_state(
        json.dumps({"policyName": "static", "defaultCpuSet": "0,5", "entries": entries})
    )
    assert state.overlaps == (((POD, "a"), (POD, "b")), ((OTHER, "a"), None))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (None, "empty"),
        ("", "empty"),
        (" \n", "empty"),
        ("{", "no JSON"),
        ("[]", "no JSON object"),
        ('"x"', "no JSON object"),
        ("[" * 100000, "no JSON"),
        ('{"policyName":1}', "policyName is no text"),
        ('{"defaultCpuSet":"0-"}', "'0-' is no CPU"),
        ('{"entries":[1]}', "entries is no object"),
        ('{"entries":{"a":"1","b":{}}}', "entries are of two kinds"),
        ('{"entries":{"a":{"b":"x"}}}', "'x' is no CPU"),
        ('{"entries":{"a":1.5}}', "'1.5' is no CPU"),
    ],
)
def test_what_no_kubelet_can_read(text, word):
    assert word in cpu_state(text).problem


# Written by a kubelet of 1.36.3 with the gate PodLevelResourceManagers.
LEVELLED = (
    '{"policyName":"static","defaultCpuSet":"0","entries":'
    '{"308cc738-7eb8-4499-9a59-e5d6c607fb9c":{"work":"1"}},"checksum":3409385981}'
)


@pytest.mark.parametrize(
    "text", [LEVELLED, '{"policyName":"static","defaultCpuSet":"0-1","checksum":653018852}']
)
def test_a_kubelet_that_could_pin_pods_has_another_checksum(text):
    assert cpu_state(text).checksum == cpu_manager_state.RIGHT
    assert cpu_state(text.replace('"0', '"1', 1)).checksum == cpu_manager_state.WRONG


@pytest.mark.parametrize("more", ["podEntries", "data", "dataChecksum"])
def test_a_newer_format_is_not_judged(more):
    state = cpu_state(json.dumps({**json.loads(LEVELLED), more: {}}))
    assert (state.problem, state.policy, state.checksum, state.more) == (
        "",
        "static",
        cpu_manager_state.UNKNOWN,
        (more,),
    )


CHECKSUMS = (
    cpu_manager_state.RIGHT,
    cpu_manager_state.WRONG,
    cpu_manager_state.ABSENT,
    cpu_manager_state.UNKNOWN,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["policyName", "defaultCpuSet", "entries", "checksum", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_document_is_answered(document):
    state = cpu_state(json.dumps(document))
    assert isinstance(state.problem, str)
    assert len(state.problem) < 300
    assert state.checksum in CHECKSUMS
