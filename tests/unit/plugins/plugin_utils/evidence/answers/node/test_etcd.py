# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members of etcd, and the state of the one that answered."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import etcd
from tests.unit.support import answers

NO_SPACE = answers.recorded("v1.36.3-etcd-no-space", "m2", "etcd")
NO_QUORUM = answers.recorded("v1.36.3-etcd-no-quorum", "m1", "etcd")
STOPPED = answers.recorded("v1.36.3-etcd-no-quorum", "m2", "etcd")


def test_a_member_whose_database_is_full():
    answer = answers.typed(etcd.Etcd, NO_SPACE)
    (alarm,) = answer.alarms
    assert (alarm.alarm, alarm.member_id) == ("NOSPACE", "8828283256189920098")
    assert {member.id: member.name for member in answer.members}[alarm.member_id] == "m1"
    assert (answer.status.db_size, answer.status.db_size_in_use) == (6750208, 5029888)
    assert (answer.status.quota, answer.status.quota_source) == (2147483648, "status")
    assert answer.status.leader == answer.status.member_id
    assert answer.status.endpoint == answer.endpoint == "https://127.0.0.1:2379"
    assert answer.status.version == "3.6.16"


def test_members_and_the_flags_of_the_api_server():
    answer = answers.typed(etcd.Etcd, NO_SPACE)
    assert answer.api_server.etcd_servers == ("https://127.0.0.1:2379",)
    assert answer.api_server.etcd_prefix == "/registry"
    member = answer.members[0]
    assert member.peer_urls == ("https://10.89.0.13:2380",)
    assert member.client_urls == ("https://10.89.0.13:2379",)
    assert (member.learner, answer.cluster_id) == (False, "16844499610343741182")


def test_a_member_without_a_leader():
    answer = answers.typed(etcd.Etcd, NO_QUORUM)
    assert (answer.status.leader, answer.status.errors) == ("0", ("etcdserver: no leader",))
    assert (answer.status.raft_term, answer.status.raft_index) == (5, 12748)
    assert (len(answer.members), answer.alarms) == (3, None)


def test_a_member_that_does_not_run():
    answer = answers.typed(etcd.Etcd, STOPPED)
    assert answer.error == "https://127.0.0.1:2379: Connection refused"
    assert (answer.endpoint, answer.members, answer.status, answer.health) == (None, (), None, None)


def test_the_number_of_a_member_is_a_text_that_json_does_not_round():
    number = 8668477694001924056
    decoded = answers.changed(etcd.Etcd, NO_SPACE, "members", 0, "id", value=number)
    assert decoded.malformed == ("members[0].id",)
    assert (decoded.answer.members[0].id, decoded.answer.members[0].name) == (None, "m3")


def test_alarms_that_are_no_list_are_unknown_and_not_none_at_all():
    decoded = answers.changed(etcd.Etcd, NO_SPACE, "alarms", value="NOSPACE")
    assert (decoded.malformed, decoded.answer.alarms) == (("alarms",), None)
