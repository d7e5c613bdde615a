# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes from an API: what an inventory gets, and how a failure is said."""

from __future__ import annotations

import contextlib
import http.server
import json
import ssl
import threading
import time
from urllib.parse import urlsplit

import pytest
from kubemend import nodes
from kubemend.kubeconfig import Access
from kubemend.wrong_input import WrongInput

from tests.unit.support.pki import Authority


def node(name="w1", labels=None, addresses=(("InternalIP", "10.0.0.2"),)):
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"addresses": [{"type": kind, "address": text} for kind, text in addresses]},
    }


@contextlib.contextmanager
def api(*answers, context=None):
    """Serve these answers, one for each request; yield (port, the requests)."""
    requests, remaining = [], list(answers)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append((self.path, dict(self.headers)))
            code, body = remaining.pop(0)
            self.send_response(code)
            self.end_headers()
            self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

        def log_message(self, *_words):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1], requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def plain(port):
    return Access(urlsplit(f"http://127.0.0.1:{port}/k8s/c/"))


def read(*rows):
    with api((200, {"items": list(rows)})) as (port, _requests):
        return nodes.read(plain(port))


@pytest.mark.parametrize(
    "label", ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"]
)
def test_a_label_names_the_control_plane(label):
    assert read(node("m1", {label: ""}), node("w1")) == [
        nodes.Node("m1", "10.0.0.2", True),
        nodes.Node("w1", "10.0.0.2", False),
    ]


@pytest.mark.parametrize(
    ("addresses", "address"),
    [
        (
            (("ExternalIP", "1.2.3.4"), ("InternalIP", "10.0.0.1"), ("InternalIP", "fd00::1")),
            "10.0.0.1",
        ),
        ((("InternalIP", "fd00::1"),), "fd00::1"),
        ((("Hostname", "w1.example"),), "w1.example"),
        ((), "w1"),
        ((("InternalIP", "-oProxyCommand=x"), ("Hostname", "w1.example")), "w1.example"),
        ((("InternalIP", "{{ lookup('pipe', 'x') }}"),), "w1"),
        ((("InternalIP", "fe80::1%$(x)"),), "w1"),
        ((("InternalIP", 5),), "w1"),
    ],
)
def test_ssh_gets_an_address_and_nothing_else(addresses, address):
    assert read(node(addresses=addresses))[0].address == address


@pytest.mark.parametrize("name", ["-x", "{{ x }}", "A", "", None, "a b", "x" * 300])
def test_a_name_that_no_api_server_accepts_is_left_out(name):
    assert [item.name for item in read(node(name), node("w2"))] == ["w2"]


def test_nodes_with_windows_are_left_out():
    assert [item.name for item in read(node("n", {"kubernetes.io/os": "windows"}), node("w2"))] == [
        "w2"
    ]


def test_pages_are_read_to_their_end():
    first = {"items": [node("w1")], "metadata": {"continue": "a/b="}}
    with api((200, first), (200, {"items": [node("w2")]})) as (port, requests):
        assert [item.name for item in nodes.read(plain(port))] == ["w1", "w2"]
    assert [path for path, _headers in requests] == [
        "/k8s/c/api/v1/nodes?limit=200",
        "/k8s/c/api/v1/nodes?limit=200&continue=a%2Fb%3D",
    ]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            (403, {"message": "nodes is forbidden"}),
            "does not list its Nodes: 403 nodes is forbidden",
        ),
        ((302, b""), "does not list its Nodes: 302 Found"),
        ((200, b"<html>"), "does not answer: "),
        ((200, []), "it is no list of Nodes"),
        ((200, {"items": [5]}), "it is no list of Nodes"),
        ((200, {"items": [{"metadata": {}}]}), "it is no list of Nodes"),
        ((200, {"items": []}), "has no Nodes with Linux"),
        ((200, b"[" * 100000), "does not answer: "),
    ],
)
def test_an_api_without_a_list_is_one_sentence(answer, sentence):
    with api(answer) as (port, _requests), pytest.raises(WrongInput, match=sentence):
        nodes.read(plain(port))


def test_nothing_listens_there():
    with pytest.raises(WrongInput, match="does not answer: Connection refused"):
        nodes.read(plain(1))


def test_an_answer_is_bounded(monkeypatch):
    monkeypatch.setattr(nodes, "MAX_BYTES", 100)
    with pytest.raises(WrongInput, match="an answer of more than"):
        read(*[node(f"w{number}") for number in range(10)])


def test_pages_are_bounded(monkeypatch):
    monkeypatch.setattr(nodes, "MAX_PAGES", 2)
    page = (200, {"items": [node()], "metadata": {"continue": "x"}})
    with api(page, page) as (port, _requests), pytest.raises(WrongInput, match="more than 400"):
        nodes.read(plain(port))


@pytest.fixture(name="authority", scope="module")
def _authority():
    return Authority("kubernetes", time.time())


@pytest.fixture(name="tls")
def _tls(authority, tmp_path):
    """Serve for the name api.example, and ask for a certificate of the authority."""
    pair = authority.issue("apiserver", names=("api.example",))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    path = tmp_path / "server.pem"
    path.write_text(pair.pem + pair.private, encoding="utf-8")
    context.load_cert_chain(path)
    context.load_verify_locations(cadata=authority.pair.pem)
    context.verify_mode = ssl.CERT_OPTIONAL
    with api((200, {"items": [node()]}), context=context) as (port, requests):
        yield port, requests


def access(port, **more):
    return Access(urlsplit(f"https://127.0.0.1:{port}"), **more)


def test_certificates_of_both_sides_and_the_name_of_the_server(authority, tls):
    pair = authority.issue("admin")
    found = nodes.read(
        access(
            tls[0],
            authority=authority.pair.pem,
            server_name="api.example",
            certificate=pair.pem,
            key=pair.private,
        )
    )
    assert [item.name for item in found] == ["w1"]


def test_a_token_goes_into_the_header(authority, tls):
    nodes.read(access(tls[0], authority=authority.pair.pem, server_name="api.example", token="T"))
    assert tls[1][0][1]["Authorization"] == "Bearer T"


@pytest.mark.parametrize(
    "more", [{"server_name": "other.example"}, {"authority": None, "server_name": "api.example"}]
)
def test_a_server_that_is_not_proven_gets_no_token(authority, tls, more):
    with pytest.raises(WrongInput, match="its certificate is not accepted"):
        nodes.read(access(tls[0], **{"authority": authority.pair.pem, "token": "T", **more}))
    assert tls[1] == []


def test_the_check_can_be_turned_off(tls):
    assert nodes.read(access(tls[0], verified=False))


@pytest.mark.parametrize("more", [{"certificate": "x", "key": "y"}, {"authority": "x"}])
def test_a_pair_or_an_authority_that_is_none_is_one_sentence(authority, tls, more):
    with pytest.raises(WrongInput, match="in the kubeconfig cannot be used"):
        nodes.read(access(tls[0], **{"authority": authority.pair.pem, **more}))
    assert tls[1] == []
