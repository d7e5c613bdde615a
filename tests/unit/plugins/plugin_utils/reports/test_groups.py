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


def test_a_name_is_not_a_part_of_another_name():
    found = groups.group(
        [
            finding("KM404", "w1", summary="w1 lacks w10.example"),
            finding("KM404", "w2", summary="w2 lacks w20.example"),
            finding("KM404", "1", summary="limit 128 of 1"),
            finding("KM404", "2", summary="limit 228 of 2"),
        ]
    )
    assert len(found) == 4


def test_the_name_of_the_node_and_of_the_host_are_both_left_out():
    found = groups.group(
        finding("KM514", f"10.0.0.{n}", node=f"w{n}", summary=f"w{n} is cordoned by x")
        for n in (1, 2)
    )
    assert [groups.summary_of(item) for item in found] == ["the host is cordoned by x"]


def test_no_text_of_a_group_names_one_of_its_hosts():
    (found,) = groups.group(
        finding(
            "KM514",
            name,
            summary=f"the taint of {name} (node {name}) and {name}'s kubelet differ (/x/{name}).",
            remedy=f"kubectl uncordon {name} by hand",
        )
        for name in ("w1.example", "w2.example")
    )
    assert groups.summary_of(found) == ("the taint (node) and HOST's kubelet differ (/x/HOST).")
    assert groups.remedy_of(found) == "kubectl uncordon HOST by hand"
    (alone,) = groups.group([found.first])
    assert groups.remedy_of(alone) == "kubectl uncordon w1.example by hand"


def test_a_fix_with_another_address_is_another_group():
    found = groups.group(
        finding("KM502", f"w{n}", summary=f"refused by 10.0.0.{n}", remedy=f"edit 10.0.0.{n}")
        for n in (1, 2)
    )
    assert [item.hosts for item in found] == [("w1",), ("w2",)]


def test_the_rest_is_one_group_only_where_nothing_but_texts_differs():
    def row(number, **more):
        return finding("KM114", f"w{number}", summary=f"text {number}", **more)

    found = groups.group(
        [row(n, component="a", command="x") for n in range(9)]
        + [row(10, component="b"), row(11, because=("KM107",)), row(12, severity="warning")]
    )
    assert [(item.first.component, item.first.command, item.count) for item in found] == [
        ("a", "x", 1),
        ("a", "x", 1),
        ("a", "x", 1),
        ("a", "x", 6),
        ("b", None, 1),
        (None, None, 1),
        (None, None, 1),
    ]
    assert groups.summary_of(found[3]) == "for example w3: text 3"
    assert groups.differences(found[3]) == "texts"


def test_other_fixes_in_the_rest_are_stated():
    found = groups.group(
        finding("KM404", f"w{n}", summary="a limit", remedy=f"edit /etc/{n}") for n in range(9)
    )[-1]
    assert groups.differences(found) == "fixes"
    assert groups.remedy_of(found) == "for example w3: edit /etc/3"


def test_hosts_whose_fix_has_another_label_are_another_group():
    labels = {"w1": "fix (automatic, risk 2)"}
    found = groups.group(
        (finding("KM502", f"w{n}") for n in (1, 2, 3)),
        lambda item: labels.get(item.host, "fix (manual)"),
    )
    assert [item.hosts for item in found] == [("w1",), ("w2", "w3")]


def test_evidence_at_another_place_is_stated():
    def row(number, folder, line, text="x"):
        proof = EvidenceRef("file", f"w{number}", path=f"/{folder}/w{number}", line=line, text=text)
        return finding("KM407", f"w{number}", evidence=(proof,))

    (same,) = groups.group([row(1, "a", 1), row(2, "a", 2)])
    (other,) = groups.group([row(1, "a", 1), row(2, "b", 1)])
    (text,) = groups.group([row(1, "a", 1), row(2, "a", 1, "y")])
    assert [item.other_evidence for item in (same, other, text)] == [False, True, True]


def test_another_cause_with_the_same_code_is_named_with_its_hosts():
    entries = groups.chain(
        groups.group(
            [
                finding("KM601", "w1", summary="a"),
                finding("KM601", "w2", summary="b"),
                finding("KM601", "w3", summary="c"),
                *(
                    finding("KM600", f"w{n}", severity="warning", because=("KM601",))
                    for n in (1, 2)
                ),
            ]
        )
    )
    assert [(entry.depth, entry.group.hosts) for entry in entries[:2]] == [
        (0, ("w1",)),
        (1, ("w1", "w2")),
    ]
    assert entries[1].others == (groups.Cause("KM601", ("w2",)),)


def test_a_consequence_of_two_faults_stands_once_and_names_both():
    entries = groups.chain(
        groups.group(
            [
                finding("KM105", "m1", component="kube-scheduler"),
                finding("KM107", "m2", component="kube-scheduler"),
                finding("KM203", because=("KM105", "KM107")),
            ]
        )
    )
    assert [entry.group.first.code for entry in entries].count("KM203") == 1
    below = next(entry for entry in entries if entry.group.first.code == "KM203")
    assert len(below.others) == 1
    assert sum(entry.group.count for entry in entries) == 3


def test_a_circle_keeps_every_finding_once():
    rows = groups.chain(
        groups.group(
            [
                finding("KM107", "m1", because=("KM115",)),
                finding("KM115", because=("KM114",)),
                finding("KM114", "m1", because=("KM107",)),
            ]
        )
    )
    assert sorted(entry.depth for entry in rows) == [0, 1, 2]


def test_the_host_that_is_shown_is_the_first_as_people_count():
    (found,) = groups.group(finding("KM407", f"w{n}") for n in (10, 300, 2, 70))
    assert found.first.host == "w2"
    assert found.hosts == ("w2", "w10", "w70", "w300")
