# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's memory_manager_state.

Real files and their checksums, and whatever else may lie there.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import (
    memory_manager_state,
)

memory_state = memory_manager_state.memory_state

POD = "b8f64a4c-1111-2222-3333-444455556666"
# The first by a kubelet of 1.36.3, the second from the kubelet's own tests, the third hashed by the
# printer that the kubelet uses (go-spew 1.1.1) from
# its records: numbers are sorted as numbers, what is missing is <nil>, what is empty is not.
REAL = [
    '{"policyName":"None","machineState":{},"checksum":4236770233}',
    (
        '{"policyName":"static","machineState":{"0":{"numberOfAssignments":0,"memoryMap":{"memor'
        'y":{"total":2048,"systemReserved":512,"allocatable":1536,'
        '"reserved":512,"free":1024}},"cells":[]}},"entries":{"pod":{"container1":[{"numaAffinit'
        'y":[0],"type":"memory","size":512}]}},"checksum":4215593881}'
    ),
    '{"policyName":"Static","machineState":{"10":{"numberOfAssignments":2,"memoryMap":{"memory":'
    '{"total":68719476736,"systemReserved":1073741824,'
    '"allocatable":67645734912,"reserved":1073741824,"free":66571993088},"hugepages-1Gi":{"total'
    '":0,"systemReserved":0,"allocatable":0,"reserved":0,'
    '"free":0},"hugepages-2Mi":null},"cells":[2,10]},"2":{"numberOfAssignments":0,"memoryMap":nu'
    'll,"cells":null},"3":null},"entries":{"'
    + POD
    + '":{"b":[{"numaAffinity":[2,10],"type":"memory","size":18446744073709551615},'
    '{"numaAffinity":null,"type":"hugepages-2Mi","size":1}],"a":null,"c":[]},'
    '"0a":{}},"checksum":2307851713}',
]


@pytest.mark.parametrize("text", REAL)
def test_what_a_kubelet_wrote_is_right_and_a_digit_makes_it_wrong(text):
    assert (memory_state(text).checksum, memory_state(text).problem, memory_state(text).policy) == (
        "right",
        "",
        json.loads(text)["policyName"],
    )
    assert memory_state(text[:-2] + "9}").checksum == "wrong"
    assert (
        memory_state(text.replace('tic"', 'tik"').replace('"None"', '"none"')).checksum == "wrong"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"machineState": {}},
        {"machineState": None},
        {"entries": {}},
        {"entries": None},
        {"entries": {"pod": {"container1": []}}},
    ],
)
def test_a_change_of_what_it_holds_makes_the_checksum_wrong(change):
    assert memory_state(json.dumps({**json.loads(REAL[1]), **change})).checksum == "wrong"


@pytest.mark.parametrize("checksum", [{}, {"checksum": 0}, {"checksum": None}])
def test_no_checksum_is_neither_right_nor_wrong(checksum):
    assert (
        memory_state(json.dumps({"policyName": "None", "machineState": {}, **checksum})).checksum
        == "absent"
    )


@pytest.mark.parametrize(
    "more",
    [
        {"podEntries": {}},
        {"dataChecksum": 1},
        {"machineState": {"0": {"newer": 1}}},
        {"entries": {"p": {"c": [{"newer": 1}]}}},
    ],
)
def test_a_newer_format_is_not_judged(more):
    state = memory_state(json.dumps({**json.loads(REAL[0]), **more}))
    assert (state.checksum, state.problem) == ("unknown", "")
    assert state.more


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (None, "empty"),
        (" \n", "empty"),
        ("{", "not what"),
        ("[]", "not what"),
        ("{}", "not what"),
        ('{"policyName":1}', "not what"),
        ("[" * 100000, "not what"),
        ('{"policyName":"None","machineState":[1]}', "not what"),
        ('{"policyName":"None","machineState":{"x":null}}', "not what"),
        ('{"policyName":"None","machineState":{"0":{"cells":[-1]}}}', "not what"),
        ('{"policyName":"None","machineState":{"0":{"cells":[true]}}}', "not what"),
        ('{"policyName":"None","entries":{"p":{"c":[{"size":18446744073709551616}]}}}', "not what"),
        ('{"policyName":"None","entries":{"p":{"c":[{"type":1}]}}}', "not what"),
        ('{"policyName":"None","entries":{"p":{"c":{}}}}', "not what"),
    ],
)
def test_what_no_kubelet_can_read(text, word):
    assert word in memory_state(text).problem


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "policyName",
                        "machineState",
                        "entries",
                        "checksum",
                        "0",
                        "memoryMap",
                        "cells",
                        "numaAffinity",
                        "type",
                        "size",
                        "x",
                    ]
                ),
                inner,
            )
        ),
    )
)
def test_any_document_is_answered(document):
    memory_state(json.dumps(document))
