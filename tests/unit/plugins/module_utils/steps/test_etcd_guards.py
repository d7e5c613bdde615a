# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold of all members of etcd before one is changed: each refusal, with its way out."""

from types import SimpleNamespace

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared.errors import (
    PreconditionFailed,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import etcd_guards
from ansible_collections.kubemend.remediation.plugins.module_utils.system import etcd_folder
from tests.unit.support import fake_etcd

GIB = 1024**3


@pytest.fixture
def node(tmp_path, monkeypatch):
    with fake_etcd.made(tmp_path, monkeypatch) as made:
        yield made


def step(node, **change):
    planned = node.step("etcd_defragment", **change)
    return SimpleNamespace(
        host=node.host, change=planned["change"], allow=planned["guard"]["allow"]
    )


def refusal(call, *args):
    with pytest.raises(PreconditionFailed) as caught:
        call(*args)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_members_that_are_well_are_read(node):
    members = etcd_guards.look(step(node))
    assert sorted(members.statuses) == list(fake_etcd.IDS)
    assert members.id == "11"
    assert members.full == ["12"]
    assert members.name("13") == "m3"
    assert members.name("255") == "ff"
    assert members.name("x") == "?"


def unlisted(node):
    node.cluster.members.pop(0)
    node.cluster.servers.pop(0)


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (lambda node: vars(node.cluster.members[2]).update(up=False), ("m3", "KM145")),
        (lambda node: vars(node.cluster.members[2]).update(learner=True), ("learner", "promote d")),
        (lambda node: vars(node.cluster.members[2]).update(name=""), ("never started", "d")),
        (
            lambda node: vars(node.cluster.members[2]).update(cluster="78"),
            ("m3", "another cluster"),
        ),
        (lambda node: vars(node.cluster).update(leader="0"), ("no leader", "KM146")),
        (
            lambda node: node.cluster.alarms.append({"memberID": "12", "alarm": "CORRUPT"}),
            ("CORRUPT", "m2", "KM142"),
        ),
        (lambda node: vars(node.cluster.members[1]).update(version="3.5.26"), ("3.5 and 3.6",)),
        (lambda node: vars(node.cluster.members[1]).update(version="3.5.5"), ("3.5.6", "m2")),
        (lambda node: vars(node.cluster.members[1]).update(version="3.4.3"), ("3.4.4", "m2")),
        (lambda node: vars(node.cluster.members[1]).update(version="3.3.25"), ("upgrade", "m2")),
        (lambda node: vars(node.cluster.members[1]).update(version="?"), ("release", "m2")),
        (lambda node: vars(node.cluster.members[1]).update(index=5000), ("4900", "1000")),
        (lambda node: vars(node.cluster.members[1]).update(index="x"), ("unknown number",)),
        (lambda node: vars(node.cluster.members[1]).update(size=9 * GIB), ("m2", "8 GiB")),
        (lambda node: vars(node.cluster.members[1]).update(size=-1), ("size", "m2")),
        (lambda node: vars(node.cluster.members[1]).update(id="99"), ("changed", "plan again")),
    ],
)
def test_each_obstacle_has_its_sentence(node, trouble, words):
    trouble(node)
    text = refusal(etcd_guards.look, step(node))
    assert [word for word in words if word not in text] == [], text


def test_members_may_elect_first_where_the_plan_waits(node, monkeypatch):
    node.cluster.leader = "0"
    waited = []

    def sleep(seconds):
        waited.append(seconds)
        node.cluster.leader = "11"

    monkeypatch.setattr(etcd_guards.time, "sleep", sleep)
    assert "no leader" in refusal(etcd_guards.look, step(node))
    assert etcd_guards.look(step(node, waits=True)).id == "11"
    assert waited == [etcd_guards.PAUSE]


def test_what_no_time_settles_is_refused_at_once(node, monkeypatch):
    monkeypatch.setattr(etcd_guards.time, "sleep", lambda _seconds: pytest.fail("it waits"))
    node.cluster.members[2].learner = True
    assert "learner" in refusal(etcd_guards.look, step(node, waits=True))


def test_a_member_that_starts_is_waited_for(node, monkeypatch):
    node.cluster.members[2].up = False
    monkeypatch.setattr(
        etcd_guards.time, "sleep", lambda _seconds: vars(node.cluster.members[2]).update(up=True)
    )
    assert etcd_guards.look(step(node, waits=True)).id == "11"


def test_members_that_elect_no_leader_are_refused_in_the_end(node, monkeypatch):
    monkeypatch.setattr(etcd_guards, "SETTLED", 0.2)
    monkeypatch.setattr(etcd_guards, "PAUSE", 0.01)
    node.cluster.leader = "0"
    assert "no leader" in refusal(etcd_guards.look, step(node, waits=True))


def test_another_member_than_planned_is_refused(node):
    assert "plan again" in refusal(etcd_guards.look, step(node, member_id="12"))


