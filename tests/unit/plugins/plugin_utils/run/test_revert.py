# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which run is taken back and where, what hosts' answers come to, and the report of it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.result import Result
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports import (
    json_report,
    revert,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.reports.run_info import Run
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run import revert as run_revert
from tests import schemas
from tests.unit.support.facts import facts
from tests.unit.support.revert_listing import (
    MANIFEST,
    NEW,
    OLD,
    UNDO,
    file,
    listing,
    run,
)


@pytest.mark.parametrize(
    ("wanted", "runs", "chosen"),
    [
        (None, [("m1", OLD, "restore")], (None, ())),
        (
            OLD,
            [("m1", OLD, "restore"), ("m2", NEW, "restore"), ("m3", OLD, "already")],
            (OLD, ("m1", "m3")),
        ),
        ("last", [("m1", OLD, "restore"), ("m2", NEW, "restore")], (NEW, ("m2",))),
        ("last", [("m1", OLD, "restore"), ("m2", NEW, "already")], (OLD, ("m1",))),
        ("last", [("m1", OLD, "conflict"), ("m2", OLD, "restore")], (OLD, ("m1", "m2"))),
    ],
)
def test_which_run_and_where(
    wanted: str | None, runs: list[tuple[str, str, str]], chosen: tuple[str | None, tuple[str, ...]]
) -> None:
    choice = run_revert.choose(
        [listing(host, run(run_id, file(state))) for host, run_id, state in runs], wanted
    )
    assert (choice.run_id, choice.hosts, choice.problem) == (*chosen, "")


def test_the_last_is_no_revert_but_one_can_be_named() -> None:
    listings = [
        listing("m1", run(UNDO, file(), reverts=[NEW]), run(NEW, file("already")), run(OLD, file()))
    ]
    assert run_revert.choose(listings, "last").run_id == OLD
    assert run_revert.choose(listings, UNDO).hosts == ("m1",)


def test_an_unknown_run_is_named_with_the_known_and_the_silent() -> None:
    choice = run_revert.choose(
        [listing("m1", run(OLD, file())), listing("m2", status="unreachable", reason="timed out")],
        NEW,
    )
    assert choice.hosts == ()
    facts(choice.problem, NEW, OLD, "m2")
    assert (
        "has anything left to restore"
        in run_revert.choose([listing("m1", run(OLD, file("already")))], "last").problem
    )
    assert "none is known" in run_revert.choose([], OLD).problem


def test_a_run_that_changed_no_file_is_said_to_be_one() -> None:
    listings = [
        run_revert.listing("m1", "ok", "", {"runs": [], "empty": [NEW, 3, "x"]}),
        listing("m2", run(OLD, file())),
    ]
    assert listings[0].empty == (NEW,)
    facts(run_revert.choose(listings, NEW).problem, NEW, "no file", "m1", "restart")
    assert run_revert.choose(listings, OLD).problem == ""


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        {"runs": "x"},
        {"runs": [1, {"run_id": "x"}, {"run_id": OLD, "paths": [1, {"path": 1}], "reverts": 3}]},
    ],
)
def test_nodes_are_not_believed(answer: Any) -> None:
    found = run_revert.listing("m1", "ok", "", answer)
    assert not [one for item in found.runs for one in item.files]
    assert run_revert.outcome("m1", "ok", "", answer).state == "failed"


@pytest.mark.parametrize(
    ("answer", "state", "reason"),
    [
        (
            {
                "paths": [file("restored", "result")],
                "components": [{"component": "kube-scheduler", "proven": True, "reason": None}],
            },
            "done",
            "",
        ),
        (
            {"paths": [file("already", "result"), file("kept", "result")], "components": []},
            "done",
            "",
        ),
        (
            {
                "paths": [file("restored", "result"), file("refused", "result", reason="theirs")],
                "components": [],
                "changed": True,
            },
            "refused",
            "theirs",
        ),
        (
            {
                "paths": [file("restored", "result")],
                "components": [{"component": "x", "proven": False, "reason": "down"}],
                "changed": True,
            },
            "failed",
            "down",
        ),
        ({"paths": [], "components": [], "error": "locked", "changed": False}, "refused", "locked"),
        ({"paths": [], "components": [], "error": "odd", "changed": True}, "failed", "odd"),
        ({"paths": [{"path": 1}], "components": []}, "refused", "cannot be read"),
    ],
)
def test_what_became_of_it(answer: dict[str, Any], state: str, reason: str) -> None:
    done = run_revert.outcome("m1", "ok", "", answer)
    assert done.state == state
    assert reason in done.reason
    assert run_revert.outcome("m1", "unreachable", "gone", {}).state == "failed"


