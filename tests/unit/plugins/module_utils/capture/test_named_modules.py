# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs and modules hold whatever is imported by name."""

import importlib

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.capture import named_modules
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import step_kinds
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import registry
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.revert import (
    registry as revert_registry,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import node_program

COLLECTION = "ansible_collections.kubemend.remediation."
RECOVERY = "plugins.module_utils.steps.recovery"
CHANGE_NODES = ("apply_step", "log_level", "node_drain", "revert_run")


def names_in_registries() -> "set[str]":
    """Return each module below module_utils that a registry names."""
    places = [kind.handler for kind in step_kinds.KINDS.values() if kind.handler]
    writers = [module for module, _name in revert_registry.CAPTURE_WRITERS.values()]
    capture = [*writers, *revert_registry.KUBELET_REVERTERS.values()]
    names = {place.partition(":")[0] for place in [*places, registry.SWEEP]}
    return names | {f"capture.{module}" for module in capture}


def packed(entry: str, ship: "tuple[str, ...]" = ()) -> "set[str]":
    return set(node_program._sources(entry, ship))


def action_of(name: str) -> type:
    action: type = importlib.import_module(f"{COLLECTION}plugins.action.{name}").ActionModule
    return action


def programs_of(name: str) -> "list[set[str]]":
    """Return what each program of an action holds, and what its module holds."""
    action = action_of(name)
    entries = [getattr(action, word) for word in ("ENTRY", "EXPIRE") if hasattr(action, word)]
    programs = [packed(entry.partition(":")[0], action.SHIP) for entry in entries]
    return [*programs, packed(f"plugins.modules.{name}")]


def test_every_module_of_a_registry_is_named() -> None:
    prefix = f"{COLLECTION}plugins.module_utils."
    names = {module.__name__[len(prefix) :] for module in named_modules.MODULES}
    assert names == names_in_registries()


@pytest.mark.parametrize("name", CHANGE_NODES)
def test_a_program_that_recovers_holds_every_named_module(name: str) -> None:
    prefix = f"{node_program.PACKAGE}plugins.module_utils."
    for program in programs_of(name):
        missing = {module for module in names_in_registries() if prefix + module not in program}
        assert missing == set()


@pytest.mark.parametrize("name", ["cluster_lock", "node_evidence_info", "pod_logs_info"])
def test_a_program_that_only_reads_recovers_nothing(name: str) -> None:
    for program in programs_of(name):
        assert f"{node_program.PACKAGE}{RECOVERY}" not in program
