# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One endpoint of etcd: its gateway, gRPC where there is none, and what answers neither."""

import contextlib
import json
import socket
import ssl
import threading
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    etcd_endpoint,
    grpc_call,
    http_client,
    protobuf,
    tls,
)
from tests.unit.support.grpc_answers import done, refused
from tests.unit.support.pki import Authority

CA = Authority("etcd", time.time())
HEADER = protobuf.message(1, b"\x08\x07\x10\x0b")  # cluster 7, member 11
REPLIES = {
    b"Cluster/MemberList": done(b"0", HEADER + protobuf.message(2, b"\x08\x0b")),
    b"Maintenance/Status": done(b"0", HEADER + protobuf.string(2, "3.4.13")),
    b"Maintenance/Alarm": done(b"0", b""),
    b"KV/Range": done(b"0", HEADER + b"\x20\x05"),
}
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
FOUND = b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{"version":1}'
SETTINGS_ALONE = grpc_call.frame(4, 0, 0, b"")  # how Go's server of gRPC begins
HANG = None


class Member:
    """An etcd that has this answer to a request of HTTP/1.1, and these to calls of gRPC."""

    def __init__(self, gateway, replies, encryption=None):
        self.gateway, self.replies, self.encryption = gateway, replies, encryption
        self.asked, self.kept = [], []
        self.listening = socket.socket()
        self.listening.bind(("127.0.0.1", 0))
        self.listening.listen(9)
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client = self.listening.accept()[0]
            except OSError:
                return
            with contextlib.suppress(OSError):  # the endpoint went away
                if self.encryption:
                    client = self.encryption.wrap_socket(client, server_side=True)
                self.kept.append(client)
                self.answer(client, client.recv(65536))

    def answer(self, client, question):
        if not question:
            return
        if question.startswith(b"PRI"):
            name = next((name for name in REPLIES if name in question), b"")
            answer = self.replies.get(name, HANG)
        else:
            name, answer = question.split(b" ")[1], self.gateway
            if callable(answer):
                answer = answer(name)
        self.asked.append(name.decode())
        if answer is not HANG:
            client.sendall(answer)
            client.close()

    def endpoint(self, secure=lambda _protocols: None, seconds=3.0):
        return etcd_endpoint.EtcdEndpoint("127.0.0.1", self.port, secure, lambda: seconds)


@pytest.fixture
def serve():
    members = []

    def begin(*arguments):
        members.append(Member(*arguments))
        return members[-1]

    yield begin
    for member in members:
        member.listening.close()


def test_a_gateway_that_answers_is_asked_alone(serve):
    member = serve(FOUND, {})
    endpoint = member.endpoint()
    assert endpoint.post(etcd_endpoint.STATUS) == (200, b'{"version":1}')
    member.gateway = NOT_FOUND  # it has no such question
    assert endpoint.post(etcd_endpoint.ALARMS) == (404, b"")
    assert member.asked == ["/v3/maintenance/status", "/v3/maintenance/alarm"]


@pytest.mark.parametrize(
    ("gateway", "first"),
    [
        (NOT_FOUND, ["/v3/maintenance/status", "/v3beta/maintenance/status"]),
        (SETTINGS_ALONE, ["/v3/maintenance/status"]),
        (b"", ["/v3/maintenance/status"]),
    ],
    ids=["no-gateway", "grpc-alone", "closed"],
)
def test_without_a_gateway_all_is_asked_by_grpc(serve, gateway, first):
    member = serve(gateway, REPLIES)
    endpoint = member.endpoint()
    status, body = endpoint.post(etcd_endpoint.STATUS)
    assert (status, json.loads(body)["version"]) == (200, "3.4.13")
    assert json.loads(endpoint.post(etcd_endpoint.MEMBERS)[1])["members"][0]["ID"] == "11"
    assert endpoint.post(etcd_endpoint.ALARMS, b'{"action":"GET"}') == (200, b"{}")
    question = b'{"key":"L2E=","range_end":"L2I=","count_only":true}'
    assert json.loads(endpoint.post("/kv/range", question)[1])["count"] == "5"
    assert member.asked == [
        *first,
        "Maintenance/Status",
        "Cluster/MemberList",
        "Maintenance/Alarm",
        "KV/Range",
    ]


