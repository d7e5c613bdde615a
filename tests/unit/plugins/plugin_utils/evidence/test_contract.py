# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A collector whose answer has a value of another type counts as one that failed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import contract
from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import registry
from tests.unit.plugins.plugin_utils.evidence.test_decode import JSON
from tests.unit.support.facts import facts

Nodes = registry.CLUSTER["nodes"]
Etcd, Limits = registry.NODE["etcd"], registry.NODE["limits"]


def document(data, status="ok", name="limits", **more):
    record = {"status": status, "data": data, "error": None}
    return {"host": "w1", "collectors": {name: record, "system": {"status": "absent"}}, **more}


def test_sound_evidence_is_the_same_document():
    sound = document({"threads": 7})
    assert contract.checked(sound) is sound
    assert contract.answer(sound, Limits).threads == 7


def test_a_malformed_answer_counts_as_an_error_and_names_the_path():
    spoiled = document({"threads": "7", "processes": [{"pid": []}]})
    checked = contract.checked(spoiled)
    limits = checked["collectors"]["limits"]
    assert (limits["status"], limits["data"]) == ("error", None)
    facts(limits["error"], "another type", "threads, processes[0].pid")
    assert checked["collectors"]["system"] is spoiled["collectors"]["system"]
    assert spoiled["collectors"]["limits"]["status"] == "ok"
    assert contract.answer(checked, Limits) == Limits()


@pytest.mark.parametrize("threads", [7, None])
def test_an_answer_is_given_where_the_collector_answered(threads):
    answer = contract.optional_answer(document({"threads": threads}), Limits)
    assert answer == Limits(threads=threads)


@pytest.mark.parametrize(
    ("data", "status"), [({"threads": 7}, "error"), ({}, "ok"), (None, "ok"), (None, "absent")]
)
def test_no_answer_differs_from_an_empty_one(data, status):
    assert contract.optional_answer(document(data, status), Limits) is None
    assert contract.optional_answer({}, Limits) is None


def test_a_message_names_the_first_paths_only():
    named = contract.checked(document({"used_up": [7] * 100}))["collectors"]["limits"]["error"]
    assert named.endswith("used_up[3], used_up[4], …")


def test_what_an_error_brought_is_checked_too():
    part = document({"members": []}, "error", "etcd")
    assert contract.checked(part) is part
    assert contract.answer(part, Etcd) == Etcd()
    assert contract.partial_answer(document({"error": "x"}, "error", "etcd"), Etcd).error == "x"
    assert (
        "members"
        in contract.checked(document({"members": 7}, "error", "etcd"))["collectors"]["etcd"][
            "error"
        ]
    )


def test_a_cluster_has_collectors_of_its_own():
    api = document({"items": [{"name": 7}]}, name="nodes", kind="cluster")
    assert contract.checked(api)["collectors"]["nodes"]["status"] == "error"
    api = document({"items": [{"name": "m1"}]}, name="nodes", kind="cluster")
    assert contract.answer(api, Nodes).items[0].name == "m1"
    host = document({"items": [{"name": 7}]}, name="nodes")
    assert contract.checked(host) is host


def test_a_collector_of_another_release_is_left_as_it_is():
    other = document({"x": 7}, name="unheard_of")
    assert contract.checked(other) is other


def test_data_are_decoded_once():
    known = document({"threads": 7})
    assert contract.answer(known, Limits) is contract.answer(known, Limits)
    assert contract.answer(document({"threads": 8}), Limits).threads == 8


@pytest.mark.parametrize("collectors", [None, 7, [], {"limits": None}, {"limits": {"data": None}}])
def test_what_is_no_record_is_left_to_others(collectors):
    odd = {"host": "w1", "collectors": collectors}
    assert contract.checked(odd) is odd


@given(st.dictionaries(st.sampled_from(["limits", "etcd", "x"]), JSON))
def test_it_never_raises(collectors):
    contract.checked({"host": "w1", "collectors": collectors})
    contract.checked({"kind": "cluster", "collectors": collectors})
