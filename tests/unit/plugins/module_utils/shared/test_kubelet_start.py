# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Node and controller call the same kubelet young, and a restart waits longer than that."""

import time
from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import kubelet_start
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import kubelet_restart
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.handlers import (
    cpu_manager_reset,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import start_state


@pytest.mark.parametrize(("age", "is_young"), [(-5, True), (5, False)])
def test_node_and_controller_agree_on_what_is_young(age, is_young):
    now = time.time()
    process = {"started_at": now - kubelet_start.SETTLED_SECONDS - age}
    found = SimpleNamespace(evidence={"process": process})
    data = {"system": {"clock": now}, "kubelet": {"process": process}}
    document = {"collectors": {name: {"status": "ok", "data": each} for name, each in data.items()}}
    assert cpu_manager_reset._young(found) is is_young
    assert start_state._is_young(document) is is_young


def test_a_restart_is_watched_for_longer():
    assert kubelet_start.SETTLED_SECONDS < kubelet_restart.SECONDS
