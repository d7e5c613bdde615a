# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans that start and enable the services of nodes."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence import contract
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import (
    engine as fault_engine,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning import plan
from ansible_collections.kubemend.remediation.plugins.plugin_utils.planning.remedies import (
    services,
)


def plan_services(world, faults, max_risk, allow):
    documents = world.documents
    result, clusters = fault_engine.evaluate_clusters(
        [*documents.values(), world.api], faults=faults
    )
    return plan.plan(
        result.findings,
        clusters,
        lambda host: contract.checked(documents[host]),  # as sources.finder reads it
        plan.Consent(max_risk, frozenset(allow)),
        services.REMEDIES,
        fault_engine.KEY_DIGITS,
    )
