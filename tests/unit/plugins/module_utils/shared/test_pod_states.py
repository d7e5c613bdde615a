# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which states of pods are those of a container that ends again and again."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import (
    pod_states as collector,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import pod_states
from tests.unit.support.listed_pods import Lists

ROWS = ("CrashLoopBackOff", "Init:CrashLoopBackOff", "Error", "Init:Error", "RunContainerError")


@pytest.mark.parametrize("state", [*ROWS, "Running", "ImagePullBackOff", "Completed"])
def test_a_state_of_a_crash_is_one_for_collector_and_check(state):
    rows = [
        {"Name": "web-7d4b9c6f5-bcdfg", "Status": state, "Node": "w1"},
        {"Name": "web-7d4b9c6f5-hjklm", "Status": "Running", "Node": "w2"},
    ]
    data, _cut = collector.collect(Lists({"spec.nodeName!=,": rows}), lambda _error: False)
    assert data["nodes"][0]["elsewhere"] == int(state in ROWS)
    assert (state in pod_states.CRASHES) == (state in ROWS)
