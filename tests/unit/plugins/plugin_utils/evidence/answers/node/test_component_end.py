# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The last log lines of components that exited or started recently."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    component_end,
)
from tests.unit.support import answers

ENDS = answers.recorded("v1.36.3-component-ends", "m2", "component_end")
NO_QUORUM = answers.recorded("v1.36.3-etcd-no-quorum", "m1", "component_end")


def test_a_component_that_exits_at_each_start():
    manager = answers.typed(component_end.ComponentEnd, ENDS).components[1]
    assert (manager.component, manager.running) == ("kube-controller-manager", False)
    assert (manager.restart, manager.begun, manager.error) == (4, None, None)
    assert manager.path.startswith("/var/log/pods/kube-system_kube-controller-manager-m2_")
    assert manager.first < manager.last
    assert (len(manager.lines), "kubelet[259]" in manager.kubelet) == (20, True)


def test_a_component_that_runs_has_no_log():
    scheduler = answers.typed(component_end.ComponentEnd, ENDS).components[0]
    assert (scheduler.component, scheduler.running) == ("kube-scheduler", True)
    assert (scheduler.restart, scheduler.path, scheduler.lines) == (None, None, ())


def test_a_component_that_started_recently():
    scheduler = answers.typed(component_end.ComponentEnd, NO_QUORUM).components[0]
    assert (scheduler.running, scheduler.restart) == (True, 1)
    assert scheduler.begun == 1795612917.9782257


def test_whether_a_component_runs_is_unknown_where_it_is_a_text():
    decoded = answers.changed(
        component_end.ComponentEnd, ENDS, "components", 1, "running", value="no"
    )
    assert decoded.malformed == ("components[1].running",)
    assert decoded.answer.components[1].running is None
    assert decoded.answer.components[1].restart == 4


def test_a_line_that_is_no_text_is_dropped():
    decoded = answers.changed(
        component_end.ComponentEnd, ENDS, "components", 1, "lines", value=["a", 7, "b"]
    )
    assert decoded.malformed == ("components[1].lines[1]",)
    assert decoded.answer.components[1].lines == ("a", "b")
