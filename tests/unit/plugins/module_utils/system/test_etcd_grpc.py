# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replies of etcd by gRPC: recorded ones of 3.4 and 3.6, made by hand, and such as are none."""

import json
import socket
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import etcd
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    etcd_grpc,
    etcd_keys,
    grpc_call,
    http_client,
    protobuf,
)
from tests.unit.support.grpc_answers import BEGIN, SETTINGS, done, refused

# Of the etcd 3.4.13 within K3s v1.21.2: three members, and the status of the one that leads.
MEMBERS_OF_K3S = (
    b"\n\x17\x08\xef\xcc\x9b\xd9\xc4\xed\xf0\xf9\xa7\x01\x10\xf6\xb6\xe3\xfb\xb8\xcc\xc0\x94% \x02"
    b"\x12I\x08\xf6\xb6\xe3\xfb\xb8\xcc\xc0\x94%\x12\x0bs1-15b02823\x1a\x17https://10.77.0.11:2380"
    b'"\x17https://10.77.0.11:2379'
    b"\x12I\x08\xc6\xcc\xa2\xb3\x99\xbb\x99\xddN\x12\x0bs2-7b0aae01\x1a\x17https://10.77.0.12:2380"
    b'"\x17https://10.77.0.12:2379'
    b"\x12J\x08\xee\xad\x8c\xb6\x96\xa3\xcc\x80\xc5\x01\x12\x0bs3-511cadf0"
    b'\x1a\x17https://10.77.0.13:2380"\x17https://10.77.0.13:2379'
)
STATUS_OF_K3S = (
    b"\n\x1a\x08\xef\xcc\x9b\xd9\xc4\xed\xf0\xf9\xa7\x01\x10\xf6\xb6\xe3\xfb\xb8\xcc\xc0\x94%"
    b"\x18\xf5\x19 \x02\x12\x063.4.13\x18\x80\xe0\x97\x01 \xf6\xb6\xe3\xfb\xb8\xcc\xc0\x94%"
    b"(\xc5\x1f0\x028\xc5\x1fH\x80\xc0q"
)
# Of etcd 3.6.16 of a cluster of kubeadm.
STATUS_OF_3_6 = (
    b"\n\x1b\x08\xb4\xb2\xce\x87\xd3\xcf\xc1\xaa\xa6\x01\x10\xf2\xe6\xe2\xa4\xda\xe2\xef\xab\x85"
    b"\x01\x18\xce\x7f \x02\x12\x063.6.16\x18\x80\xe0\xa3\x03 \xf2\xe6\xe2\xa4\xda\xe2\xef\xab\x85"
    b"\x01(\xc3\x9e\x010\x028\xc3\x9e\x01H\x80\x80\xcc\x02Z\x053.6.0`\x80\x80\x80\x80\x08j\x00"
)
HEADER = protobuf.message(1, b"\x08\x07\x10\x0b")  # cluster 7, member 11
MINUS_ONE = b"\xff" * 9 + b"\x01"


class Connection:
    """A connection on which this answer waits."""

    def __init__(self, answer, seconds=5.0):
        self.end = time.monotonic() + seconds
        self.socket, self.far = socket.socketpair()
        self.far.sendall(answer)

    def question(self):
        return self.far.recv(65536)


class Encrypted:
    """A socket with TLS of a server that chose this protocol."""

    def __init__(self, plain, protocol):
        self.plain, self.protocol = plain, protocol

    def selected_alpn_protocol(self):
        return self.protocol

    def __getattr__(self, name):
        return getattr(self.plain, name)


def test_the_members_of_k3s():
    found = etcd.members(etcd_grpc.member_list(MEMBERS_OF_K3S))
    assert found["cluster_id"] == "12102231493559379567"
    assert [row["id"] for row in found["members"]] == [
        "2677674080080550774",
        "5672958665832310342",
        "14195681485616518894",
    ]
    assert found["members"][2] == {
        "id": "14195681485616518894",
        "name": "s3-511cadf0",
        "peer_urls": ["https://10.77.0.13:2380"],
        "client_urls": ["https://10.77.0.13:2379"],
        "learner": False,
    }


def test_the_status_of_k3s():
    assert etcd.status_of(etcd_grpc.member_status(STATUS_OF_K3S)) == {
        "version": "3.4.13",
        "member_id": "2677674080080550774",
        "cluster_id": "12102231493559379567",
        "leader": "2677674080080550774",
        "raft_term": 2,
        "raft_index": 4037,
        "db_size": 2486272,
        "db_size_in_use": 1859584,
        "quota": None,
        "learner": False,
        "errors": [],
    }


def test_the_status_of_3_6_has_the_quota():
    found = etcd.status_of(etcd_grpc.member_status(STATUS_OF_3_6))
    assert (found["version"], found["quota"], found["raft_index"]) == ("3.6.16", 2147483648, 20291)


def test_the_status_of_3_3_has_fewer_fields():
    data = HEADER + protobuf.string(2, "3.3.27") + b"\x18\x80\x10\x20\x0b\x28\x09\x30\x03"
    found = etcd.status_of(etcd_grpc.member_status(data))
    assert (found["leader"], found["db_size"], found["db_size_in_use"]) == ("11", 2048, None)


def test_a_status_without_a_leader_and_with_errors_of_a_learner():
    data = (
        HEADER
        + protobuf.string(2, "3.5.9")
        + protobuf.string(8, "etcdserver: no leader")
        + protobuf.string(8, "memberID:11 alarm:NOSPACE ")
        + b"\x50\x01\x60"
        + MINUS_ONE
    )
    found = etcd.status_of(etcd_grpc.member_status(data))
    assert (found["leader"], found["learner"], found["quota"]) == (etcd.NO_MEMBER, True, -1)
    assert found["errors"] == ["etcdserver: no leader", "memberID:11 alarm:NOSPACE"]


