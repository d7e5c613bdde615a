# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The patches of workloads as files."""

from __future__ import annotations

import functools

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    workload_patch_file,
)
from tests.unit.support.unpinned_pods import configure_kubelets, find, item, pod


@pytest.fixture
def nodes(world):
    return functools.partial(configure_kubelets, world)


def test_patches_as_files(nodes):
    world = nodes(w1=("static", "static"))
    find(
        world,
        item(),
        pod(),
        item(name="e", manager={"tool": "Helm", "name": "r"}),
        item("StatefulSet", "x" * 250),
    )
    result, clusters = fault_engine.evaluate_clusters(
        [*world.documents.values(), world.api], deep=True
    )
    texts = workload_patch_file.texts(result.findings, clusters, fault_engine.KEY_DIGITS)
    short, long = sorted(texts, key=len)
    assert short == "n-deployment-d.yaml"
    assert len(long) < 255
    assert long.startswith("n-statefulset-xxx")
    assert (
        texts[short]
        == "# kubectl -n n patch deployment d --type=strategic --patch-file=<this file>\nspec:\n "
        " template:\n    spec:\n      initContainers:\n      - name: init\n        resources:\n "
        "         requests:\n            cpu: '1'\n            memory: 64Mi\n          limits:\n"
        "            cpu: '1'\n            memory: 64Mi\n"
    )
    assert workload_patch_file.texts([], clusters, fault_engine.KEY_DIGITS) == {}
