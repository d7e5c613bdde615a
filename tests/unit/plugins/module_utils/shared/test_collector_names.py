# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of the collectors, in one place for node and controller."""

from pathlib import Path

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import registry
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.cluster import runner
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import collector_names

PLUGINS = Path(__file__).resolve().parents[5] / "plugins"


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
