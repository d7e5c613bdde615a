# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units of kubelet and runtime that do not run."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    unit_start,
)
from tests.unit.support import answers

ASSERT = answers.recorded("v1.36.3-unit-assert", "w1", "unit_start")
DEPENDENCY = answers.recorded("v1.36.3-unit-dependency", "w1", "unit_start")
CONDITION = answers.recorded("v1.36.3-unit-runtime-condition", "w1", "unit_start")


def test_a_unit_whose_assertion_is_not_met():
    (unit,) = answers.typed(unit_start.UnitStart, ASSERT).units
    assert (unit.name, unit.active_state, unit.result) == ("kubelet.service", "inactive", "success")
    assert (unit.load_state, unit.load_error, unit.sub_state) == ("loaded", "", "dead")
    assert (unit.condition_result, unit.assert_result) == (True, False)
    assert unit.assert_at == "Wed 2026-11-25 13:46:05 UTC"
    assert (unit.manual_start, unit.ended_at) == (True, 1795614365.8)
    (check,) = unit.checks
    assert (check.text, check.assertion) == ("AssertPathExists=/etc/kubelet-gone", True)
    assert (check.met, check.last, check.trigger) == (False, False, False)
    assert check.path == "/etc/systemd/system/kubelet.service.d/99-lab.conf"
    assert (check.line, check.seen) == (2, "/etc/kubelet-gone is missing")


def test_a_condition_is_no_assertion():
    (unit,) = answers.typed(unit_start.UnitStart, CONDITION).units
    assert (unit.condition_result, unit.assert_result) == (False, True)
    assert (unit.checks[0].assertion, unit.checks_from) == (False, "busctl")
    assert unit.condition_at == "Wed 2026-11-25 13:42:38 UTC"


def test_a_unit_that_needs_one_that_failed():
    (unit,) = answers.typed(unit_start.UnitStart, DEPENDENCY).units
    (need,) = unit.needs
    assert isinstance(need, unit_start.StartUnit)
    assert (need.name, need.how, need.ordered) == ("lab-mounts.service", "Requires", True)
    assert (need.active_state, need.result, need.exec_main_status) == ("failed", "exit-code", 1)
    assert (need.path, need.line) == ("/etc/systemd/system/kubelet.service.d/99-lab.conf", 2)
    assert (need.needs, len(need.said)) == ((), 8)


def test_the_paths_that_a_start_needs():
    (unit,) = answers.typed(unit_start.UnitStart, DEPENDENCY).units
    (path,), (failed,) = unit.paths, unit.needs[0].paths
    assert (path.setting, path.name, path.state) == ("ExecStart", "/usr/bin/kubelet", "ok")
    assert (path.line, path.changed_at, path.ended) == (10, 1795612869.8, 0)
    assert (failed.name, failed.ended) == ("/bin/false", 1)


def test_an_assertion_of_another_type_counts_as_a_condition():
    place = ("units", 0, "checks", 0, "assert")
    decoded = answers.changed(unit_start.UnitStart, ASSERT, *place, value="true")
    assert decoded.malformed == ("units[0].checks[0].assert",)
    assert decoded.answer.units[0].checks[0].assertion is False


def test_a_status_of_a_unit_that_is_needed_is_a_number():
    place = ("units", 0, "needs", 0, "exec_main_status")
    decoded = answers.changed(unit_start.UnitStart, DEPENDENCY, *place, value="1")
    assert decoded.malformed == ("units[0].needs[0].exec_main_status",)
    need = decoded.answer.units[0].needs[0]
    assert (need.exec_main_status, need.result) == (None, "exit-code")
