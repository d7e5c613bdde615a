# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's own pods that end again and again."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    system_pods,
)
from tests.unit.support import answers

RAW = {
    "pods": [
        {"namespace": "kube-system", "pod": "a", "container": "b", "restart": 4, "lines": ["x"]}
    ],
    "more": 2,
    "more_pods": ["kube-system/d"],
    "read": 24,
    "unread": 1,
    "unread_pods": ["kube-system/e"],
    "running": [{"pod": "c", "told": ["y"], "entries": [{"count": 5, "line": "z"}]}],
}


def test_a_container_with_its_last_lines():
    answer = answers.typed(system_pods.SystemPods, RAW)
    assert (answer.pods[0].restart, answer.pods[0].lines, answer.more) == (4, ("x",), 2)
    assert (answer.more_pods, answer.unread_pods) == (("kube-system/d",), ("kube-system/e",))
    assert (answer.read, answer.unread) == (24, 1)
    (row,) = answer.running
    assert (row.pod, row.told, row.entries[0].count) == ("c", ("y",), 5)


def test_evidence_of_an_older_release_has_nothing_of_what_runs():
    assert answers.typed(system_pods.SystemPods, {"pods": [], "more": 0}).running is None


def test_a_value_of_another_type_is_refused():
    decoded = answers.changed(system_pods.SystemPods, RAW, "pods", 0, "restart", value="no")
    assert decoded.malformed == ("pods[0].restart",)
