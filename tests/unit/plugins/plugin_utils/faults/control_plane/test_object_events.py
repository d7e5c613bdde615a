# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What controllers report of Services and volumes, KM180."""

from __future__ import annotations

import pytest

from tests.unit.support.object_events import report
from tests.unit.support.waiting_pods import judged

QUOTA = "Error syncing load balancer: failed to ensure load balancer: QuotaExceeded"
DRIVER = 'failed to provision volume with StorageClass "fast": rpc error: code = Internal desc = x'
WAITS = "Waiting for a volume to be created either by the external provisioner 'a.example.com'"
CLAIM = {"namespace": "db", "name": "data-0", "component": "persistentvolume-controller"}


def test_a_healthy_cluster_and_missing_evidence(world):
    verdicts, found = judged(world, "KM180")
    assert (set(verdicts), found) == ({"clear"}, [])
    world.api["collectors"]["object_events"] = {"status": "denied", "data": None}
    assert "unknown" in judged(world, "KM180")[0]


def test_a_service_without_a_load_balancer(world):
    names = {"namespace": "web", "name": "front", "component": "service-controller"}
    report(world, "Service", "SyncLoadBalancerFailed", QUOTA, count=9, objects=3, **names)
    (found,) = judged(world, "KM180")[1]
    assert (found.severity, found.component) == ("warning", "load-balancers")
    assert "Service web/front (and 2 more)" in found.summary
    assert QUOTA in found.summary
    assert "kubectl -n web describe service" in found.remedy


@pytest.mark.parametrize(
    ("kind", "reason", "message", "count", "is_present"),
    [
        ("PersistentVolumeClaim", "ProvisioningFailed", DRIVER, 3, True),
        ("PersistentVolumeClaim", "ProvisioningFailed", DRIVER, 2, False),
        (
            "PersistentVolumeClaim",
            "ProvisioningFailed",
            'storageclass.storage.k8s.io "slow" not found',
            99,
            False,
        ),
        ("PersistentVolumeClaim", "ExternalProvisioning", WAITS, 19, False),
        ("PersistentVolumeClaim", "ExternalProvisioning", WAITS, 20, True),
        (
            "Service",
            "FailedToUpdateEndpointSlices",
            "Operation cannot be fulfilled: the object has been modified",
            99,
            False,
        ),
        ("Service", "FailedToUpdateEndpointSlices", "etcdserver: request timed out", 5, True),
        ("Service", "ClusterIPNotAllocated", "Cluster IP 10.96.0.9 is not allocated", 3, True),
        ("Service", "Unknown", "x", 99, False),
    ],
)
def test_what_is_usual(world, kind, reason, message, count, is_present):
    report(world, kind, reason, message, count=count, **CLAIM)
    assert bool(judged(world, "KM180")[1]) == is_present


def test_what_does_not_go_on(world):
    report(
        world,
        "Service",
        "SyncLoadBalancerFailed",
        QUOTA,
        count=9,
        **{**CLAIM, "last": "2027-01-15T07:40:00Z"},
    )
    assert judged(world, "KM180")[1] == []


def test_a_provisioner_that_says_why_it_fails(world):
    report(world, "PersistentVolumeClaim", "ExternalProvisioning", WAITS, count=90, **CLAIM)
    report(world, "PersistentVolumeClaim", "ProvisioningFailed", DRIVER, count=9, **CLAIM)
    (found,) = judged(world, "KM180")[1]
    assert DRIVER in found.summary


def test_a_volume_that_stays_is_an_information(world):
    row = {"name": "pv-1", "count": 3}
    report(world, "PersistentVolume", "VolumeFailedDelete", "in use", **row)
    assert [found.severity for found in judged(world, "KM180")[1]] == ["info"]
