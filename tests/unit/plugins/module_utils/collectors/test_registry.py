# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry of collectors, and what must agree with it."""

import importlib
from pathlib import Path

import pytest
import yaml

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import registry
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import runner
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import collector_names
from ansible_collections.kubemend.remediation.plugins.modules import cluster_evidence_info
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport import node_program

PLUGINS = Path(__file__).resolve().parents[5] / "plugins"
ACTIONS = "ansible_collections.kubemend.remediation.plugins.action."


def test_every_name_is_in_the_registry_and_in_its_order() -> None:
    assert [one.name for one in registry.COLLECTORS] == list(collector_names.NODE)
    assert [one.name for one in registry.API_COLLECTORS] == list(collector_names.CLUSTER)
    assert set(collector_names.DEEP_CLUSTER) <= set(collector_names.CLUSTER)


def test_every_file_of_a_node_collector_is_in_the_registry() -> None:
    files = {path.stem for path in (PLUGINS / "module_utils/collectors/node").glob("[!_]*.py")}
    assert files == set(collector_names.NODE)
    assert all(callable(one.module().collect) for one in registry.COLLECTORS)


def test_every_collector_of_the_api_has_a_method() -> None:
    assert all(callable(getattr(runner.Reader, name)) for name in collector_names.CLUSTER)


def test_collectors_of_the_api_are_selected_by_name_and_tier() -> None:
    core = [name for name in collector_names.CLUSTER if name not in collector_names.DEEP_CLUSTER]
    assert [one.name for one in registry.select_api()] == core
    assert [one.name for one in registry.select_api(deep=True)] == list(collector_names.CLUSTER)
    assert [one.name for one in registry.select_api(["pod", "nodes"])] == ["nodes", "pod"]


def test_the_documentation_of_the_module_lists_the_collectors_of_the_api() -> None:
    options = yaml.safe_load(cluster_evidence_info.DOCUMENTATION)["options"]
    assert options["collectors"]["choices"] == list(collector_names.CLUSTER)


@pytest.mark.parametrize("name", ["node_evidence_info", "cluster_evidence_info"])
def test_a_module_packs_what_its_program_ships(name: str) -> None:
    """Where the module runs, Ansible packs what it imports.

    Collectors are imported by name, which no packer sees: the module names them (SHIPPED).
    """
    plugin = importlib.import_module(ACTIONS + name).ActionModule
    program = node_program._sources(plugin.ENTRY.partition(":")[0], plugin.SHIP)
    packed = node_program._sources(f"plugins.modules.{name}", ())
    assert set(program) - set(packed) == set()