@pytest.mark.parametrize(
    ("protocols", "is_answered"), [(["h2", "http/1.1"], True), (["http/1.1"], False), ([], False)]
)
def test_grpc_over_tls_wants_http_2(serve, tmp_path, protocols, is_answered):
    pair = CA.issue("server", ["127.0.0.1"])
    (tmp_path / "pair").write_text(pair.pem + pair.private)
    encryption = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    encryption.load_cert_chain(str(tmp_path / "pair"))
    encryption.load_verify_locations(cadata=CA.pair.pem)
    encryption.verify_mode = ssl.CERT_REQUIRED
    if protocols:
        encryption.set_alpn_protocols(protocols)
    mine = CA.issue("client", ["127.0.0.1"])

    def secure(offered):
        return tls.context(mine.pem.encode(), mine.private.encode(), CA.pair.pem.encode(), offered)

    member = serve(NOT_FOUND, REPLIES, encryption)
    status, body = member.endpoint(secure).post(etcd_endpoint.STATUS)
    assert (status == 200) is is_answered
    assert ("Maintenance/Status" in member.asked) is is_answered
    assert is_answered or grpc_call.ODD in json.loads(body)["error"]


def test_where_neither_answers_both_reasons_are_told_and_grpc_is_asked_once(serve):
    member = serve(NOT_FOUND, dict.fromkeys(REPLIES, NOT_FOUND))
    endpoint = member.endpoint()
    assert endpoint.post(etcd_endpoint.STATUS)[0] == 404
    status, body = endpoint.post(etcd_endpoint.MEMBERS)
    assert (status, json.loads(body)) == (404, {"error": f"no gRPC either ({grpc_call.ODD})"})
    assert "Cluster/MemberList" not in member.asked


def test_a_connection_that_is_closed_both_times_has_the_first_reason(serve):
    member = serve(b"", dict.fromkeys(REPLIES, b""))
    with pytest.raises(http_client.HttpError, match=http_client.CLOSED):
        member.endpoint().post(etcd_endpoint.STATUS)


def test_a_gateway_of_one_question_alone_is_asked_on(serve):
    answers = {"/v3/cluster/member/list": FOUND}
    member = serve(lambda path: answers.get(path.decode(), NOT_FOUND), {b"Maintenance/Status": b""})
    endpoint = member.endpoint()
    assert endpoint.post(etcd_endpoint.STATUS)[0] == 404
    assert endpoint.post(etcd_endpoint.MEMBERS) == (200, b'{"version":1}')


def test_who_says_nothing_is_asked_once(serve):
    member = serve(HANG, REPLIES)
    with pytest.raises(http_client.HttpError, match=http_client.TIMED_OUT):
        member.endpoint(seconds=0.3).post(etcd_endpoint.STATUS)
    assert member.asked == ["/v3/maintenance/status"]


def test_who_says_nothing_to_a_call_has_timed_out(serve):
    member = serve(NOT_FOUND, {})
    with pytest.raises(http_client.HttpError, match=http_client.TIMED_OUT):
        member.endpoint(seconds=0.3).post(etcd_endpoint.STATUS)


def test_a_call_that_is_refused_is_no_reason_to_ask_the_gateway_again(serve):
    member = serve(NOT_FOUND, {**REPLIES, b"Maintenance/Status": refused(b"7")})
    endpoint = member.endpoint()
    with pytest.raises(http_client.Refused, match="permission denied"):
        endpoint.post(etcd_endpoint.STATUS)
    assert endpoint.post(etcd_endpoint.MEMBERS)[0] == 200
    assert member.asked[2:] == ["Maintenance/Status", "Cluster/MemberList"]


def test_a_reply_that_is_malformed_is_named(serve):
    member = serve(NOT_FOUND, {b"Maintenance/Status": done(b"0", b"\x0a\x7f")})
    with pytest.raises(http_client.HttpError, match="Maintenance/Status has an answer with"):
        member.endpoint().post(etcd_endpoint.STATUS)
