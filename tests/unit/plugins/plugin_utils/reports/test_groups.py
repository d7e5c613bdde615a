# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alike findings are one group; consequences stand below their cause."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    EvidenceRef,
    Finding,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    groups,
)


def finding(code, host=None, severity="critical", because=(), component=None, **more):
    summary = more.pop("summary", "it is so")
    return Finding(code, severity, "k", host, component, summary, because=because, **more)


def shape(findings):
    return [
        (entry.depth, entry.group.first.code, entry.group.hosts)
        for entry in groups.chain(groups.group(findings))
    ]


def test_findings_that_differ_in_host_and_evidence_are_one_group():
    found = groups.group(
        finding(
            "KM407",
            f"w{n}",
            summary=f"the setting of w{n} is lost",
            evidence=(EvidenceRef("file", f"w{n}", path="/etc/x", line=n),),
        )
        for n in range(60)
    )
    assert [(len(item.hosts), item.count) for item in found] == [(60, 60)]
    assert groups.summary_of(found[0]) == "the setting is lost"


def test_the_name_of_the_only_host_stays_in_its_summary():
    (found,) = groups.group([finding("KM514", "w1", summary="w1 is cordoned")])
    assert groups.summary_of(found) == "w1 is cordoned"


def test_another_text_remedy_or_component_is_another_group():
    found = groups.group(
        [
            finding("KM101", "m1", component="a"),
            finding("KM101", "m2", component="b"),
            finding("KM101", "m3", component="b", remedy="other"),
        ]
    )
    assert [item.hosts for item in found] == [("m1",), ("m2",), ("m3",)]


def test_findings_without_a_host_stay_apart_and_those_of_nodes_are_grouped():
    assert len(groups.group([finding("KM210", summary="a"), finding("KM210", summary="b")])) == 2
    nodes = groups.group(finding("KM512", node=f"n{n}") for n in range(3))
    assert [item.hosts for item in nodes] == [("n0", "n1", "n2")]


def test_many_texts_of_one_fault_are_three_groups_and_the_rest():
    found = groups.group(finding("KM404", f"w{n}", summary=f"text {n}") for n in range(100))
    assert [item.count for item in found] == [1, 1, 1, 97]
    assert [item.mixed for item in found] == [False, False, False, True]


def test_a_consequence_stands_below_its_cause_whatever_their_severities():
    assert shape(
        [
            finding("KM113", severity="warning", because=("KM101",)),
            finding("KM502", "w1", severity="warning"),
            finding("KM101", "m2", component="kube-controller-manager", severity="info"),
            finding("KM105", "m1"),
        ]
    ) == [
        (0, "KM105", ("m1",)),
        (0, "KM101", ("m2",)),
        (1, "KM113", ()),
        (0, "KM502", ("w1",)),
    ]


def test_a_cause_is_as_urgent_as_what_it_leads_to():
    assert [
        row[:2]
        for row in shape(
            [
                finding("KM203", because=("KM105",)),
                finding("KM404", "w1", severity="warning"),
                finding("KM105", "m1", severity="info", component="kube-scheduler"),
            ]
        )
    ] == [(0, "KM105"), (1, "KM203"), (0, "KM404")]


def test_only_the_component_that_the_catalogue_names_explains():
    found = [
        finding("KM101", "m2", component="kube-scheduler"),
        finding("KM113", severity="warning", because=("KM101",)),
    ]
    assert [row[0] for row in shape(found)] == [0, 0]


def test_a_circle_of_causes_ends():
    rows = shape(
        [
            finding("KM114", "m1", component="a", because=("KM114",)),
            finding("KM114", "m2", component="b", because=("KM114",)),
            finding("KM107", "m1", because=("KM115",)),
            finding("KM115", because=("KM107",)),
        ]
    )
    assert len(rows) == 4
    assert rows[0][0] == 0


def test_the_cause_on_the_same_host_is_nearer():
    entries = groups.chain(
        groups.group(
            [
                finding("KM601", "w1", summary="a"),
                finding("KM601", "w2", summary="b"),
                finding("KM600", "w2", severity="warning", because=("KM601",)),
            ]
        )
    )
    assert [(entry.depth, entry.group.hosts) for entry in entries] == [
        (0, ("w1",)),
        (0, ("w2",)),
        (1, ("w2",)),
    ]
    assert [item.first.code for item in entries[1].leads_to] == ["KM600"]
