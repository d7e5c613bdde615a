# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report for programs: its fields are the interface's, and what decides the exit code."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    Result,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    json_report,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import (
    Symptom,
)
from tests.unit.support.report_result import RESULT, run


def test_the_fields_are_those_of_the_interface():
    report = json_report.render(RESULT, run())
    assert set(report) >= {
        "schema",
        "tool_version",
        "run_id",
        "started",
        "finished",
        "mode",
        "exit_code",
        "exit_reason",
        "clusters",
        "hosts",
        "verdicts",
        "not_judged",
        "findings",
        "symptom",
        "plan",
        "steps",
        "summary",
    }
    assert report["schema"] == "kubemend.report/1"
    assert report["clusters"] == [{"key": "k", "kubernetes_version": "v1.18.4", "hosts": ["m1"]}]
    assert report["hosts"] == [
        {
            "host": "m1",
            "node": "n1",
            "cluster": "k",
            "role": "control_plane",
            "status": "ok",
            "reason": "",
            "judged": 0,
        }
    ]
    assert report["verdicts"][2] == {
        "code": "KM103",
        "cluster": "k",
        "host": None,
        "component": None,
        "verdict": "unknown",
        "missing": [{"host": "m2", "collector": "instances", "status": "denied"}],
        "note": "why",
    }
    assert report["not_judged"] == [{"code": "KM105", "cluster": "k", "reason": "limit"}]
    assert report["findings"][0] == {
        "id": "KM101/k/m1/kube-scheduler",
        "code": "KM101",
        "severity": "critical",
        "cluster": "k",
        "host": "m1",
        "node": "n1",
        "component": "kube-scheduler",
        "summary": "off",
        "because": ["KM110"],
        "evidence": [
            {
                "kind": "process",
                "host": "m1",
                "path": None,
                "line": None,
                "pid": 7,
                "argv": ["kube-scheduler", "\x1b[31m\ud800"],
                "object": None,
                "text": None,
            }
        ],
        "remedy": "fix it",
        "risk": 2,
        "command": None,
        "docs": "docs/faults/KM101.md",
    }
    assert (report["symptom"], report["plan"], report["steps"]) == (None, [], [])
    assert report["summary"] == {
        "critical": 1,
        "warning": 1,
        "present": 1,
        "unknown": 1,
        "clear": 1,
        "not_applicable": 1,
    }


def test_it_is_json_and_ascii_whatever_a_node_said():
    written = json.dumps(json_report.render(RESULT, run()))
    assert written.isascii()
    assert "\x1b" not in written
    assert json.loads(written)["run_id"] == "r"


@pytest.mark.parametrize(
    "result", [RESULT, Result(), replace(RESULT, verdicts=()), replace(RESULT, findings=())]
)
def test_in_pieces_it_is_the_same_text(result):
    whole = run(symptom=Symptom("duplicate_pods", "Twice", ("KM101",)), notices=("two\nlines",))
    pieces = list(json_report.pieces(result, whole))
    assert "".join(pieces) == json.dumps(json_report.render(result, whole), indent=1)
    assert max(map(len, pieces)) < 2000


def test_no_more_than_one_verdict_is_written_at_a_time():
    """Memory does not grow with the fleet.

    What is asked of the result is asked as it is written.
    """
    asked = []

    class Verdicts(tuple):
        def __iter__(self):
            for item in super().__iter__():
                asked.append(item)
                yield item

    pieces = json_report.pieces(replace(RESULT, verdicts=Verdicts(RESULT.verdicts)), run())
    while '"verdicts"' not in next(pieces):
        pass
    before = len(asked)  # the summary counts them all
    next(pieces)
    assert len(asked) == before + 1
