# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubemend.prom: its gauges, its labels, and what promtool says of it."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import (
    sources as evidence_sources,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    ClusterRow,
    Finding,
    HostRow,
    Result,
    Verdict,
    Waived,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.waivers import (
    Waiver,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import prometheus
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import Run
from tests.gate import promtool
from tests.unit.plugins.plugin_utils.faults.test_recorded import FOLDER

KEY, OTHER = "0123456789abcdef", "fedcba9876543210"
HOSTILE = 'a"} 1\nkubemend_hosts{cluster="\\\u202e\x1b[31m\ud800'
LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? ([0-9.]+)')
LABEL = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"')


def run(**more):
    return Run(
        "20261121T090000Z-1a2b3c",
        "2026-11-21T09:00:00Z",
        "2026-11-21T09:01:09Z",
        "observe",
        "/r",
        "0.1.0",
        **more,
    )


def finding(code="KM407", host="w1", component="kubelet", severity="warning", **more):
    return Finding(code, severity, KEY, host, component, "x", **more)


def samples(result, name, **more):
    """Return {labels: value} of a gauge; each line has its shape, and is there once."""
    content = prometheus.render(result, run(**more))
    assert content.endswith("\n")
    found, lines = {}, [line for line in content.split("\n")[:-1] if not line.startswith("# ")]
    assert len(set(lines)) == len(lines)
    for line in lines:
        match = LINE.fullmatch(line)
        assert match, line
        if match[1] == name:
            found[tuple(value for _name, value in LABEL.findall(match[2] or ""))] = float(match[3])
    return found


RESULT = Result(
    (ClusterRow(KEY, "v1.36.3", ("w1",)), ClusterRow(OTHER, "v1.36.3", ("x1",))),
    (
        HostRow("w1", "w1", KEY, "worker", "ok"),
        HostRow("w2", None, KEY, "worker", "unreachable"),
        HostRow("x1", "x1", OTHER, "worker", "not_asked"),
    ),
    (
        Verdict("KM407", KEY, "present", "w1", "kubelet"),
        Verdict("KM502", KEY, "unknown"),
        Verdict("KM502", OTHER, "clear"),
    ),
    findings=(
        finding(),
        finding(),
        finding("KM514", host=None, node="n3", component=None, severity="info"),
        finding("KM113", host=None, component=None, severity="critical"),
        finding("KM502", waived=Waived("r", "o", "2027-01-31")),
    ),
)


def test_each_place_of_a_fault_is_one_sample():
    assert samples(RESULT, "kubemend_findings") == {
        (KEY, "KM407", "warning", "w1", "kubelet", "false"): 1,
        (KEY, "KM514", "info", "n3", "", "false"): 1,
        (KEY, "KM113", "critical", "", "", "false"): 1,
        (KEY, "KM502", "warning", "w1", "kubelet", "true"): 1,
    }


def test_verdicts_and_hosts_are_counted_with_zeros():
    assert samples(RESULT, "kubemend_verdicts") == {
        **{(key, kind): 0 for key in (KEY, OTHER) for kind in ("clear", "not_applicable")},
        **{(OTHER, kind): 0 for kind in ("present", "unknown")},
        (KEY, "present"): 1,
        (KEY, "unknown"): 1,
        (OTHER, "clear"): 1,
    }
    hosts = samples(RESULT, "kubemend_hosts")
    assert {key: value for key, value in hosts.items() if value} == {
        (KEY, "ok"): 1,
        (KEY, "unreachable"): 1,
        (OTHER, "not_asked"): 1,
    }
    assert {status for _cluster, status in hosts} == {"ok", "unreachable", "error", "not_asked"}


def test_the_gauges_of_the_run():
    expired = Waiver("KM4*", "*", "r", "o", "2026-01-31")
    more = {"fail_on": "critical", "waivers_expired": (expired,)}
    for name, value in (
        ("kubemend_last_run_timestamp_seconds", 1795251669),
        ("kubemend_last_run_duration_seconds", 69),
        ("kubemend_last_run_exit_code", 2),
        ("kubemend_waivers_expired", 1),
    ):
        assert samples(RESULT, name, **more) == {(): value}
    assert samples(RESULT, "kubemend_last_run_exit_code") == {(): 0}
    unread = prometheus.render(RESULT, replace(run(), finished="soon"))
    assert "kubemend_last_run_timestamp_seconds 1" not in unread


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        ({}, {KEY, OTHER}),
        ({KEY: "prod", OTHER: "test"}, {"prod", "test"}),
        ({KEY: "kubernetes", OTHER: "kubernetes"}, {"kubernetes-01234567", "kubernetes-fedcba98"}),
    ],
)
def test_each_cluster_has_a_label_of_its_own(names, labels):
    found = samples(RESULT, "kubemend_verdicts", cluster_names=names)
    assert {cluster for cluster, _verdict in found} == labels


def test_what_a_node_said_adds_no_line_and_no_label():
    hostile = replace(RESULT, findings=(finding(host=HOSTILE, component=HOSTILE),))
    found = samples(hostile, "kubemend_findings")
    assert [(len(labels), found[labels]) for labels in found] == [(6, 1)]
    assert samples(hostile, "kubemend_hosts") == samples(RESULT, "kubemend_hosts")


CASES = ("v1.36.3-two-leaders", "v1.36.3-node-down", "v1.36.3-healthy")


@pytest.mark.skipif(not promtool.command(), reason="promtool is not installed")
@pytest.mark.parametrize("case", [*CASES, "made", "hostile", "nothing"])
def test_promtool_takes_the_file(case):
    results = {
        "made": RESULT,
        "hostile": replace(RESULT, findings=(finding(host=HOSTILE, component=HOSTILE),)),
        "nothing": Result(),
    }
    result = results.get(case)
    if result is None:
        result = fault_engine.evaluate(evidence_sources.stream([str(FOLDER / case / "evidence")]))
    done = subprocess.run(
        [promtool.command(), "check", "metrics"],
        input=prometheus.render(result, run()).encode(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
