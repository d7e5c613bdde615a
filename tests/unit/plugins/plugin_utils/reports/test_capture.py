# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator reads before and after a capture of logs."""

from __future__ import annotations

import json
import stat
from dataclasses import replace

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture.outcome import (
    RAISED,
    RESTORED,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.capture.plan import Plan, Target
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    capture as report_capture,
)
from tests import schemas
from tests.unit.plugins.plugin_utils.capture.test_log_merge import NOW, document, line
from tests.unit.support.capture_outcome import (
    EVIL,
    FIRST,
    KUBELET,
    RUN,
    SCHEDULER,
    SECOND,
    WIDE,
    note,
    plan,
    record_capture,
    says,
)
from tests.unit.support.facts import facts


@pytest.fixture
def folder(tmp_path):
    """Give the folder of a capture that went well."""
    record_capture(tmp_path)
    return tmp_path


def test_the_report(folder):
    logs = folder / "capture" / "logs"
    (logs / "w1.json").unlink()
    (logs / "m1.json").write_text(
        json.dumps(
            document(
                "m1",
                line(NOW, "scheduled", "kube-scheduler"),
                line(NOW - 1, "first", "kube-scheduler"),
            )
        )
    )
    made = report_capture.make(
        str(folder), plan(refused=("api of m1 is full",), notes=("m2: timed out",)), WIDE
    )
    assert (made.reason, made.lines) == ("ok", 2)
    for text in (
        "Capture of run " + RUN,
        "  m1 kube-scheduler: 2 -> 4 -> 2 again\n",
        "  w1 kubelet: 0 -> 4 -> 0 again\n  (no process reports its level: ",
        "  api of m1 is full\n",
        "  m2: timed out\n",
        f"kubemend: 2 levels raised, 2 put back; 2 lines of 1 host: {folder}/capture/lines.txt\n",
    ):
        assert text in made.text
    assert (folder / "report.txt").read_text().split() == made.text.split()
    assert [
        text.split("  ")[-1] for text in (folder / "capture" / "lines.txt").read_text().splitlines()
    ] == ["first", "scheduled"]
    found = schemas.checked("report", json.loads((folder / "report.json").read_text()))
    assert (found["mode"], found["exit_reason"], found["capture"]["lines"]) == ("capture", "ok", 2)
    assert found["capture"]["levels"][1] == {
        "host": "w1",
        "component": "kubelet",
        "through": "m1",
        "former": 0,
        "level": 4,
        "raised": True,
        "way": "run-time",
        "restarted": [],
        "log_until_then": None,
        "restored": True,
        "reason": "",
    }
    for name in ("report.txt", "report.json", "capture/lines.txt"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("width", [60, 79])
def test_the_report_is_as_wide_as_the_terminal_but_for_what_is_copied(folder, width):
    note(
        folder,
        RESTORED,
        says(
            SCHEDULER,
            "failed",
            "HTTP 500 of a component that has a great deal to say about why it did so, and at"
            " length",
        ),
    )
    target = replace(FIRST, step={"id": "raise-kube-scheduler", "diff": "-" + "word " * 40})
    plans = plan(target, SECOND, notes=("note " * 60,))
    made, shown = (
        report_capture.make(str(folder), plans, width),
        report_capture.planned(plans, False, NOW + 90, width),
    )
    for text in (made.text, shown):
        long = [line for line in text.splitlines() if len(line) > width]
        assert all(
            " " not in line.strip()
            or line.startswith(("      -word", "  ansible-playbook", "    ansible-playbook"))
            for line in long
        )
        assert "note\n    note" in text
    assert any(
        line.endswith(f"kubemend_run_id={RUN}") and line.startswith("  ansible-playbook")
        for line in shown.splitlines()
    )
    assert max(map(len, (folder / "report.txt").read_text().splitlines()[:4])) <= 79


def test_the_report_of_what_was_not_put_back(folder):
    note(folder, RESTORED, says(SCHEDULER, "failed", "HTTP 500"))
    note(folder, RAISED, says(SCHEDULER, "raised"), says(KUBELET, "refused", "no"))
    text = report_capture.make(str(folder), plan(), WIDE).text
    assert (
        "  m1 kube-scheduler: 2 -> 4, NOT PUT BACK: HTTP 500; a service on m1 goes on trying\n"
        in text
    )
    assert "  w1 kubelet: not raised: no\n" in text
    assert "kubemend: 1 level raised, 0 put back" in text
    assert "no process reports" not in text
    found = schemas.checked("report", json.loads((folder / "report.json").read_text()))
    assert (found["exit_code"], found["exit_reason"]) == (2, "failed")
    assert found["capture"]["levels"][0]["restored"] is False


def test_nothing_that_acts_on_a_terminal_reaches_the_report(folder):
    logs = folder / "capture" / "logs"
    logs.mkdir(exist_ok=True)
    bad = document("m1", line(NOW, EVIL, EVIL), line(NOW, EVIL))
    bad["sources"][0]["notes"] = [EVIL]
    (logs / "m1.json").write_text(json.dumps(bad))
    (logs / "m2.json").write_text(json.dumps({**document(EVIL), "status": "error", "reason": EVIL}))
    note(folder, RESTORED, says(SCHEDULER, "failed", EVIL), error=EVIL)
    evil = Target("m1", "m1", EVIL, SCHEDULER, 2, 4, EVIL)
    made = report_capture.make(
        str(folder), plan(evil, SECOND, refused=(EVIL,), notes=(EVIL,)), WIDE
    )
    for text in (
        made.text,
        (folder / "report.txt").read_text(),
        (folder / "capture" / "lines.txt").read_text(),
        (folder / "report.json").read_text(),
        report_capture.planned(plan(evil, notes=(EVIL,)), False, NOW + 90),
    ):
        assert "evil" in text
        assert not set("\x1b\x07\r\u202e") & set(text)


@pytest.mark.parametrize(
    ("check", "head"),
    [
        (False, "Raising for 60 s, without a restart:\n"),
        (True, "Check mode, nothing is changed. Would raise for 60 s"),
    ],
)
def test_what_is_shown_before(check, head):
    text = report_capture.planned(plan(notes=("m2: timed out",)), check, NOW + 90)
    assert text.startswith(head)
    assert (
        "  m1 kube-scheduler: 2 -> 4\n  w1 kubelet: 0 -> 4 (asked through m1)\n  m2: timed out\n"
        in text
    )


def test_what_is_shown_for_whoever_interrupts_it():
    """After Ctrl-C the operator has nothing else.

    The text has the run, until when it raises levels, and how to revert it at once.
    """
    *_others, last, command = report_capture.planned(plan(), False, NOW + 90, WIDE).splitlines()
    facts(last, RUN, "2026-11-21T20:02:32Z")
    assert command == f"  ansible-playbook kubemend.remediation.revert -e kubemend_run_id={RUN}"
    assert "interrupted" not in report_capture.planned(plan(), True, NOW)


def test_what_a_restart_of_a_kubelet_does_to_rejected_pods_is_shown():
    restarted = replace(SECOND, step={"id": "raise-kubelet"})
    assert "ContainerStatusUnknown" in report_capture.planned(
        plan(restarted, needles=("job-a",)), True, NOW
    )
    assert "ContainerStatusUnknown" not in report_capture.planned(
        plan(restarted), True, NOW
    ) + report_capture.planned(plan(needles=("job-a",)), True, NOW)


def test_what_is_shown_where_nothing_is_raised():
    text = report_capture.planned(
        Plan(RUN, 60, 4, ("kubelet",), refused=("because",)), False, NOW + 90
    )
    sentence, rest = text.split("\n", 1)
    facts(sentence, "No level")
    assert rest == "  because\n"


def test_the_report_of_a_file_that_was_edited_meanwhile(folder):
    """Only the author of the edit takes it back.

    No service goes on trying, and no revert would.
    """
    target, why = (
        replace(FIRST, step={"id": "raise-kube-scheduler"}),
        "/m.yaml was edited meanwhile: take --v=4 out by hand (before it was: --v=2)",
    )
    note(folder, RESTORED, says(SCHEDULER, "by_hand", why))
    made = report_capture.make(str(folder), plan(target), WIDE)
    assert f"  m1 kube-scheduler: 2 -> 4, NOT PUT BACK: {why}\n" in made.text
    assert made.reason == "failed"
    facts(made.sentence, "kube-scheduler", "m1", why)


@pytest.mark.parametrize("again", [True, False])
def test_the_report_says_what_was_restarted(folder, again):
    target, kept = (
        replace(FIRST, step={"id": "raise-kube-scheduler"}),
        f"/var/lib/kubemend/journal/{RUN}/log-kube-scheduler-*",
    )
    note(folder, RAISED, {**says(SCHEDULER, "raised"), "at": "2026-11-21T20:00:00Z"})
    note(
        folder,
        RESTORED,
        *([{**says(SCHEDULER, "restored"), "at": "2026-11-21T20:01:09Z"}] if again else []),
    )
    text, last = (
        report_capture.make(str(folder), plan(target), WIDE).text,
        ("at 2026-11-21T20:01:09Z" if again else "by a service of its host"),
    )
    assert (
        f"    by a restart: restarted at 2026-11-21T20:00:00Z, again {last}; what it logged until"
        f" then: {kept} on m1\n" in text
    )
    (level,) = schemas.checked("report", json.loads((folder / "report.json").read_text()))[
        "capture"
    ]["levels"]
    assert (level["way"], level["log_until_then"]) == ("restart", kept)
    assert level["restarted"] == ["2026-11-21T20:00:00Z", "2026-11-21T20:01:09Z"][: 1 + again]


def test_the_report_of_an_edit_that_took_the_level_out(folder):
    note(
        folder,
        RESTORED,
        says(SCHEDULER, "restored", "/m.yaml was edited meanwhile: it runs at level 7 now"),
    )
    made = report_capture.make(
        str(folder), plan(replace(FIRST, step={"id": "raise-kube-scheduler"})), WIDE
    )
    assert (
        "  m1 kube-scheduler: 2 -> 4, not raised any more: /m.yaml was edited meanwhile: it runs at"
        " level 7 now\n" in made.text
    )
    assert made.reason == "ok"
