# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies of a kubelet's managers that some releases refuse, gate by gate."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.kubelet import (
    configured_value,
)
from tests.unit.support.configured_kubelet import configure, found

GATES = "featureGates: {%s: %s}\n"


@pytest.fixture
def configured(world):
    return configure(world)


@pytest.mark.parametrize(
    ("config", "release", "key"),
    [
        ("cpuManagerPolicy: Static\n", "v1.15.0", None),
        ("cpuManagerPolicy: Static\n", "v1.16.0", "cpuManagerPolicy"),
        (GATES % ("CPUManager", "false") + "cpuManagerPolicy: Static\n", "v1.25.0", None),
        (
            GATES % ("CPUManager", "false") + "cpuManagerPolicy: Static\n",
            "v1.26.0",
            "cpuManagerPolicy",
        ),
        ("topologyManagerPolicy: restricted\n", "v1.17.0", "topologyManagerPolicy"),
        ("topologyManagerPolicy: restricted\n", "v1.18.0", None),
        (
            GATES % ("TopologyManager", "false") + "topologyManagerPolicy: restricted\n",
            "v1.26.0",
            "topologyManagerPolicy",
        ),
        (
            GATES % ("TopologyManager", "false") + "topologyManagerPolicy: restricted\n",
            "v1.27.0",
            None,
        ),
        ("topologyManagerScope: node\n", "v1.30.0", "topologyManagerScope"),
        ("topologyManagerScope: pod\n", "v1.30.0", None),
        ("memoryManagerPolicy: static\n", "v1.20.0", None),
        ("memoryManagerPolicy: static\n", "v1.22.0", "memoryManagerPolicy"),
    ],
)
def test_a_policy_is_refused_from_the_release_on_that_validates_it(
    configured, config, release, key
):
    refused = found(configured(config, release=release)).refused
    assert [one.key for one in refused] == ([key] if key else [])


@pytest.mark.parametrize(
    ("option", "release", "kind"),
    [
        ("prefer-closest-numa-nodes: 'true'", "v1.32.0", None),
        ("prefer-closest-numa-nodes: 'maybe'", "v1.32.0", configured_value.Refusal),
        ("max-allowable-numa-nodes: '9'", "v1.35.0", None),
        ("max-allowable-numa-nodes: '7'", "v1.35.0", configured_value.Refusal),
        ("max-allowable-numa-nodes: '9'", "v1.30.0", configured_value.Refusal),
        ("unheard-of: 'true'", "v1.36.0", configured_value.Refusal),
        ("unheard-of: 'true'", "v1.37.0", configured_value.Unsure),
    ],
)
def test_an_option_of_the_topology_manager(configured, option, release, kind):
    config = f"topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: {{{option}}}\n"
    result = found(configured(config, release=release))
    assert len(result.refused) == (kind is configured_value.Refusal)
    assert bool(result.unsure) is (kind is configured_value.Unsure)
