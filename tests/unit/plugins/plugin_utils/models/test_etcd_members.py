# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members of etcd by their list, their own answers and the connections of the others."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import etcd
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import etcd_members
from ansible_collections.kubemend.remediation.plugins.plugin_utils.models.cluster import (
    Cluster,
    Host,
)

MEMBERS = tuple(
    etcd.Member(id=id_, name=f"m{id_}", peer_urls=(f"https://10.0.0.{id_}:2380",)) for id_ in "123"
)


def host(id_, said, status="ok"):
    names = frozenset((f"m{id_}", f"10.0.0.{id_}"))
    return Host(
        f"m{id_}", f"m{id_}", "k", status, "", (), names, {}, None, said, (), etcd_said=said
    )


def said(id_, *, connected="123", members=MEMBERS, uptime=900.0, cluster_id="77"):
    peers = tuple(etcd.Peer(other, other in connected) for other in "123" if other != id_)
    local = etcd.LocalMember(uptime_s=uptime, metrics=etcd.Metrics(member_id=id_, peers=peers))
    return etcd.Etcd(members=members, cluster_id=cluster_id, local=local)


def states(*hosts):
    view = etcd_members.view(Cluster("k", list(hosts)))
    return {item.name: item.state for item in view.members}


def test_all_are_up():
    assert states(*(host(id_, said(id_)) for id_ in "123")) == dict.fromkeys(
        ("m1", "m2", "m3"), "up"
    )


def test_one_that_nobody_is_connected_to_is_down():
    view = etcd_members.view(Cluster("k", [host(id_, said(id_, connected="12")) for id_ in "12"]))
    assert [item.state for item in view.members] == ["up", "up", "down"]
    assert (view.quorum, view.margin) == (2, 0)


def test_a_member_of_which_nobody_tells_is_unknown():
    assert states(host("1", etcd.Etcd(members=MEMBERS)), host("3", etcd.Etcd(), "unreachable")) == {
        "m1": "unknown",
        "m2": "unknown",
        "m3": "unknown",
    }


def test_a_status_that_another_endpoint_gave_is_of_that_member():
    status = etcd.MemberStatus(member_id="2", endpoint="https://10.0.0.2:2379")
    evidence = etcd.Etcd(members=MEMBERS, status=status, local=etcd.LocalMember())
    assert etcd_members.own_id(host("1", evidence)) is None


def test_the_list_of_the_most_hosts_counts():
    other = (*MEMBERS, etcd.Member(id="9", name="old"))
    hosts = [host("1", said("1")), host("2", said("2")), host("3", said("3", members=other))]
    assert len(etcd_members.view(Cluster("k", hosts)).members) == 3


def test_a_cluster_of_its_own_is_a_stray():
    alone = said("7", members=(etcd.Member(id="7", name="m3"),), cluster_id="1")
    hosts = [host("1", said("1")), host("2", said("2")), host("3", alone)]
    view = etcd_members.view(Cluster("k", hosts))
    assert [stray.host for stray in view.strays] == ["m3"]


@pytest.mark.parametrize(
    ("id_", "written"), [("7616583982444832909", "69b38ac7138de88d"), ("x", "?"), (None, "?")]
)
def test_an_id_as_etcdctl_writes_it(id_, written):
    assert etcd_members.MemberView(etcd.Member(id=id_), None, "up").hexadecimal == written


def test_a_learner_has_no_vote():
    members = (*MEMBERS[:2], etcd.Member(id="3", name="m3", learner=True))
    view = etcd_members.view(Cluster("k", [host("1", said("1", members=members))]))
    assert (len(view.members), len(view.voters), view.quorum) == (3, 2, 2)


def test_without_evidence_there_is_no_member():
    cluster = Cluster("k", [host("1", etcd.Etcd())])
    assert etcd_members.view(cluster).members == ()
    assert not etcd_members.is_known(cluster)


@pytest.mark.parametrize(
    ("endpoint", "state"),
    [("https://127.0.0.1:2379", "up"), ("https://10.0.0.2:2379", "unknown"), (None, "unknown")],
)
def test_a_list_that_the_own_address_answers_is_an_answer(endpoint, state):
    assert states(host("1", etcd.Etcd(members=MEMBERS, endpoint=endpoint)))["m1"] == state
