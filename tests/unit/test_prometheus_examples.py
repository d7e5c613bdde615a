# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""examples/prometheus: promtool takes rules and queries, and each uses metrics that exist."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import VERDICTS
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import prometheus
from tests.gate import promtool

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "prometheus"
RULES = FOLDER / "kubemend.rules.yml"
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
LABELS = {
    "kubemend_findings": {"cluster", "code", "severity", "host", "component", "waived"},
    "kubemend_verdicts": {"cluster", "verdict"},
    "kubemend_hosts": {"cluster", "status"},
}
needs_promtool = pytest.mark.skipif(not promtool.command(), reason="promtool is not installed")


def finding(severity: str, waived: str) -> str:
    labels = {"cluster": "c", "code": "KM407", "severity": severity, "waived": waived}
    return f"kubemend_findings{{{','.join(f'{name}={value!r}' for name, value in labels.items())}}}"


def rules() -> list[dict]:
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return group["rules"]


def panels() -> Iterator[tuple[str, str]]:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


QUERIES = [(rule["alert"], rule["expr"]) for rule in rules()] + list(panels())


def checked(tmp_path: Path, *words: str, **files: dict) -> subprocess.CompletedProcess[str]:
    for name, content in files.items():
        (tmp_path / f"{name}.yml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return subprocess.run(
        [promtool.command(), *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(("title", "query"), QUERIES)
def test_a_query_uses_metrics_and_labels_that_exist(title: str, query: str) -> None:
    names = re.findall(r"kubemend_[a-z_]+", query)
    assert names, title
    assert set(names) <= set(prometheus.HELP)
    for name, selector in re.findall(r"(kubemend_[a-z_]+)\{([^}]*)\}", query):
        assert set(re.findall(r"([a-z_]+)(?:=~|!~|!=|=)", selector)) <= LABELS[name]
    for group in re.findall(r"by \(([^)]*)\)", query):
        assert set(group.split(", ")) <= set().union(*(LABELS[name] for name in names))
    for verdict in re.findall(r'verdict="([^"]*)"', query):
        assert verdict in VERDICTS


def test_every_metric_is_in_the_dashboard() -> None:
    used = " ".join(query for _title, query in panels())
    assert [name for name in prometheus.HELP if name not in used] == []


def test_panels_do_not_overlap_and_have_a_data_source() -> None:
    cells = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & own, panel["title"]
        assert max(x for x, _y in own) < 24
        cells |= own
        assert panel["datasource"]["uid"] == "${datasource}"
    names = [variable["name"] for variable in DASHBOARD["templating"]["list"]]
    assert names == ["datasource", "cluster"]


def test_every_alert_has_severity_summary_and_description() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert set(rule["annotations"]) == {"summary", "description"}


@needs_promtool
def test_promtool_takes_the_rules_and_every_query(tmp_path: Path) -> None:
    done = checked(tmp_path, "check", "rules", str(RULES))
    assert done.returncode == 0, done.stdout + done.stderr
    records = [{"record": f"q{n}", "expr": query} for n, (_title, query) in enumerate(QUERIES)]
    own = {"groups": [{"name": "queries", "rules": records}]}
    done = checked(tmp_path, "check", "rules", "queries.yml", queries=own)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(QUERIES)} rules found" in done.stdout
    own["groups"][0]["rules"][0]["expr"] = "max by (kubemend_findings"
    assert checked(tmp_path, "check", "rules", "queries.yml", queries=own).returncode != 0


@needs_promtool
@pytest.mark.parametrize(
    ("series", "hours", "alerts"),
    [
        ({finding("critical", "false"): 1}, 1, {"KubemendCriticalFinding"}),
        ({finding("critical", "true"): 1}, 9, set()),
        ({finding("warning", "false"): 1}, 1, set()),
        ({finding("warning", "false"): 1}, 3, {"KubemendWarningFinding"}),
        ({finding("info", "false"): 1}, 9, set()),
        (
            {'kubemend_hosts{cluster="c",status="unreachable"}': 2},
            3,
            {"KubemendHostWithoutEvidence"},
        ),
        ({'kubemend_hosts{cluster="c",status="not_asked"}': 2}, 3, set()),
        ({'kubemend_verdicts{cluster="c",verdict="unknown"}': 1}, 23, set()),
        (
            {'kubemend_verdicts{cluster="c",verdict="unknown"}': 1},
            25,
            {"KubemendVerdictsUnknown"},
        ),
        ({"kubemend_waivers_expired": 1}, 1, {"KubemendWaiverExpired"}),
        ({"kubemend_waivers_expired": 0}, 1, set()),
        (None, 1, {"KubemendAuditMissing"}),
        ({"kubemend_last_run_timestamp_seconds": 0}, 2, set()),
        ({"kubemend_last_run_timestamp_seconds": 0}, 3, {"KubemendAuditMissing"}),
    ],
)
def test_an_alert_fires_when_it_should(
    tmp_path: Path, series: dict | None, hours: int, alerts: set[str]
) -> None:
    given = [{"series": name, "values": f"{value}+0x400"} for name, value in (series or {}).items()]
    if series is not None and "kubemend_last_run_timestamp_seconds" not in series:
        given.append({"series": "kubemend_last_run_timestamp_seconds", "values": "0+300x400"})
    test = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "5m",
        "tests": [
            {
                "interval": "5m",
                "input_series": given,
                "promql_expr_test": [
                    {
                        "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                        "eval_time": f"{hours}h",
                        "exp_samples": [
                            {"labels": f'{{alertname="{name}"}}', "value": 1}
                            for name in sorted(alerts)
                        ],
                    }
                ],
            }
        ],
    }
    done = checked(tmp_path, "test", "rules", "test.yml", test=test)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_newest_metrics_are_copied_whole_and_for_all(tmp_path: Path) -> None:
    runs, target = tmp_path / "home" / ".kubemend" / "runs", tmp_path / "textfile"
    target.mkdir()
    command = [str(FOLDER / "copy-metrics.sh"), str(target)]
    env = {**os.environ, "HOME": str(tmp_path / "home")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "kubemend_report_formats" in done.stderr
    assert list(target.iterdir()) == []
    for name, content in (
        ("20261121T090000Z-ffffff", "old 1\n"),
        ("20261121T100000Z-1a2b3c", "new 1\n"),
        ("mine", "foreign 1\n"),
    ):
        (runs / name).mkdir(parents=True)
        (runs / name / "kubemend.prom").write_text(content, encoding="utf-8")
    (runs / "20261121T110000Z-1a2b3c").mkdir()
    for _again in range(2):
        subprocess.run(command, env=env, check=True, timeout=60)
        assert [path.name for path in target.iterdir()] == ["kubemend.prom"]
        assert (target / "kubemend.prom").read_text(encoding="utf-8") == "new 1\n"
        assert stat.S_IMODE((target / "kubemend.prom").stat().st_mode) == 0o644
