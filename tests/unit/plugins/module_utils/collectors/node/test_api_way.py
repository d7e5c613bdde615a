# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way to the API server, tried on servers of this machine: name, connection, certificate."""

import base64
import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors import base
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import api_way

DAY = datetime.timedelta(days=1)


def certificate(address="127.0.0.1", until=DAY):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.timezone.utc)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kube-apiserver")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - 2 * DAY)
        .not_valid_after(now + until)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


@pytest.fixture
def serve(tmp_path):
    """Return a TLS server that shakes hands once, with this certificate: its port."""
    sockets = []

    def run(pem, key):
        (tmp_path / "both.pem").write_bytes(pem + key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(str(tmp_path / "both.pem"))
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        listening.listen(1)
        listening.settimeout(20)
        sockets.append(listening)

        def once():
            with contextlib.suppress(OSError):  # a client that does not trust it goes away
                context.wrap_socket(listening.accept()[0], server_side=True).close()

        threading.Thread(target=once, daemon=True).start()
        return listening.getsockname()[1]

    yield run
    for one in sockets:
        one.close()


def asked(server, authority=b"", **kubelet):
    text = f"clusters:\n- cluster:\n    server: {server}\n"
    if authority:
        text += f"    certificate-authority-data: {base64.b64encode(authority).decode()}\n"
    return api_way.collect(
        base.Context(
            {}, [], {"kubelet": dict({"kubeconfig": {"text": text}, "ca": None}, **kubelet)}
        )
    )


def test_a_server_that_is_well(serve):
    pem, key = certificate()
    server = f"https://127.0.0.1:{serve(pem, key)}"
    assert asked(server, pem) == {
        "server": server,
        "address": "127.0.0.1",
        "failed": None,
        "error": None,
    }


def test_the_ca_in_a_file_of_its_own_counts(serve):
    pem, key = certificate()
    assert (
        asked(f"https://127.0.0.1:{serve(pem, key)}", ca={"pem": certificate()[0].decode()})[
            "failed"
        ]
        == "certificate"
    )


@pytest.mark.parametrize(
    ("other", "address", "until"),
    [(True, "127.0.0.1", DAY), (False, "127.0.0.2", DAY), (False, "127.0.0.1", -DAY)],
    ids=["another CA", "another address", "expired"],
)
def test_a_certificate_that_is_not_trusted(serve, other, address, until):
    pem, key = certificate(address, until)
    found = asked(f"https://127.0.0.1:{serve(pem, key)}", certificate()[0] if other else pem)
    assert found["failed"] == "certificate"
    assert found["error"]


def test_nobody_listens():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        found = asked(f"https://127.0.0.1:{taken.getsockname()[1]}")
    assert (found["failed"], found["address"]) == (
        "connection",
        "127.0.0.1",
    )
    assert "refused" in found["error"]


@pytest.mark.parametrize(
    ("server", "error"),
    [
        ("unix:///run/api.sock", "no address"),
        ("https://127.0.0.1:99999", "no address"),
        ("https://", "no address"),
    ],
)
def test_what_is_no_server(server, error):
    assert asked(server)["failed"] == "name"
    assert error in asked(server)["error"]


def test_a_name_that_nobody_knows(monkeypatch):
    def unknown(*dummy):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert asked("https://api.example:6443") == {
        "server": "https://api.example:6443",
        "address": None,
        "failed": "name",
        "error": "[Errno -2] Name or service not known",
    }


def test_a_name_with_several_addresses_is_reached_by_any(serve, monkeypatch):
    pem, key = certificate()
    port = serve(pem, key)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        places = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", place)
            for place in (taken.getsockname(), ("127.0.0.1", port))
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *dummy: places)
        assert asked(f"https://127.0.0.1:{port}", pem)["failed"] is None


@pytest.mark.parametrize(
    "kubelet",
    [
        None,
        {},
        {"kubeconfig": None},
        {"kubeconfig": {"text": None}},
        {"kubeconfig": {"text": "clusters: []"}},
    ],
)
def test_without_a_kubeconfig(kubelet):
    with pytest.raises(base.Absent):
        api_way.collect(base.Context({}, [], {"kubelet": kubelet}))


def test_a_server_that_takes_connections_and_says_nothing_has_no_wrong_certificate(monkeypatch):
    monkeypatch.setattr(api_way, "SECONDS", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        found = asked(f"https://127.0.0.1:{silent.getsockname()[1]}")
    assert found["failed"] == "connection"
    assert "no TLS handshake" in found["error"]
