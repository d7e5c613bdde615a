# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Handshakes with servers of this machine: each shows its certificate, also one that refuses."""

import contextlib
import socket
import ssl
import threading
import time

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    served_certificates,
)
from tests.unit.support.pki import Authority

CA = Authority("kubernetes", time.time())
VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


@pytest.fixture
def listen():
    sockets = []

    def run(serve=None):
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        listening.listen(4)
        sockets.append(listening)
        if serve is not None:
            threading.Thread(target=serve, args=(listening,), daemon=True).start()
        return "127.0.0.1", listening.getsockname()[1]

    yield run
    for listening in sockets:
        listening.close()


@pytest.fixture
def tls_server(listen, tmp_path):
    """Return (place, certificate) of a TLS server."""

    def run(version, mutual=False):
        pair = CA.issue("server", ["127.0.0.1"])
        path = tmp_path / f"{pair.certificate.serial_number}.pem"
        path.write_text(pair.pem + pair.private)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(str(path))
        context.minimum_version = context.maximum_version = version
        if mutual:
            context.load_verify_locations(cadata=CA.pair.pem)
            context.verify_mode = ssl.CERT_REQUIRED

        def serve(listening):
            with contextlib.suppress(OSError):
                client, _address = listening.accept()
                with contextlib.suppress(OSError):
                    context.wrap_socket(client, server_side=True).close()

        return listen(serve), pair.pem

    return run


@pytest.mark.parametrize("mutual", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_shows_its_certificate(tls_server, version, mutual):
    place, pem = tls_server(version, mutual)
    (row,) = served_certificates.read([place], 5.0)
    assert (row["pem"], row["error"]) == (pem, None)
    assert (row["address"], row["port"]) == place


def test_servers_are_asked_side_by_side_and_only_one_is_waited_for(tls_server, listen):
    silent = [listen() for _number in range(3)]
    place, pem = tls_server(ssl.TLSVersion.TLSv1_3)
    began = time.monotonic()
    rows = served_certificates.read([*silent, place], 0.6)
    assert time.monotonic() - began < 1.2
    assert [row["error"] for row in rows] == ["timed out"] * 3 + [None]
    assert rows[-1]["pem"] == pem


def test_nothing_is_waited_for_where_every_server_has_answered(tls_server):
    places = [tls_server(version)[0] for version in VERSIONS]
    began = time.monotonic()
    rows = served_certificates.read(places, 30.0)
    assert all(row["pem"] for row in rows)
    assert time.monotonic() - began < 10.0


def test_a_port_without_a_server_and_one_that_speaks_no_tls(listen):
    def serve(listening):
        client, _address = listening.accept()
        client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        client.close()

    plain = listen(serve)
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))
    nobody = closed.getsockname()
    closed.close()
    rows = served_certificates.read([plain, nobody], 5.0)
    assert [row["pem"] for row in rows] == [None, None]
    assert rows[0]["error"].startswith("TLS:")
    assert rows[1]["error"] == "Connection refused"


@pytest.mark.parametrize(
    "heard",
    [
        b"",
        b"\x16",
        b"\x16\x03\x03\x00\x10\x0b\x00\x00\x0c\x00\x00\x09\x00\x00\x06abc",
        b"\x16\x03\x03\x00\x04\x02\x00\xff\xff",
        b"\x15\x03\x03\x00\x02\x02\x28",
        b"\x16\x03\x03\x00\x0a\x0b\x00\x00\x06\x00\x00\x03\x00\x00\x00",
    ],
)
def test_messages_that_hold_no_whole_certificate(heard):
    assert served_certificates.of_messages(heard) is None


def test_a_message_may_be_cut_into_records():
    der = b"x" * 300
    body = (303).to_bytes(3, "big") + (300).to_bytes(3, "big") + der
    message = b"\x02\x00\x00\x01z" + b"\x0b" + len(body).to_bytes(3, "big") + body
    parts = [message[:100], message[100:]]
    records = [b"\x16\x03\x03" + len(part).to_bytes(2, "big") + part for part in parts]
    assert served_certificates.of_messages(b"".join(records)) == der
