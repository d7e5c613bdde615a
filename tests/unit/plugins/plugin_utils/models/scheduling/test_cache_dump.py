# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scheduler's cache as 1.14 to 1.36 dump it, and what it proves against the API and a message.

The recorded ones are of real clusters.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.scheduling import (
    cache_dump,
)

Node = cache_dump.Node

FIXTURES = Path(__file__).parents[5] / "fixtures" / "scheduler"
KNOWN = ["m1", "w1", "zoned"]
SHORT = "0/3 nodes are available: 1 Too many pods, 1 node(s) didn't match node selector."
HEAD = "I1121 20:01:02.{0:06d}       1 dumper.go:4{1}] "


def recorded(version):
    return (FIXTURES / f"dump-{version}.log").read_text(encoding="utf-8").splitlines()


def of_1_14(*names):
    """Return a dump as 1.14 prints it: other words for the pods, and no blank between resources."""
    lines = [HEAD.format(1, 2) + "Dump of cached NodeInfo"]
    for index, name in enumerate(names):
        lines += [
            HEAD.format(index + 2, 4),
            f"Node name: {name}",
            "Requested Resources: {MilliCPU:0}",
            "Allocatable Resources:{MilliCPU:2000}",
            "Number of Pods: 1",
            "Pods:",
            f"name: p{index}, namespace: default, uid: 1-2, phase: Running, nominated node: ",
        ]
    return [
        *lines,
        HEAD.format(9, 5) + "Dump of scheduling queue:",
        "name: agent-x, namespace: default, uid: 1-3, phase: Pending, nominated node: ",
    ]


def of_json(as_list):
    """--logging-format=json: one line each; its value is a text, lately a list of objects."""
    nodes = [
        {
            "name": name,
            "deleted": name == "gone",
            "requested": {},
            "allocatable": {},
            "pods": [{"name": "p", "namespace": "d"}],
        }
        for name in (*KNOWN, "gone")
    ]
    pods = [{"name": "agent-x", "namespace": "default", "uid": "1-3", "phase": "Pending"}]
    text = "\n\n".join(
        f"Node name: {one['name']}\nDeleted: {str(one['deleted']).lower()}\nRequested Resources:"
        " &{}\nAllocatable Resources:&{}\nScheduled Pods(number: 1):\nname: p, namespace: d,"
        " uid: 1-2, phase: Running, nominated node: \n"
        for one in nodes
    )
    queue = "name: agent-x, namespace: default, uid: 1-3, phase: Pending, nominated node: \n"
    return [
        json.dumps(
            {
                "ts": 1.5,
                "caller": "dumper.go:52",
                "msg": "Dump of cached NodeInfo",
                "v": 0,
                "nodes": nodes if as_list else text,
            }
        ),
        json.dumps(
            {
                "ts": 1.5,
                "msg": "Dump of scheduling queue",
                "summary": "x",
                "pods": pods if as_list else queue,
            }
        ),
        json.dumps({"ts": 1.6, "msg": "name: other, namespace: x", "pods": pods}),
    ]


@pytest.mark.parametrize(
    ("version", "deleted", "pods", "queue"),
    [
        ("v1.18.4", None, (5, 1, 0), ("default/everywhere-n8phm", "default/everywhere-6cmbc")),
        ("v1.36.3", False, (5, 2, 0), ("default/everywhere-hhgcs",)),
    ],
)
def test_recorded_dumps(version, deleted, pods, queue):
    found = cache_dump.parse(recorded(version))
    assert found.nodes == tuple(
        Node(name, deleted, count) for name, count in zip(KNOWN, pods, strict=True)
    )
    assert (found.queue, found.found, found.whole, found.names) == (
        queue,
        True,
        True,
        frozenset(KNOWN),
    )
    assert "Dump of cached NodeInfo" in found.lines[0]
    assert not found.mismatch


def test_as_1_14_prints_it():
    found = cache_dump.parse(of_1_14(*KNOWN))
    assert found.nodes == tuple(Node(name, None, 1) for name in KNOWN)
    assert found.queue == ("default/agent-x",)
    assert found.whole


@pytest.mark.parametrize("as_list", [False, True])
def test_as_json(as_list):
    found = cache_dump.parse(of_json(as_list))
    assert found.names == frozenset(KNOWN)
    assert Node("gone", True, 1) in found.nodes
    assert found.whole
    assert found.queue == ("default/agent-x",)
    assert len(found.lines) == 2


def test_lines_of_others_in_between_are_nobodys_nodes():
    lines = of_1_14(*KNOWN)
    lines[8:8] = [
        "I1121 20:01:02.000004       1 factory.go:1] Unable to schedule default/agent-x: no fit: "
        + SHORT
        + "; waiting",
        (
            "W1121 20:01:02.000005       1 comparer.go:67] cache mismatch: missed nodes: w7;"
            " redundant nodes: "
        ),
    ]
    found = cache_dump.parse(lines)
    assert found.names == frozenset(KNOWN)
    assert found.whole
    assert len(found.mismatch) == 1


def test_of_several_dumps_the_last_one_counts():
    found = cache_dump.parse(
        [
            *of_1_14("m1", "old"),
            *of_1_14(*KNOWN),
            "I1121 20:01:03.000000       1 x.go:1] Node name: later",
        ]
    )
    assert found.names == frozenset(KNOWN)
    assert found.queue == ("default/agent-x",)