def test_a_plan_without_the_list_takes_the_one_of_now(node):
    members = etcd_guards.look(step(node, member_id=None, members=[]))
    assert len(members.members) == 3


def test_a_member_that_its_own_list_lacks_is_refused(node):
    members = etcd_guards.read(step(node))
    members.members = members.members[1:]
    assert "KM147" in refusal(etcd_guards._require_all, members, None)


def test_members_that_name_different_leaders_are_refused(node):
    members = etcd_guards.read(step(node))
    members.statuses["12"]["leader"] = "13"
    assert "different leaders" in refusal(etcd_guards._require_leader, members, None)


def test_an_address_of_another_member_counts_for_that_one_alone(node, monkeypatch):
    """A load balancer before etcd answers as any member."""
    listed = node.cluster._member_list

    def balanced(member, asked):
        code, answer = listed(member, asked)
        answer["members"][2]["clientURLs"] = answer["members"][1]["clientURLs"]
        return code, answer

    monkeypatch.setattr(node.cluster, "_member_list", balanced)
    text = refusal(etcd_guards.look, step(node))
    assert "m3 does not answer" in text
    assert "is another member" in text


@pytest.mark.parametrize(
    ("count", "allow", "is_refused"),
    [
        (3, [], False),
        (2, [], True),
        (1, [], True),
        (1, ["single_control_plane"], False),
        (2, ["single_control_plane"], False),
    ],
)
def test_the_others_have_a_quorum_without_it(count, allow, is_refused):
    members = SimpleNamespace(voters=list("abc")[:count])
    told = SimpleNamespace(allow=allow, host="m1")
    if is_refused:
        assert "single_control_plane" in refusal(etcd_guards.require_quorum, members, told)
    else:
        etcd_guards.require_quorum(members, told)


def test_the_disk_has_room_for_twice_what_is_in_use(node):
    node.member.used = 200 * fake_etcd.MIB
    node.member.size = 400 * fake_etcd.MIB
    members = etcd_guards.look(step(node))
    node.free["etcd"] = 460 * fake_etcd.MIB
    assert "460.0 MiB" in refusal(etcd_guards.require_room, members, step(node))
    node.free["etcd"] = 470 * fake_etcd.MIB
    etcd_guards.require_room(members, step(node))


def test_a_snapshot_on_the_same_disk_needs_room_too(node, tmp_path, monkeypatch):
    node.member.used = 200 * fake_etcd.MIB
    node.member.size = 400 * fake_etcd.MIB
    members, folder = etcd_guards.look(step(node)), str(tmp_path / "k" / "etcd-snapshots")
    node.free["etcd"] = 1000 * fake_etcd.MIB
    assert "make room" in refusal(etcd_guards.require_room, members, step(node), folder)
    monkeypatch.setattr(etcd_guards, "_same_device", lambda *_args: False)
    etcd_guards.require_room(members, step(node), folder)
    node.free["etcd-snapshots"] = 500 * fake_etcd.MIB
    text = refusal(etcd_guards.require_room, members, step(node), folder)
    assert folder in text


def test_a_file_server_is_not_asked_for_its_space(node, monkeypatch):
    monkeypatch.setattr(etcd_folder, "mount", lambda *_args: {"filesystem": "nfs4"})
    members = etcd_guards.look(step(node))
    assert "file server" in refusal(etcd_guards.require_room, members, step(node))


def test_free_space_is_that_of_the_nearest_folder(tmp_path):
    assert etcd_guards.free_bytes(str(tmp_path / "a" / "b")) == etcd_guards.free_bytes(
        str(tmp_path)
    )
    assert etcd_guards.free_bytes(str(tmp_path)) > 0
    (tmp_path / "file").write_text("")
    assert etcd_guards.free_bytes(str(tmp_path / "file" / "x")) is None


@pytest.mark.parametrize(
    ("size", "quota", "is_refused"),
    [
        (13, 16, True),
        (12, 16, False),
        (13, -1, False),
        (13, 0, True),
    ],
)
def test_every_database_is_below_80_percent(node, size, quota, is_refused):
    for member in node.cluster.members:
        member.size = 2 * fake_etcd.MIB
    node.cluster.members[1].size = size * fake_etcd.MIB
    node.cluster.members[1].quota = quota * fake_etcd.MIB
    members = etcd_guards.look(step(node))
    if is_refused:
        assert "m2" in refusal(etcd_guards.require_below, members, step(node))
    else:
        etcd_guards.require_below(members, step(node))


def test_the_plan_knows_the_quotas_of_older_releases(node):
    for member in node.cluster.members:
        member.size, member.quota = 2 * fake_etcd.MIB, 0
    members = etcd_guards.look(step(node))
    etcd_guards.require_below(members, step(node))
    etcd_guards.require_below(members, step(node, quotas=dict.fromkeys(fake_etcd.IDS, 0)))
    text = refusal(etcd_guards.require_below, members, step(node, quotas={}))
    assert "is not known" in text
