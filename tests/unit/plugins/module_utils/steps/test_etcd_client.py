# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the members of etcd: the node's own at its local address, with a credential."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.base import Denied
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    etcd,
    instances,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.shared.errors import (
    PreconditionFailed,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.steps import etcd_client
from ansible_collections.kubemend.remediation.plugins.module_utils.steps.etcd_client import (
    EtcdError,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    client_certificates,
)
from tests.unit.support import fake_etcd


@pytest.fixture
def node(tmp_path, monkeypatch):
    with fake_etcd.made(tmp_path, monkeypatch) as made:
        yield made


def refusal():
    with pytest.raises(PreconditionFailed) as caught:
        etcd_client.connect("m1")
    return str(caught.value)


def test_the_own_member_is_asked_at_its_local_address(node):
    way, client = etcd_client.connect("m1")
    assert client.url == f"http://127.0.0.1:{node.cluster.servers[0].server_port}"
    assert client.status()["member_id"] == "11"
    assert client.status()["revision"] == 50
    assert client.alarms() == [{"member_id": "12", "alarm": "NOSPACE"}]
    assert [member["name"] for member in client.members()["members"]] == ["m1", "m2", "m3"]
    assert way.data_folder[0] == str(node.data)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ((500, {"message": "no"}), "HTTP 500: no"),
        ((200, b"<html>"), "no JSON object"),
        ((200, b"[1]"), "no JSON object"),
    ],
)
def test_an_answer_of_another_kind_is_an_error(node, answer, text):
    _way, client = etcd_client.connect("m1")
    node.cluster.refusals["/kv/range"] = answer
    with pytest.raises(EtcdError, match=text):
        client.ask(etcd_client.RANGE)


@pytest.mark.parametrize(
    ("path", "name"), [("/maintenance/status", "status"), ("/cluster/member/list", "members")]
)
def test_a_status_or_list_of_another_kind_is_an_error(node, path, name):
    _way, client = etcd_client.connect("m1")
    node.cluster.refusals[path] = (200, {"x": 1})
    with pytest.raises(EtcdError):
        getattr(client, name)()


def test_only_what_etcd_refuses_is_known_not_to_be_done(node):
    _way, client = etcd_client.connect("m1")
    for code, is_refused in ((400, True), (503, False)):
        node.cluster.refusals["/kv/range"] = (code, {})
        with pytest.raises(EtcdError) as caught:
            client.ask(etcd_client.RANGE)
        assert caught.value.refused is is_refused


def test_an_etcd_that_does_not_answer_is_repaired_first(node):
    node.member.up = False
    assert "KM145" in refusal()


def test_an_etcd_without_its_gateway_is_done_by_hand(node):
    node.cluster.refusals["/maintenance/status"] = (404, {"error": "Not Found"})
    text = refusal()
    assert "--enable-grpc-gateway=false" in text
    assert "by hand" in text


def test_a_node_without_etcd_is_refused(node, monkeypatch):
    monkeypatch.setattr(etcd_client, "processes", lambda: ([], []))
    assert "no etcd runs on m1" in refusal()


def test_processes_that_cannot_be_read_are_refused(node, monkeypatch):
    def denied():
        raise Denied("without root it is unknown")

    monkeypatch.setattr(etcd_client, "processes", denied)
    assert "run as root" in refusal()


def test_certificates_that_have_expired_come_first(node, monkeypatch):
    monkeypatch.setattr(etcd, "pairs_of", lambda *_args: [(b"certificate", b"key")])
    monkeypatch.setattr(etcd, "usual_pairs", list)
    monkeypatch.setattr(client_certificates, "has_expired", lambda _pem: True)
    node.member.up = False
    text = refusal()
    assert "KM120" in text
    assert "certificates first" in text


def test_a_credential_that_cannot_be_used_is_followed_by_the_next(node, monkeypatch):
    pairs = [(b"no certificate", b""), (b"none either", b"")]
    monkeypatch.setattr(etcd, "pairs_of", lambda *_args: pairs)
    server, running = node.processes()
    running[0]["argv"][1] = running[0]["argv"][1].replace("http:", "https:")
    monkeypatch.setattr(etcd_client, "processes", lambda: (server, running))
    assert "client certificate cannot be used" in refusal()


def test_the_processes_are_those_of_this_network(monkeypatch):
    rows = [
        {"component": "kube-apiserver", "pid": 1, "argv": ["kube-apiserver"], "host_network": True},
        {"component": "etcd", "pid": 2, "argv": ["etcd"], "host_network": True},
        {"component": "etcd", "pid": 3, "argv": ["etcd"], "host_network": False},
    ]
    monkeypatch.setattr(instances, "collect", lambda _context: {"processes": rows})
    servers, stacked = etcd_client.processes()
    assert [row["pid"] for row in servers] == [1]
    assert [row["pid"] for row in stacked] == [2]


def test_without_an_address_the_usual_one_is_asked():
    way = etcd_client.EtcdNode({"pid": 1, "argv": ["etcd"]}, ({}, "x"), None)
    assert way.own_url() == "https://127.0.0.1:2379"
    assert way.data_folder == ("/var/lib/etcd", "/proc/1/root/var/lib/etcd")


def test_a_stream_that_is_refused_is_an_error(node):
    _way, client = etcd_client.connect("m1")
    node.cluster.refusals["/maintenance/snapshot"] = (500, {})
    with pytest.raises(EtcdError, match="HTTP 500"):
        list(client.stream(etcd_client.SNAPSHOT, 5))
