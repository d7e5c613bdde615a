# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry of collectors, and what must agree with it."""

import importlib

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import registry
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import collector_names
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import node_program

ACTIONS = "ansible_collections.kubemend.remediation.plugins.action."


def test_collectors_of_the_api_are_selected_by_name_and_tier() -> None:
    core = [name for name in collector_names.CLUSTER if name not in collector_names.DEEP_CLUSTER]
    assert [one.name for one in registry.select_api()] == core
    assert [one.name for one in registry.select_api(deep=True)] == list(collector_names.CLUSTER)
    assert [one.name for one in registry.select_api(["pod", "nodes"])] == ["nodes", "pod"]


@pytest.mark.parametrize("name", ["node_evidence_info", "cluster_evidence_info"])
def test_a_module_packs_what_its_program_ships(name: str) -> None:
    """Where the module runs, Ansible packs what it imports.

    Collectors are imported by name, which no packer sees: the module names them (SHIPPED).
    """
    plugin = importlib.import_module(ACTIONS + name).ActionModule
    program = node_program._sources(plugin.ENTRY.partition(":")[0], plugin.SHIP)
    packed = node_program._sources(f"plugins.modules.{name}", ())
    assert set(program) - set(packed) == set()
