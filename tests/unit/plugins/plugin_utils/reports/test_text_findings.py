# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A finding in the text report has its place, its proof and its fix, in this order."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    EvidenceRef,
    Finding,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    groups,
    text_findings,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import Run
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.text_page import (
    Page,
    plain,
)

RUN = Run(
    "20261121T090000Z-1a2b3c",
    "2026-11-21T09:00:00Z",
    "2026-11-21T09:00:09Z",
    "observe",
    "/r",
    "0.1.0",
    titles={"KM407": "Settings are lost", "KM101": "Election disabled", "KM113": "Surplus pods"},
)


def finding(code, host=None, severity="warning", **more):
    component = more.pop("component", None)
    return Finding(code, severity, "k", host, component, more.pop("summary", "it is so"), **more)


CAUSE = finding("KM101", "m1", "critical", component="kube-controller-manager")


def lines(findings, write=text_findings.write, width=100):
    page = Page(width, plain)
    write(page, groups.chain(groups.group(findings)), RUN)
    return [line for line in page.lines if line]


def proofs(count):
    return tuple(EvidenceRef("file", "w1", path="/etc/x", line=n) for n in range(1, count + 1))


def test_a_finding_has_place_title_summary_proof_and_fix():
    shown = lines([finding("KM407", "w1", evidence=proofs(1), remedy="set it", command="run this")])
    assert shown[0] == "WARNING KM407 w1: Settings are lost"
    assert [line.strip() for line in shown[1:]] == [
        "it is so",
        "evidence: /etc/x:1",
        "fix (manual): set it",
        "run this",
    ]


@pytest.mark.parametrize(("severity", "shown"), [("critical", 6), ("warning", 3)])
def test_evidence_is_cut_and_what_is_left_out_is_counted(severity, shown):
    text = lines([finding("KM407", "w1", severity, evidence=proofs(9))])
    assert sum("/etc/x:" in line for line in text) == shown
    assert f"(+{9 - shown} more lines, all in report.json)" in text[-1]


def test_hosts_of_a_group_are_counted():
    text = lines(finding("KM407", f"w{n}", evidence=proofs(1)) for n in range(1, 61))
    assert text[0] == "WARNING KM407 w1-w60 (60 hosts): Settings are lost"
    assert "+59 more hosts" in text[-1]


def test_a_consequence_is_indented_below_its_cause():
    text = lines([CAUSE, finding("KM113", because=("KM101",))])
    assert text.index("  leads to:") < text.index("    WARNING KM113: Surplus pods")


def test_the_list_has_one_line_for_each_group_within_the_width():
    text = lines(
        [CAUSE, finding("KM113", because=("KM101",))],
        write=text_findings.write_list,
        width=40,
    )
    assert text == ["CRITICAL KM101 m1 kube-controller-manag…", "  WARNING KM113: Surplus pods"]
    (line,) = lines(
        [finding("KM101", "a-host-with-a-very-long-name.example.com", "critical")],
        write=text_findings.write_list,
        width=40,
    )
    assert len(line) == 40
    assert line.endswith("…")


def test_many_names_leave_room_for_the_title():
    (line,) = lines(
        [finding("KM101", f"host-{n * 2}", "critical") for n in range(20)],
        write=text_findings.write_list,
        width=80,
    )
    assert line.endswith("and 18 more (20 hosts): Election disabled")


def test_other_fixes_and_other_evidence_are_stated():
    text = lines(
        finding("KM407", f"w{n}", summary=f"text {n}", remedy=f"edit /etc/{n}") for n in range(9)
    )
    assert "  for example w3: text 3" in text
    assert "  fix (manual): for example w3: edit /etc/3" in text
    assert text[-1] == "  the other texts and fixes differ: /r/report.json"
    text = lines(
        finding("KM407", f"w{n}", evidence=proofs(n), remedy=f"edit it on w{n}") for n in (1, 2)
    )
    assert text[-2:] == [
        " " * 12 + "(+1 more host with other evidence, all in report.json)",
        "  fix (manual): edit it on HOST",
    ]


def test_the_first_host_without_evidence_hides_none():
    text = lines([finding("KM407", "w1"), finding("KM407", "w2", evidence=proofs(1))])
    assert text[-1] == "  (+1 more host with other evidence, all in report.json)"


def test_a_further_cause_on_another_host_is_named_with_it():
    text = lines(
        [
            finding("KM601", "w1", "critical", summary="a"),
            finding("KM601", "w2", "critical", summary="b"),
            *(finding("KM600", f"w{n}", because=("KM601",)) for n in (1, 2)),
        ]
    )
    assert "      also because of: KM601 (w2)" in text


def test_a_line_of_the_list_fits_whatever_characters_it_has():
    for name in ("\u8282" * 30, "\u202e" * 30):
        (line,) = lines(
            [finding("KM101", name, "critical")], write=text_findings.write_list, width=80
        )
        assert sum(1 + (char == "\u8282") for char in line) <= 80
        assert line.endswith("…")
