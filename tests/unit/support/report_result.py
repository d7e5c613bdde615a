# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A result with two hosts, for reports."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    ClusterRow,
    EvidenceRef,
    Finding,
    HostRow,
    Missing,
    NotJudged,
    Result,
    Verdict,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import (
    Run,
)

RESULT = Result(
    clusters=(ClusterRow("k", "v1.18.4", ("m1",)),),
    hosts=(HostRow("m1", "n1", "k", "control_plane", "ok"),),
    verdicts=(
        Verdict("KM101", "k", "present", "m1", "kube-scheduler"),
        Verdict("KM102", "k", "clear"),
        Verdict(
            "KM103", "k", "unknown", missing=(Missing("m2", "instances", "denied"),), note="why"
        ),
        Verdict("KM104", "k", "not_applicable"),
    ),
    not_judged=(NotJudged("KM105", "k", "limit"),),
    findings=(
        Finding(
            "KM101",
            "critical",
            "k",
            "m1",
            "kube-scheduler",
            "off",
            "n1",
            ("KM110",),
            (EvidenceRef("process", "m1", pid=7, argv=("kube-scheduler", "\x1b[31m\ud800")),),
            "fix it",
            2,
        ),
        Finding("KM901", "warning", "k", "m2", None, "silent"),
        Finding("KM113", "info", "k", None, None, "i"),
    ),
)


def run(fail_on="never", **more):
    return Run(
        run_id="r",
        started="s",
        finished="f",
        mode="observe",
        report_dir="/r",
        tool_version="0.1.0",
        fail_on=fail_on,
        **more,
    )
