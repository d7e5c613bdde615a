# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For how long pods wait on their nodes, and which text says why."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults.engine import (
    evaluate_clusters,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import pod_start
from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import pod_start_message
from tests.unit.support import waiting_pods
from tests.unit.support.waiting_pods import SINCE, wait

PULL = 'Failed to pull image "a": no such host'


def cluster_of(world):
    documents = [*world.documents.values(), world.api]
    return evaluate_clusters(documents, faults=frozenset())[1][0]


def test_the_text_that_names_a_cause_counts(world):
    wait(
        world,
        message='Back-off pulling image "a"',
        state="ImagePullBackOff",
        event=("Failed", PULL),
    )
    wait(world, state="Init:CrashLoopBackOff", message="back-off 5m0s")
    wait(world, state="Init:Running")
    wait(world, owner=None)
    pulling, crashing, bare = pod_start.waiting(cluster_of(world))
    assert (pulling.trouble.kind, pulling.text, pulling.ages) == (
        pod_start_message.DNS,
        PULL,
        (1800,),
    )
    assert crashing.trouble.kind == "container_ends"
    assert (bare.owner, bare.trouble, bare.text) == ("default/pod-3", None, "")


def test_what_is_reported_of_most_pods(world):
    wait(world, event=("BackOff", "Back-off restarting failed container"), pods=9)
    wait(world, event=("FailedMount", 'secret "tls" not found'), pods=8)
    wait(world, event=("Failed", PULL), pods=2)
    wait(world, event=("FailedMount", "context deadline exceeded"), pods=8, last=SINCE)
    wait(world, event=("FailedCreatePodSandBox", "cni plugin not initialized"), pods=1, count=999)
    cluster = cluster_of(world)
    assert pod_start.repeated(cluster, "w1").message == PULL
    assert pod_start.repeated(cluster, "m1") is None


def test_how_many_pods_a_node_has(world):
    waiting_pods.states(world, "w1", Running=4, Completed=2, ContainerCreating=1)
    cluster = cluster_of(world)
    assert pod_start.total(cluster, "w1") == 5
    assert pod_start.total(cluster, "m1") is None
