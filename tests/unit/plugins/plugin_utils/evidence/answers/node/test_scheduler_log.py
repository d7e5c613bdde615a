# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The logs of a node's schedulers, as far as they report nodes added and removed."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    scheduler_log,
)
from tests.unit.support import answers

RECORDED = answers.recorded("v1.18.4-component-ends", "m1", "scheduler_log")
FORGETS = {
    "logs": [
        {
            "pid": 798,
            "level": 4,
            "path": "/var/log/pods/kube-system_kube-scheduler-m1_a1/kube-scheduler/3.log",
            "whole": True,
            "events": [["add", "w1", "r1/z1"], ["round", "", ""], ["remove", "w1", ""]],
        }
    ]
}


def test_a_scheduler_whose_level_is_too_low():
    (log,) = answers.typed(scheduler_log.SchedulerLogs, RECORDED).logs
    assert (log.pid, log.level) == (798, 0)
    assert (log.path, log.whole, log.events, log.error) == (None, False, (), None)


def test_nodes_that_a_scheduler_added_and_removed():
    (log,) = answers.typed(scheduler_log.SchedulerLogs, FORGETS).logs
    assert (log.level, log.whole) == (4, True)
    assert log.path.endswith("/kube-scheduler/3.log")
    assert log.events == (("add", "w1", "r1/z1"), ("round", "", ""), ("remove", "w1", ""))


def test_an_event_without_a_zone_is_dropped():
    decoded = answers.changed(
        scheduler_log.SchedulerLogs, FORGETS, "logs", 0, "events", 1, value=["add", "w2"]
    )
    assert decoded.malformed == ("logs[0].events[1]",)
    assert [event[0] for event in decoded.answer.logs[0].events] == ["add", "remove"]


def test_a_log_is_not_whole_where_that_is_a_text():
    decoded = answers.changed(scheduler_log.SchedulerLogs, FORGETS, "logs", 0, "whole", value="yes")
    assert decoded.malformed == ("logs[0].whole",)
    assert (decoded.answer.logs[0].whole, decoded.answer.logs[0].pid) == (False, 798)


def test_a_log_that_cannot_be_read():
    raw = {"logs": [{"pid": 798, "level": 4, "path": "/x/3.log", "error": "denied"}]}
    (log,) = answers.typed(scheduler_log.SchedulerLogs, raw).logs
    assert (log.error, log.whole, log.events) == ("denied", False, ())
