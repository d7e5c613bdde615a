# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pods that were not created."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    unmade,
)
from tests.unit.support import answers

UNMADE = answers.recorded("v1.36.3-pods-pending", "m1.cluster", "unmade")


def test_controllers_whose_pods_the_api_refuses():
    job, limits, quota = answers.typed(unmade.Unmade, UNMADE).refused
    assert (job.kind, job.name, job.owner) == ("Job", "account", None)
    assert (job.wanted, job.has) == (1, 0)
    assert "error looking up service" in job.message
    assert (limits.kind, limits.owner) == ("ReplicaSet", "Deployment/limits")
    assert (quota.namespace, quota.first, quota.last) == (
        "lab-jobs-1d1882-quota",
        "2026-11-24T07:42:43Z",
        "2026-11-24T07:48:10Z",
    )


def test_a_daemon_set_without_a_pod_on_a_tainted_node():
    answer = answers.typed(unmade.Unmade, UNMADE)
    (daemonset,) = answer.daemonsets
    assert (daemonset.name, daemonset.nodes) == ("lonely", ("m1",))
    assert (daemonset.more, daemonset.desired) == (0, 1)
    assert {item.operator for item in daemonset.tolerations} == {"Exists"}
    assert answer.unlooked == 0


def test_a_number_of_pods_of_another_type_is_unknown():
    decoded = answers.changed(unmade.Unmade, UNMADE, "refused", 0, "has", value=False)
    assert decoded.malformed == ("refused[0].has",)
    assert (decoded.answer.refused[0].has, decoded.answer.refused[0].wanted) == (None, 1)


def test_controllers_that_are_no_list_are_unknown_and_not_none_at_all():
    decoded = answers.changed(unmade.Unmade, UNMADE, "refused", value={})
    assert (decoded.malformed, decoded.answer.refused) == (("refused",), None)
    assert len(decoded.answer.daemonsets) == 1
