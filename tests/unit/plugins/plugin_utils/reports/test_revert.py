# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of runs, and the report of a revert."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    revert,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import command_line
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import revert as run_revert
from tests.unit.support.facts import facts
from tests.unit.support.revert_listing import (
    MANIFEST,
    NEW,
    OLD,
    A,
    B,
    C,
    file,
    listing,
    run,
)


def last_sentence(text: str) -> str:
    """Return the last line of the report, as it was before it was wrapped."""
    return " ".join(("kubemend:" + text.rpartition("\nkubemend:")[2]).split())


def test_the_list() -> None:
    listings = [
        listing(
            "m2",
            run(NEW, file(), file("conflict", path="/x", reason="theirs")),
            run(OLD, file("already")),
        ),
        listing("w1", status="unreachable", reason="timed out"),
    ]
    text = revert.render(
        run_revert.Report(listings, None, run_revert.choose(listings, None), not_asked=["m3"])
    )
    assert text.index(NEW) < text.index(OLD)
    assert f"undo: {command_line.revert(NEW)}" in text
    assert f"kubemend_run_id={OLD}" not in text
    facts(text.splitlines()[-1], "1 of 2 runs", "undone")
    for words in (
        "m2 /x (kube-scheduler): cannot be restored",
        "theirs",
        "w1: timed out",
        "m3: left out by --limit",
        A,
        B,
        C,
    ):
        assert words in text


def test_a_host_that_did_not_answer_may_have_runs() -> None:
    silent = listing("w1", status="unreachable", reason="timed out")
    for listings, sentence in (
        ([listing("m1")], "No run of kubemend left anything on these hosts."),
        ([listing("m1"), silent], "No run of kubemend left anything on m1."),
        ([silent], "No host answered: "),
    ):
        report = run_revert.Report(listings, None, run_revert.Choice(None))
        assert revert.render(report).startswith(sentence)


def test_the_report_of_what_the_guards_would_refuse() -> None:
    """A check says what the revert would say, what it restarts, and counts levels as levels."""
    kubelet = {**file(path="/etc/kubelet.env"), "component": "kubelet"}
    answer = {
        "runs": [
            run(
                OLD,
                file(),
                kubelet,
                {**file(path="log level of kube-apiserver"), "component": None},
            )
        ],
        "guards": [
            {"component": "kubelet", "refused": "pods with devices run on m1 (default/x)"},
            {"component": "kube-scheduler", "refused": None},
            3,
        ],
    }
    listings = [run_revert.listing("m1", "ok", "", answer)]
    text = revert.render(
        run_revert.Report(listings, OLD, run_revert.choose(listings, OLD), check=True)
    )
    assert (
        "m1 kubelet may not be started again now, so that its files would stay: pods with devices"
        " run on m1 (default/x) m1" in " ".join(text.split())
    )
    assert "m1 kube-scheduler would be started again with them\n" in text
    assert text.endswith("kubemend: 1 file and 1 log level would be restored\n")


def test_the_report() -> None:
    listings = [
        listing("m1", run(OLD, file())),
        listing("m2", run(OLD, file("\x1b", path="/a\x1b[2J"), file(path="/b\x1b[2J"))),
    ]
    choice = run_revert.choose(listings, "last")
    checked = run_revert.Report(listings, "last", choice, check=True)
    assert "kubemend: 2 files would be restored" in revert.render(checked)
    assert run_revert.verdict(checked) == ("ok", "")
    done = [
        run_revert.outcome(
            "m1",
            "ok",
            "",
            {
                "components": [
                    {"component": "kube-scheduler", "proven": False, "reason": "it is down"}
                ],
                "paths": [file("restored", "result")],
                "changed": True,
            },
        )
    ]
    report = run_revert.Report(listings, "last", choice, done)
    text = revert.render(report)
    assert "m1: failed" in text
    assert "kube-scheduler is NOT proven: it is down" in text
    assert "m2: not begun" in text
    assert "\x1b" not in text
    assert text.count("  m2 /b") == 1
    assert "/a" not in text
    reason, sentence = run_revert.verdict(report)
    assert reason == "failed"
    facts(sentence, OLD, "m1", "failed", "it is down")
    assert "it is down" in last_sentence(text)
    good = run_revert.outcome(
        "m1", "ok", "", {"components": [], "paths": [file("restored", "result")], "changed": True}
    )
    assert (
        "was not taken back on m2"
        in run_revert.verdict(run_revert.Report(listings, "last", choice, [good]))[1]
    )
    assert (
        run_revert.verdict(run_revert.Report(listings, "last", choice, stopped="held"))[0]
        == "locked"
    )


def test_it_fits_into_80_columns_but_for_what_is_copied() -> None:
    why = "it is neither what the run left nor what was there before " * 3
    listings = [
        listing(
            "m1",
            run(OLD, file("conflict", reason=why), file(path=f"{MANIFEST}-foreign"), error=why),
        ),
        listing("m2", status="error", reason=why),
    ]
    done = [
        run_revert.outcome(
            "m1",
            "ok",
            "",
            {
                "components": [{"component": "kube-scheduler", "proven": False, "reason": why}],
                "paths": [file("refused", "result", reason=why)],
                "changed": True,
            },
        )
    ]
    for wanted, outcomes in ((None, []), (OLD, []), (OLD, done), (NEW, [])):
        text = revert.render(
            run_revert.Report(listings, wanted, run_revert.choose(listings, wanted), outcomes)
        )
        assert (
            max(
                len(line)
                for line in text.splitlines()
                if command_line.PLAYBOOK not in line and max(map(len, line.split() or [""])) < 60
            )
            <= 79
        )
        assert (
            " ".join(why.split()) in " ".join(text.split()) and "\n  undo: ansible-playbook" in text
        ) or wanted
