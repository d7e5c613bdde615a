# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The trend in plain text."""

from __future__ import annotations

from datetime import datetime, timezone

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import (
    UNPROVEN,
    Finding,
    Waived,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import trend as report
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run.trend import (
    Cluster,
    Course,
    Row,
    Trend,
)

KEY = "0123456789abcdef"
NOW = datetime(2026, 11, 27, 9, tzinfo=timezone.utc)


def row(day, **more):
    values = {
        "run_id": f"202611{day:02}T090000Z-1a2b3c",
        "started": f"2026-11-{day:02}T09:00:00Z",
        "mode": "observe",
        "symptom": None,
        "answered": 3,
        "hosts": 4,
        "counts": {"critical": 1, "warning": 12, "unknown": 0},
        "changes": None,
    }
    return Row(**{**values, **more})


def course(code="KM502", host="w1", day=26, gone=None, **more):
    finding = Finding(code, more.pop("severity", "warning"), KEY, host, "kubelet", "x", **more)
    return Course(finding, "2026-11-20T09:00:00Z", f"2026-11-{day:02}T09:00:00Z", gone)


def lines(*clusters, older=0, width=100):
    return report.render(Trend("/runs", clusters, older), width, now=NOW).splitlines()


def cluster(*courses, rows=None, **more):
    items = {item.finding.id: item for item in courses}
    return Cluster(more.pop("key", KEY), more.pop("name", None), rows or [row(26)], items)


def test_the_table_has_a_line_for_each_run():
    found = lines(cluster(rows=[row(25), row(26, symptom="api_down", changes=(2, 1, 10))]))
    assert found == [
        "cluster 01234567: 2 runs",
        "",
        "  run                      what      hosts  critical  warning  unknown  came  gone",
        "  20261125T090000Z-1a2b3c  observe     3/4         1       12        0     -     -",
        "  20261126T090000Z-1a2b3c  api_down    3/4         1       12        0     2    10",
    ]


def test_findings_stand_below_what_became_of_them():
    gone = course("KM407", gone="2026-11-26T09:00:00Z", day=25)
    found = lines(cluster(course(), course("KM501", day=25), gone))
    assert [line for line in found if line.endswith(":")] == [
        "there now:",
        "not judged by the newest run, which had them before:",
        "gone:",
    ]
    text = " ".join(" ".join(found).split())
    assert "there now: WARNING KM502 w1 kubelet: " in text
    assert "; for 7 d (since 2026-11-20 09:00 UTC) not judged" in text
    assert "before: WARNING KM501 w1 kubelet: " in text
    assert "; last found 2 d ago (2026-11-25 09:00 UTC) gone: WARNING KM407 w1 kubelet: " in text
    assert text.endswith(
        "; from 2026-11-20 09:00 UTC until 2026-11-25 09:00 UTC, not found 24 h ago"
        " (2026-11-26 09:00 UTC)"
    )


def test_hosts_of_one_fault_are_one_line_and_the_worst_is_first():
    many = [course(host=f"w{number}") for number in range(1, 6)]
    waived = course("KM501", waived=Waived("r", "o", "2027-01-01"))
    found = lines(cluster(*many, waived, course("KM101", severity="critical", host="m1")))
    heads = [line.split(":")[0] for line in found[6:] if line.startswith("  ") and line[2] != " "]
    assert heads == [
        "  CRITICAL KM101 m1 kubelet",
        "  WARNING KM502 w1-w5 (5 hosts) kubelet",
        "  WAIVED KM501 w1 kubelet",
    ]


def test_what_is_not_there_is_said():
    assert lines() == ["No run in /runs has a report that judged a cluster."]
    assert lines(older=1)[-1] == "1 older run not read"


def test_the_name_of_a_cluster():
    assert lines(cluster(name="prod"))[0] == "prod: 1 run"
    assert lines(cluster(name="kubernetes (01234567)"))[0] == "kubernetes (01234567): 1 run"
    assert lines(cluster(key=UNPROVEN))[0] == "hosts of no proven cluster: 1 run"


def test_what_a_node_says_is_escaped():
    text = "\n".join(lines(cluster(course(host="w\x1b[31m\n1"), name="p\x1b[2J")))
    assert "\x1b" not in text
    assert "\\x1b[31m" in text
