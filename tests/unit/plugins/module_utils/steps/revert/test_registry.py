# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every target of the journal has a writer, and what is found by name travels with the program."""

import pytest

from ansible_collections.kubemend.remediation.plugins.action.apply_step import (
    ActionModule as ApplyStep,
)
from ansible_collections.kubemend.remediation.plugins.action.revert_run import (
    ActionModule as RevertRun,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.state import targets
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import registry
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import node_program


@pytest.mark.parametrize("target", targets.TARGETS, ids=lambda target: target.prefix or "file")
def test_every_target_has_a_writer(target):
    writer = registry.writer_of({"real": target.prefix + "x"})
    assert callable(writer.restore)
    assert target.readable or callable(writer.undo_open)


def test_only_a_kubelet_that_was_raised_is_taken_back_by_its_own_way():
    reverter = registry.kubelet_reverter_of(registry.RAISE_KUBELET)
    assert callable(reverter.may_restart)
    assert callable(reverter.take_back)
    assert registry.kubelet_reverter_of("reset_state") is None


@pytest.mark.parametrize("action", [ApplyStep, RevertRun])
def test_what_is_found_by_name_travels_with_the_program(action):
    shipped = node_program._sources(action.ENTRY.partition(":")[0], action.SHIP)
    modules = {module for module, _name in registry.CAPTURE_WRITERS.values()}
    modules.update(registry.KUBELET_REVERTERS.values())
    for module in modules:
        assert f"{node_program.PACKAGE}plugins.module_utils.capture.{module}" in shipped
