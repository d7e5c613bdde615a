# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts put together to clusters, and the members of each control plane."""

from __future__ import annotations

import copy

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import etcd
from ansible_collections.kubemend.remediation.plugins.plugin_utils.faults import engine
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import membership

OTHER_KEY = "beef" + "0" * 60


def clusters(world):
    documents = [*world.documents.values(), *([world.api] if world.api else [])]
    return engine.evaluate_clusters(copy.deepcopy(documents))[1]


def members(cluster):
    return [host.host for host in cluster.members]


def test_one_cluster_with_its_masters_as_members(world):
    (cluster,) = clusters(world)
    assert members(cluster) == ["m1", "m2", "m3"]
    assert [host.host for host in cluster.hosts] == ["m1", "m2", "m3", "w1"]
    assert (cluster.strangers, cluster.unplaced) == ([], [])


def test_a_key_of_its_own_is_a_cluster_of_its_own(world):
    world.documents["w1"]["cluster_key"] = OTHER_KEY
    found = clusters(world)
    assert [[host.host for host in one.hosts] for one in found] == [["w1"], ["m1", "m2", "m3"]]


def test_a_silent_host_belongs_where_the_api_names_it(world):
    world.silence("w1")
    (cluster,) = clusters(world)
    assert "w1" in {host.host for host in cluster.hosts}


def test_a_member_without_a_host_is_a_stranger_named_by_what_shows_it(world):
    del world.documents["m3"]
    (cluster,) = clusters(world)
    assert members(cluster) == ["m1", "m2"]
    assert "m3" in {stranger.name for stranger in cluster.strangers}
    assert "m3" in membership.unseen(cluster)


def test_a_lock_names_a_member_while_it_is_fresh(world):
    for server in world.data("api", "locks")["servers"]:
        server["objects"][0]["holder"] = "m9_x"
    assert {one.name for one in clusters(world)[0].strangers} == {"m9"}
    for server in world.data("api", "locks")["servers"]:
        server["objects"][0]["renew_time"] = "2027-01-14T08:00:00Z"
    assert clusters(world)[0].strangers == []


@pytest.mark.parametrize(
    ("host", "component", "texts"),
    [
        ("m2", "etcd", ["etcd of m2 does not run"]),
        ("m2", "kube-apiserver", ["kube-apiserver of m2 does not run"]),
        ("m2", "kube-scheduler", []),
    ],
)
def test_redundancy_that_is_lost_already(world, host, component, texts):
    running = world.data(host, "instances")["processes"]
    running[:] = [one for one in running if one["component"] != component]
    assert membership.lost(clusters(world)[0]) == texts


def test_a_server_of_k3s_runs_its_components_within_its_own_process(world):
    world.data("m1", "instances")["processes"] = []
    assert membership.lost(clusters(world)[0])
    world.data("m1", "kubelet")["unit"]["name"] = "k3s.service"
    assert membership.lost(clusters(world)[0]) == []


def test_a_host_that_was_not_asked_is_unseen_and_not_lost(world):
    world.silence("m2", "not_asked")
    world.silence("m3")
    (cluster,) = clusters(world)
    assert membership.unseen(cluster) == ["m2"]
    assert [text.split()[0] for text in membership.lost(cluster)] == ["m3"]
    assert membership.beside(cluster, "m1") == []


def test_the_other_api_servers(world):
    assert membership.beside(clusters(world)[0], "m2") == ["m1", "m3"]


def test_the_names_of_an_etcd_member_are_without_ports_and_loopback():
    member = etcd.Member(
        id="1",
        name="m1",
        peer_urls=("https://10.0.0.1:2380", "https://[fd00::1]:2380"),
        client_urls=("https://127.0.0.1:2379",),
    )
    assert membership.etcd_names(member) == {"m1", "10.0.0.1", "fd00::1"}


def test_a_host_whose_processes_were_not_read_has_lost_nothing(world):
    world.documents["m2"]["collectors"]["instances"] = {"status": "denied", "data": None}
    assert membership.lost(clusters(world)[0]) == []


def test_a_server_of_rke2_has_static_pods(world):
    world.data("m1", "kubelet")["unit"]["name"] = "rke2-server.service"
    world.data("m1", "instances")["processes"] = []
    assert membership.lost(clusters(world)[0])
