# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answers of schedulers and controller managers."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    component_http,
)
from tests.unit.support import answers

HEALTHY = answers.recorded("v1.36.3-healthy", "m1", "component_http")
NO_QUORUM = answers.recorded("v1.36.3-etcd-no-quorum", "m1", "component_http")


def test_a_controller_manager_that_leads():
    manager = answers.typed(component_http.ComponentHttp, HEALTHY).components[0]
    assert (manager.component, manager.pid) == ("kube-controller-manager", 468)
    assert (manager.address, manager.port) == ("127.0.0.1", 10257)
    assert (manager.healthz.status, manager.leader_election_check) == (200, True)
    assert manager.metrics.leader_election_master_status == {"kube-controller-manager": 1}
    assert manager.metrics.git_version == "v1.36.3"
    assert manager.credential == "/etc/kubernetes/admin.conf"


def test_the_leader_election_keeps_its_booleans_and_texts():
    scheduler = answers.typed(component_http.ComponentHttp, HEALTHY).components[1]
    election = scheduler.configz.leader_election
    assert election["leaderElect"] is True
    assert (election["leaseDuration"], election["resourceLock"]) == ("8s", "leases")
    assert election["resourceName"] == "kube-scheduler"


def test_a_scheduler_that_refuses_connections():
    scheduler = answers.typed(component_http.ComponentHttp, NO_QUORUM).components[1]
    assert (scheduler.port, scheduler.credential) == (10251, None)
    assert (scheduler.healthz.status, scheduler.healthz.error) == (None, "Connection refused")
    assert (scheduler.configz.status, scheduler.configz.leader_election) == (None, None)
    assert scheduler.metrics.leader_election_master_status is None
    assert scheduler.leader_election_check is None


def test_a_part_of_the_leader_election_that_is_no_scalar_is_dropped():
    place = ("components", 1, "configz", "leader_election", "resourceLock")
    decoded = answers.changed(component_http.ComponentHttp, HEALTHY, *place, value=["leases"])
    assert decoded.malformed == ("components[1].configz.leader_election.resourceLock",)
    election = decoded.answer.components[1].configz.leader_election
    assert "resourceLock" not in election
    assert election["leaderElect"] is True


def test_a_master_status_is_a_number():
    place = ("components", 1, "metrics", "leader_election_master_status", "kube-scheduler")
    decoded = answers.changed(component_http.ComponentHttp, HEALTHY, *place, value=True)
    assert decoded.malformed == (
        "components[1].metrics.leader_election_master_status.kube-scheduler",
    )
    assert decoded.answer.components[1].metrics.leader_election_master_status == {}
