# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run does not know: a few faults by name, many as a number, all with -v."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    HostRow,
    Missing,
    NotJudged,
    Verdict,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import text_gaps
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
    titles={"KM401": "One process holds most", "KM402": "Instances are used up"},
)
VERBOSE = dataclasses.replace(RUN, verbose=True)
HOSTS = (HostRow("w1", "w1", "k", "worker", "ok", "", 90),)


def lines(write, *arguments):
    page = Page(150, plain)
    write(page, *arguments)
    return page.lines


def lacking(count):
    return [
        Verdict(f"KM4{n:02}", "k", "unknown", "w1", None, (Missing("w1", "limits", "timeout"),))
        for n in range(1, count + 1)
    ]


def test_a_few_unknown_faults_are_named_with_what_is_missing():
    (line,) = lines(text_gaps.unknown, lacking(2), HOSTS, RUN)
    assert line.startswith("UNKNOWN KM401 One process holds most, KM402 Instances are used up:")
    assert "limits of w1 (timeout)" in line


def test_many_are_a_number_and_all_of_them_are_named_with_v():
    text = lines(text_gaps.unknown, lacking(9), HOSTS, RUN)
    assert text[0].startswith("UNKNOWN 9 faults")
    assert "limits of w1 (timeout)" in text[1]
    assert "KM409" not in "".join(text)
    assert "KM409" in "".join(lines(text_gaps.unknown, lacking(9), HOSTS, VERBOSE))


def test_nothing_unknown_is_no_line():
    assert lines(text_gaps.unknown, [Verdict("KM401", "k", "clear", "w1")], HOSTS, RUN) == []


def test_what_was_not_judged_and_what_is_clear_has_a_line_each():
    items = [NotJudged("KM402", "k", "tier"), NotJudged("KM401", "k", "limit")]
    judged = lines(text_gaps.not_judged, items, RUN)
    assert [line.split()[2] for line in judged] == ["KM401", "KM402"]
    verdicts = [Verdict(code, "k", "clear", "w1") for code in ("KM401", "KM402")]
    assert lines(text_gaps.clear, verdicts, RUN) == [
        "clear: KM401 One process holds most",
        "clear: KM402 Instances are used up",
    ]


def test_a_note_of_several_faults_is_written_once():
    verdicts = [Verdict(f"KM40{n}", "k", "clear", "w1", note="read in part") for n in (1, 2, 3)]
    assert lines(text_gaps.notes, verdicts, RUN) == ["note: read in part (3 faults; w1)"]
    assert lines(text_gaps.notes, verdicts[:1], RUN) == [
        "note: read in part (KM401 One process holds most; w1)"
    ]


def test_a_note_says_times_as_the_rest_of_the_report():
    note = "etcd: a manifest that was changed at 2026-11-21T08:30:00Z"
    (line,) = lines(text_gaps.notes, [Verdict("KM401", "k", "clear", "w1", note=note)], RUN)
    assert "2026-11-21 08:30 UTC" in line
    assert "2026-11-21T" not in line


@pytest.mark.parametrize(
    ("hosts", "note", "end"),
    [
        (("w1", "w2", "w3", "w4", "w5", "m1"), "read in part", "; m1, w1-w5)"),
        (("w1", "w2"), "the log of w1 is cut", "holds most)"),
        ((None,), "no etcd was found", "holds most)"),
    ],
)
def test_a_note_has_its_hosts_unless_it_names_one(hosts, note, end):
    verdicts = [Verdict("KM401", "k", "clear", host, note=note) for host in hosts]
    (line,) = lines(text_gaps.notes, verdicts, RUN)
    assert line.endswith(end)


@pytest.mark.parametrize(
    ("verdict", "length", "shown", "shown_verbose"),
    [
        ("clear", text_gaps.LONG_NOTE, 1, 1),
        ("clear", text_gaps.LONG_NOTE + 1, 0, 1),
        ("unknown", text_gaps.LONG_NOTE + 1, 1, 1),
        ("not_applicable", 20, 0, 1),
        ("present", text_gaps.LONG_NOTE + 1, 1, 1),
    ],
)
def test_a_long_list_of_what_is_in_order_needs_verbose(verdict, length, shown, shown_verbose):
    verdicts = [
        Verdict("KM401", "k", verdict, "w1", note="a " * (length // 2) + "b" * (length % 2))
    ]
    for run, number in ((RUN, shown), (VERBOSE, shown_verbose)):
        text = " ".join(lines(text_gaps.notes, verdicts, run))
        assert text.count("note: ") == number