@pytest.mark.parametrize(
    ("found", "more", "alone"),
    [
        ([("refused", "conflict"), ("restored", "restore")], {}, True),
        ([("refused", "conflict"), ("refused", "restore")], {}, False),
        ([("restored", "restore")], {}, False),
        ([("refused", "conflict")], {"error": "the node's disk is full"}, False),
    ],
)
def test_somebody_elses_bytes_alone_stop_no_other_host(
    found: list[tuple[str, str]], more: dict[str, Any], alone: bool
) -> None:
    answer = {
        "paths": [{**file(result, "result"), "state": state} for result, state in found],
        "components": [],
        "changed": True,
        **more,
    }
    assert run_revert.outcome("m1", "ok", "", answer).alone is alone


def test_the_report_for_programs() -> None:
    listings = [
        listing("m1", run(OLD, file()), run(NEW, file("kept", reason="a secret"))),
        listing("m2", run(OLD, file("conflict", component=None))),
        listing("w1", status="unreachable", reason="timed out"),
    ]
    done = [
        run_revert.outcome(
            "m1",
            "ok",
            "",
            {
                "paths": [file("restored", "result")],
                "changed": True,
                "components": [{"component": "kube-scheduler", "proven": True, "reason": None}],
            },
        ),
        run_revert.outcome("m2", "unreachable", "gone", None),
    ]
    for wanted, outcomes in ((None, []), (OLD, []), (OLD, done), ("last", [])):
        report = run_revert.Report(
            listings, wanted, run_revert.choose(listings, wanted), outcomes, not_asked=["m3"]
        )
        whole = json_report.render(Result(), Run(UNDO, "", "", "revert", "/r", "0.1.0"))
        told = schemas.checked("report", {**whole, "revert": revert.for_programs(report)})["revert"]
        assert told["not_asked"] == ["m3"]
        assert [one["host"] for one in told["hosts"]] == [
            "m1",
            "m2",
            "w1",
        ]
        first, second, third = told["hosts"]
        assert (told["run_id"], len(first["runs"])) == ((OLD, 1) if wanted == OLD else (None, 2))
        assert (third["status"], third["reason"], third["runs"]) == ("unreachable", "timed out", [])
        assert [one["state"] for one in told["hosts"]] == (
            ["done", "failed", None] if outcomes else [None, None, None]
        )
        assert first["files"] == (
            [{"path": MANIFEST, "component": "kube-scheduler", "state": "restored", "reason": ""}]
            if outcomes
            else []
        )
        assert second["runs"][0]["files"] == [
            {"path": MANIFEST, "component": None, "state": "conflict", "reason": ""}
        ]


def test_files_of_the_run(tmp_path: Any) -> None:
    folder = str(tmp_path)
    run_revert.write(
        folder,
        "m1",
        run_revert.LISTED,
        {"status": "ok", "reason": "", "answer": {"runs": [run(OLD, file())]}},
    )
    run_revert.write(folder, "m1", run_revert.BEGUN, {})
    (tmp_path / "revert" / "m2.json").write_text("{")
    found, missing = run_revert.listings(folder, ["m1", "m2", "m3"])
    assert [item.status for item in found] == ["ok", "error"]
    assert missing == ("m3",)
    assert [(item.host, item.state) for item in run_revert.outcomes(folder, ["m1", "m2"])] == [
        ("m1", "failed")
    ]
    assert (tmp_path / "revert" / "m1.json").stat().st_mode & 0o777 == 0o600


def test_a_host_that_could_not_be_asked_is_no_host_without_a_part() -> None:
    """The newest run may lie there, and what it would have taken back was not."""
    listings = [
        listing("m1", run(OLD, file())),
        listing("m2", status="unreachable", reason="timed out"),
    ]
    assert "m2 could not be asked" in run_revert.choose(listings, "last").problem
    assert "m2 could not be asked, so" in run_revert.choose(listings[1:], "last").problem
    choice = run_revert.choose(listings, OLD)
    good = run_revert.outcome(
        "m1", "ok", "", {"components": [], "paths": [file("restored", "result")], "changed": True}
    )
    reason, sentence = run_revert.verdict(run_revert.Report(listings, OLD, choice, [good]))
    assert reason == "failed"
    assert "m2 could not be asked" in sentence
    assert run_revert.verdict(run_revert.Report(listings, OLD, choice, check=True)) == ("ok", "")
