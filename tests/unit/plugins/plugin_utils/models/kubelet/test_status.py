# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a kubelet's unit and why it ended, from systemd and the end of its journal."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import status
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import systemd_unit
from tests.unit.support.fake_kubelet_messages import AGAIN, FAILED, HARMLESS, ended, failed

WELL = {
    "name": "kubelet.service",
    "load_state": "loaded",
    "active_state": "active",
    "sub_state": "running",
    "unit_file_state": "enabled",
    "main_pid": 7,
    "n_restarts": 0,
    "result": "success",
}
LOOPS = {"name": "kubelet.service", **FAILED, "unit_file_state": "enabled", "n_restarts": 12}


def document(unit, lines=None, **kubelet):
    collectors = {"kubelet": {"status": "ok", "data": {"unit": unit, **kubelet}}}
    if lines is not None:
        collectors["kubelet_end"] = {"status": "ok", "data": {"lines": lines}}
    return {"host": "w1", "collectors": collectors}


@pytest.mark.parametrize("unit", [None, "text", []])
def test_evidence_without_a_unit_says_nothing(unit):
    assert status.read(document(unit)) is None


def test_a_kubelet_that_runs_has_not_ended():
    found = status.read(document(WELL, []))
    assert (found.state.kind, found.ended, found.death) == (systemd_unit.RUNNING, False, None)


def test_a_loop_has_the_cause_and_the_time_of_its_last_end():
    lines = [*AGAIN, HARMLESS, failed("failed to run Kubelet: unknown flag: --x"), *ended(1)]
    found = status.read(document(LOOPS, lines))
    assert found.state.kind == systemd_unit.LOOPING
    assert (found.ended, found.asked, found.runs) == (True, True, False)
    assert found.death is not None
    assert found.last == lines[-1]
    assert found.since
    assert found.last.startswith(found.since[:19])


def test_without_the_end_of_the_journal_the_cause_is_not_asked_for():
    found = status.read(document(LOOPS))
    assert (found.asked, found.since, found.last) == (False, "", "")


@pytest.mark.parametrize("data", [None, {}])
def test_an_answer_without_lines_is_none(data):
    evidence = document(LOOPS)
    evidence["collectors"]["kubelet_end"] = {"status": "ok", "data": data}
    assert not status.read(evidence).asked


@pytest.mark.parametrize(("source", "runs"), [("process", True), ("unit", False)])
def test_a_kubelet_beside_its_stopped_unit_runs(source, runs):
    stopped = {**WELL, "active_state": "inactive", "sub_state": "dead", "main_pid": 0}
    found = status.read(
        document(stopped, [], process={"pid": 9, "argv": ["kubelet"]}, argv_source=source)
    )
    assert found.runs is runs
    assert found.ended is not runs


@pytest.mark.parametrize(
    ("line", "moment"),
    [
        ("1970-01-01T00:01:00+0000 w1 kubelet[1]: x", 60.0),
        ("1970-01-01T01:01:00+01:00 w1 kubelet[1]: x", 60.0),
        ("Jan 01 00:01:00 w1 kubelet[1]: x", None),
        ("9999-99-99T00:00:00+0000 w1", None),
        ("", None),
    ],
)
def test_the_time_of_a_journal_line(line, moment):
    assert status.moment(line) == moment