def test_a_member_that_was_added_and_has_not_started():
    member = b"\x08\x0c" + protobuf.string(3, "https://10.0.0.2:2380") + b"\x28\x01"
    found = etcd.members(etcd_grpc.member_list(HEADER + protobuf.message(2, member)))
    assert found["members"] == [
        {
            "id": "12",
            "name": "",
            "peer_urls": ["https://10.0.0.2:2380"],
            "client_urls": [],
            "learner": True,
        }
    ]


@pytest.mark.parametrize(
    ("number", "alarm"), [(0, "NONE"), (1, "NOSPACE"), (2, "CORRUPT"), (9, "9")]
)
def test_alarms(number, alarm):
    data = HEADER + protobuf.message(2, bytes([8, 11, 16, number]))
    assert etcd.alarms(etcd_grpc.alarm_list(data)) == [{"member_id": "11", "alarm": alarm}]


def test_without_alarms_the_reply_of_3_4_is_empty():
    assert etcd.alarms(etcd_grpc.alarm_list(b"")) == []


def test_a_count_asks_for_no_value():
    connection = Connection(done(b"0", HEADER + b"\x20\xac\x02"))
    question = json.dumps(etcd_keys.counting("/registry", "pods")).encode()
    assert json.loads(etcd_grpc.count(connection, question))["count"] == "300"
    asked = connection.question()
    assert b"/etcdserverpb.KV/Range" in asked
    assert asked.endswith(b"\x0a\x0f/registry/pods/\x12\x0f/registry/pods0\x48\x01")
    assert json.loads(etcd_grpc.key_count(HEADER)) == {
        "header": {"cluster_id": "7", "member_id": "11"}
    }


@pytest.mark.parametrize(
    ("ask", "method"),
    [
        (etcd_grpc.members, b"/etcdserverpb.Cluster/MemberList"),
        (etcd_grpc.status, b"/etcdserverpb.Maintenance/Status"),
        (etcd_grpc.alarms, b"/etcdserverpb.Maintenance/Alarm"),
    ],
)
def test_the_other_questions_are_empty_messages(ask, method):
    connection = Connection(done(b"0", HEADER))
    ask(connection, b"{}")
    asked = connection.question()
    assert method in asked
    assert asked.endswith(b"\0\0\0\0\0")  # an empty AlarmRequest is the action GET


@pytest.mark.parametrize(
    ("answer", "error", "is_refused"),
    [
        (refused(b"14"), "gRPC status 14 (unavailable)", True),
        (refused(b"99"), "gRPC status 99 (of another kind)", True),
        (SETTINGS + BEGIN, http_client.TIMED_OUT, False),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", grpc_call.ODD, False),
        (SETTINGS + grpc_call.frame(7, 0, 0, b""), grpc_call.CLOSED, False),
        (done(b"0", b"\x0a\x05a"), "a field that is cut off", False),
        (done(b"0", b"\x10\x01"), "no header", False),
    ],
)
def test_a_call_without_a_reply_has_one_reason(answer, error, is_refused):
    with pytest.raises(http_client.HttpError) as caught:
        etcd_grpc.status(Connection(answer, seconds=0.3), b"{}")
    assert str(caught.value).endswith(error)
    assert isinstance(caught.value, http_client.Refused) is is_refused


def test_a_prefix_that_is_too_long_is_not_sent():
    connection = Connection(b"")
    question = json.dumps(etcd_keys.counting("/" + "x" * 40000, "pods")).encode()
    with pytest.raises(http_client.HttpError, match="too long"):
        etcd_grpc.count(connection, question)


def test_with_tls_the_server_must_choose_http_2():
    connection = Connection(done(b"0", HEADER + protobuf.string(2, "3.5.9")))
    connection.socket = Encrypted(connection.socket, "http/1.1")
    with pytest.raises(http_client.HttpError, match=grpc_call.ODD):
        etcd_grpc.status(connection, b"{}")
    connection.socket.protocol = "h2"
    assert json.loads(etcd_grpc.status(connection, b"{}"))["version"] == "3.5.9"
    assert b"\x05https" in connection.question()


@pytest.mark.parametrize(
    "data",
    [
        HEADER + b"\x12\x03abc" + b"\x20\x02",  # a version that is no member, a number for a text
        HEADER + b"\x18" + b"\xff" * 9 + b"\x7f",  # a number of more than 64 bits
        HEADER + protobuf.string(4, "a text for a number"),
        HEADER + protobuf.message(8, b"\xff\xfe"),
        HEADER * 5000,
    ],
)
@pytest.mark.parametrize(
    "reader",
    [etcd_grpc.member_list, etcd_grpc.member_status, etcd_grpc.alarm_list, etcd_grpc.key_count],
)
def test_fields_of_another_type_are_none_or_malformed(reader, data):
    try:
        written = reader(data)
    except protobuf.Malformed:
        return
    assert isinstance(json.loads(written), dict)
    for parse in (etcd.status_of, etcd.members, etcd.alarms):
        try:
            assert parse(written) is not None
        except http_client.HttpError:
            continue


def test_what_a_header_leaves_out_is_left_out():
    header = protobuf.message(1, b"\x08\x07")
    assert json.loads(etcd_grpc.key_count(header)) == {"header": {"cluster_id": "7"}}


def test_a_field_of_another_type_is_no_text():
    row = protobuf.message(2, b"\x10\x05\x18\x07" + protobuf.string(3, "https://m1:2380"))
    (member,) = json.loads(etcd_grpc.member_list(HEADER + row))["members"]
    assert member["peerURLs"] == ["https://m1:2380"]
