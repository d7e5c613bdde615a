# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans for a control plane whose components elect no leader."""

from __future__ import annotations

import copy

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    control_plane,
    maintenance,
)

SCHEDULER, MANAGER = "kube-scheduler", "kube-controller-manager"


def planned(world, max_risk=0, allow=(), probe=None):
    documents = copy.deepcopy(world.documents)
    result, found = fault_engine.evaluate_clusters([*documents.values(), world.api])
    return plan.plan(
        result.findings,
        found,
        documents.__getitem__,
        plan.Consent(max_risk, frozenset(allow)),
        {**control_plane.REMEDIES, **maintenance.REMEDIES},
        fault_engine.KEY_DIGITS,
        probe,
    )


def break_election(world, host, *components):
    for component in components or (SCHEDULER, MANAGER):
        world.manifest(host, component, "--leader-elect=false")
        world.run(host, component, "--leader-elect=false", elect=False)


def cordon(world, host, mark=None):
    next(one for one in world.data("api", "nodes")["items"] if one["name"] == host).update(
        unschedulable=True, cordon=mark
    )
