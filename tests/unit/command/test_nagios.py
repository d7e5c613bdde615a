# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The line of a plugin of Nagios, and its code."""

from __future__ import annotations

import json

import pytest
from kubemend import nagios


def finding(code="KM101", severity="critical", host="m1", **more):
    return {
        "code": code,
        "severity": severity,
        "host": host,
        "node": None,
        "component": None,
        **more,
    }


def line(folder, findings=(), exit_code=0, **more):
    counts = {
        name: sum(item["severity"] == name and "waived" not in item for item in findings)
        for name in ("critical", "warning")
    }
    report = {
        "summary": {"unknown": more.pop("unknown", 0), **counts},
        "hosts": [{"status": "ok"}, {"status": "unreachable"}, {"status": "not_asked"}],
        "findings": list(findings),
        "exit_reason": "ok",
        **more,
    }
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    text = f"PLAY [x]\nkubemend: 2 hosts, 1 critical, 0 warning, 0 unknown; report: {folder}\nok\n"
    return nagios.line(exit_code, text)


@pytest.mark.parametrize(
    ("findings", "more", "code"),
    [
        ((), {}, 0),
        ((finding(severity="info"),), {}, 0),
        ((finding(waived={}),), {}, 0),
        ((), {"unknown": 3}, 3),
        ((finding(severity="warning"),), {"unknown": 3}, 1),
        ((finding(severity="warning"), finding()), {"unknown": 3}, 2),
        ((), {"exit_reason": "input"}, 3),
        ((finding(),), {"exit_reason": "threshold"}, 2),
    ],
)
def test_the_worst_of_the_report_is_the_code(tmp_path, findings, more, code):
    assert line(tmp_path, findings, **more)[0] == code


def test_the_line_names_the_worst_findings_and_ends_with_figures(tmp_path):
    findings = [
        finding("KM407", "warning", "w1"),
        finding(component="kube-scheduler"),
        finding(waived={}),
        finding("KM901", "warning", None, node="a|b"),
    ]
    assert line(tmp_path, findings) == (
        2,
        "KUBEMEND CRITICAL - 2 hosts, 1 critical, 2 warning, 0 unknown: KM101 m1 kube-scheduler,"
        " KM407 w1, KM901 a/b | critical=1;;;0 warning=2;;;0 unknown=0;;;0 hosts=2;;;0",
    )


def test_many_findings_are_a_number(tmp_path):
    found = line(tmp_path, [finding(host=f"m{number}") for number in range(9)])[1]
    assert "KM101 m4, and 4 more | " in found


def test_a_run_without_a_report_is_unknown_with_its_sentence():
    text = r"""fatal: [x]: FAILED! => {"changed": false, "msg": "no \"host\" to\nask"}"""
    assert nagios.line(2, text) == (3, 'KUBEMEND UNKNOWN - no "host" to ask')
    assert nagios.line(4, "") == (3, "KUBEMEND UNKNOWN - the run ended with 4 and no report")


def test_a_report_of_another_version_is_unknown(tmp_path):
    (tmp_path / "report.json").write_text("{}", encoding="utf-8")
    text = f"kubemend: 1 host, 0 critical; report: {tmp_path}"
    assert nagios.line(0, text) == (3, "KUBEMEND UNKNOWN - report.json is not of this version")
