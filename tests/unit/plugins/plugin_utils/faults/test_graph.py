# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The graph of causes, as the catalogue has it."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    CATALOGUE,
    graph,
)


def test_every_edge_joins_two_faults_of_the_catalogue():
    for cause, effects in graph.effects().items():
        assert {cause, *effects} <= CATALOGUE.keys()


def test_a_component_explains_only_what_the_catalogue_lets_it():
    assert "KM113" in graph.effects()["KM101"]
    assert graph.explains("KM101", "kube-controller-manager", "KM113")
    assert not graph.explains("KM101", "kube-scheduler", "KM113")
    assert graph.explains("KM514", None, "KM216")
    assert graph.explains("KM101", None, "KM000")
