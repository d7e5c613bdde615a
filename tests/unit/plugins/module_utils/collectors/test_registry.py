# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry of collectors, and what must agree with it."""

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import registry
from ansible_collections.kubemend.remediation.plugins.module_utils.shared import collector_names


def test_collectors_of_the_api_are_selected_by_name_and_tier() -> None:
    core = [name for name in collector_names.CLUSTER if name not in collector_names.DEEP_CLUSTER]
    assert [one.name for one in registry.select_api()] == core
    assert [one.name for one in registry.select_api(deep=True)] == list(collector_names.CLUSTER)
    assert [one.name for one in registry.select_api(["pod", "nodes"])] == ["nodes", "pod"]