@pytest.mark.parametrize("version", ["v1.18.4", "v1.36.3"])
def test_a_dump_that_does_not_go_on_to_its_end_is_not_whole(version):
    lines = recorded(version)
    end = next(index for index, line in enumerate(lines) if "Dump of scheduling queue" in line)
    for cut in (lines[:end], lines[: end // 2]):
        assert (cache_dump.parse(cut).found, cache_dump.parse(cut).whole) == (True, False)
    assert not cache_dump.parse(lines[end:]).found


@pytest.mark.parametrize(
    "lines",
    [
        [of_json(False)[0][:80] + "\u2026 [900 more bytes]", *of_json(False)[1:]],
        [
            line + ("\u2026 [17 more bytes]" if "Allocatable" in line else "")
            for line in of_1_14(*KNOWN)
        ],
        [
            line + ("\u2026 [1 more byte]" if "Allocatable" in line else "")
            for line in of_1_14(*KNOWN)
        ],
    ],
)
def test_a_line_that_was_cut_makes_it_not_whole(lines):
    assert (cache_dump.parse(lines).found, cache_dump.parse(lines).whole) == (True, False)


@pytest.mark.parametrize("lines", [[], ["nonsense", None, 3], ["Node name: m1"], ['{"a'], ["{}"]])
def test_what_is_no_dump(lines):
    assert cache_dump.parse(lines) == cache_dump.Dump()


def test_no_shape_of_json_ends_it():
    for value in (None, 7, "x", {"a": 1}, [None, 7, {"name": 5}, {"name": "m1", "pods": 3}]):
        lines = [
            json.dumps({"msg": "Dump of cached NodeInfo", "nodes": value}),
            json.dumps({"msg": "Dump of scheduling queue", "pods": value}),
        ]
        assert cache_dump.parse(lines).found
    assert not cache_dump.parse(['["Dump of cached NodeInfo"', "Dump of scheduling queue"]).nodes
    assert not cache_dump.parse(['{"Dump of cached NodeInfo"', "Dump of scheduling queue"]).whole


def test_what_it_said_of_pods():
    new = (
        "0/3 nodes are available: 1 Too many pods. preemption: 0/3 nodes are available: 3"
        " Preemption is not helpful for scheduling."
    )
    lines = [
        "I1121 20:01:02.000004       1 factory.go:1] Unable to schedule default/a: no fit: "
        + SHORT
        + "; waiting",
        (
            'I1121 20:01:02.000004       1 schedule_one.go:1] "Unable to schedule pod; no fit;'
            f' waiting" pod="default/b" err="{new}"'
        ),
        json.dumps(
            {"msg": "Unable to schedule pod; no fit; waiting", "pod": {"name": "b"}, "err": new}
        ),
        "0/ nothing",
    ]
    assert cache_dump.messages(lines) == [SHORT, new]
    assert cache_dump.matters(
        [*lines, 'I1121 x] Added node "w1" in group "" to NodeTree', "I1121 x] something else"]
    ) == [*lines[:3], 'I1121 x] Added node "w1" in group "" to NodeTree']


def compared(message=SHORT, names=tuple(KNOWN), dump=None, faulty=True):
    return cache_dump.compare(names, cache_dump.parse(of_1_14(*(dump or KNOWN))), message, faulty)


def test_the_cache_is_complete_and_the_snapshot_is_not():
    found = cache_dump.compare(KNOWN, cache_dump.parse(recorded("v1.18.4")), SHORT, True)
    assert (found.api, found.cached, found.counted, found.reasons, found.verdict) == (
        3,
        3,
        3,
        2,
        cache_dump.SHORT,
    )
    assert "the cache is complete (3 nodes)" in found.sentence
    assert "lacks 1" in found.sentence


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({"faulty": False}, cache_dump.OPEN),
        ({"faulty": None}, cache_dump.OPEN),
        ({"message": SHORT.replace("0/3", "0/4")}, cache_dump.OPEN),
        ({"message": "0/3 nodes are available: 3 Too many pods."}, cache_dump.WHOLE),
        ({"message": "0/3 nodes are available: 1 Too ma"}, cache_dump.UNKNOWN),
        ({"message": ""}, cache_dump.UNKNOWN),
        ({"dump": ["m1", "zoned"]}, cache_dump.LACKING),
        ({"dump": [*KNOWN, "gone"]}, cache_dump.LACKING),
        ({"names": None}, cache_dump.UNKNOWN),
    ],
)
def test_whatever_may_be_something_else_proves_nothing(more, verdict):
    assert compared(**more).verdict == verdict


def test_without_a_whole_dump_nothing_is_compared():
    for lines in ([], of_1_14(*KNOWN)[:12]):
        found = cache_dump.compare(KNOWN, cache_dump.parse(lines), SHORT, True)
        assert (found.api, found.cached, found.counted, found.verdict) == (
            3,
            None,
            3,
            cache_dump.UNKNOWN,
        )


def test_a_node_of_which_only_pods_are_left_is_none_of_the_cache():
    found = cache_dump.compare(KNOWN, cache_dump.parse(of_json(True)), SHORT, True)
    assert (found.cached, found.only_cached, found.verdict) == (3, (), cache_dump.SHORT)


def test_who_is_missing_is_named():
    found = compared(dump=["m1", "zoned", "other"])
    assert (found.not_cached, found.only_cached) == (
        ("w1",),
        ("other",),
    )
    assert "lacks w1 and has other too" in found.sentence


def test_a_large_cluster_is_read():
    names = [f"n{number}" for number in range(5000)]
    assert cache_dump.parse(of_1_14(*names)).names == frozenset(names)
