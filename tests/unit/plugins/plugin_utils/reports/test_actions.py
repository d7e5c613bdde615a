# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""report.html and junit.xml of captures and reverts.

What is said of each host, its shape, and hostile words.
"""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture.outcome import Became
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture.plan import Plan, Target
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    actions as report_actions,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    junit,
    revert,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import Run
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import revert as run_revert
from tests import schemas

HOSTILE = "<script>alert(1)</script> {{ 7*7 }} \x1b[2J \u202e ]]> & \ud800"
RUN = "20261121T090000Z-1a2b3c"


def run(mode="capture", outcome=None):
    return Run(
        RUN, "2026-11-21T09:00:00Z", "2026-11-21T09:01:00Z", mode, "/r", "0.1.0", outcome=outcome
    )


def suites(cases, of):
    text = junit.of_cases(cases, of)
    assert schemas.junit_complaints(text) == []
    return {
        suite.get("name"): {
            case.get("name"): next(iter(case), None) for case in suite.iter("testcase")
        }
        for suite in ElementTree.fromstring(text)
    }


def target(component):
    return Target("m1", "w1", component, component, 2, 4)


def test_each_level_and_each_hosts_lines_of_a_capture():
    done = [
        Became(target("kubelet"), True, True),
        Became(target("kube-scheduler"), True, False, "connection refused"),
        Became(target("kube-apiserver"), False, None, "403"),
    ]
    plan = Plan(
        RUN,
        60,
        4,
        ("kubelet",),
        refused=("m2: full",),
        notes=("m3: timed out",),
        logging={"w1": ("kubelet",), "m1": ("kubelet",), "m9": ()},
    )
    of = run(outcome=(2, "failed", "the level was not put back"))
    found = suites(report_actions.of_capture(of, plan, done, frozenset(["w1"])), of)
    assert set(found) == {"w1", "m1", f"run {RUN}"}
    assert {
        name: None if part is None else (part.tag, part.get("type"))
        for name, part in found["w1"].items()
    } == {
        "log level of kubelet": ("system-out", None),
        "log level of kube-scheduler": ("failure", "critical"),
        "log level of kube-apiserver": ("failure", "warning"),
        "logs": None,
    }
    assert "connection refused" in found["w1"]["log level of kube-scheduler"].get("message")
    assert found["m1"]["logs"].tag == "error"
    whole = found[f"run {RUN}"]["capture"]
    assert whole.get("message") == "failed: the level was not put back"
    assert "m2: full" in whole.text
    assert "m3: timed out" in whole.text


def listings():
    file = run_revert.File(
        "/etc/kubernetes/manifests/kube-scheduler.yaml", "restore", "", "kube-scheduler"
    )
    kept = run_revert.File("/var/lib/kubelet/cpu_manager_state", "kept", "never put back")
    return (
        run_revert.Listing(
            "m1", "ok", runs=(run_revert.Undoable(RUN, None, None, (), (file, kept)),)
        ),
        run_revert.Listing("m2", "unreachable", "timed out"),
    )


def test_what_can_be_undone():
    of = run("revert")
    report = run_revert.Report(listings(), None, run_revert.Choice(None), not_asked=("w9",))
    found = suites(report_actions.of_revert(of, report, (revert.WOULD, revert.BECAME)), of)
    assert found["m2"]["journal"].tag == "error"
    assert found["m2"]["journal"].get("type") == "unreachable"
    assert "kube-scheduler.yaml: can be restored" in found["m1"]["journal"].text
    assert found["m1"]["journal"].tag == "system-out"
    assert found[f"run {RUN}"]["revert"].text == "w9: left out by --limit"


@pytest.mark.parametrize(("state", "proven"), [("done", True), ("failed", False)])
def test_what_became_of_each_file(state, proven):
    files = (
        run_revert.File("/etc/a", "restored"),
        run_revert.File(
            "/etc/b",
            "already" if state == "done" else "refused",
            "" if state == "done" else "theirs",
        ),
    )
    done = run_revert.Done(
        "m1",
        state,
        "" if state == "done" else "theirs",
        files,
        ({"component": "kubelet", "proven": proven, "reason": ""},),
    )
    of = run("revert", None if state == "done" else (2, "failed", "the revert failed"))
    report = run_revert.Report(listings(), RUN, run_revert.Choice(RUN, ("m1",)), (done,))
    found = suites(report_actions.of_revert(of, report, (revert.WOULD, revert.BECAME)), of)
    failures = {
        name
        for suite in found.values()
        for name, part in suite.items()
        if part is not None and part.tag == "failure"
    }
    assert failures == (
        set() if state == "done" else {"/etc/b", "kubelet runs as before", "revert"}
    )
    assert found["m1"]["/etc/a"].text == "restored"
    assert {one["state"] for one in revert.for_programs(report)["hosts"]} == {state, None}


def test_both_show_hostile_words_as_text(tmp_path):
    of = run(outcome=(2, "failed", HOSTILE))
    cases = [
        junit.Case(HOSTILE, HOSTILE, "failure", "critical", HOSTILE, (HOSTILE,)),
        junit.Case(None, HOSTILE, lines=(HOSTILE,)),
    ]
    report_actions.write(str(tmp_path), ("html", "junit"), of, f"Capture\n  {HOSTILE}\n", cases)
    page, text = (
        (tmp_path / name).read_text(encoding="utf-8") for name in ("report.html", "junit.xml")
    )
    assert schemas.junit_complaints(text) == []
    assert page.count("<script") == 1
    assert "&lt;script&gt;" in page
    assert "{{ 7*7 }}" in page
    assert not {"\x1b", "\u202e"} & set(page + text)
    assert "\\x1b" in page
    assert "\\u202e" in text
    assert "<title>kubemend: capture of logs, " in page
    assert 'class="filter' not in page
    assert "critical</li>" not in page
    assert "0 hosts" not in page
    assert (tmp_path / "report.html").stat().st_mode & 0o777 == 0o600
    report_actions.write(str(tmp_path), (), of, "", ())
    assert not list(tmp_path.iterdir())


def test_a_file_of_somebody_else_stays(tmp_path):
    (tmp_path / "report.html").write_text("mine")
    report_actions.write(str(tmp_path), ("junit",), run(), "x", ())
    assert (tmp_path / "report.html").read_text() == "mine"
    assert (tmp_path / "junit.xml").exists()
