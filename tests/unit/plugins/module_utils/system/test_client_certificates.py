# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Client certificates that a control-plane node already has."""

import base64
from pathlib import Path

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    client_certificates,
    files,
)
from tests.unit.support.pki import Authority


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_an_embedded_pair(tmp_path: Path) -> None:
    (tmp_path / "admin.conf").write_text(
        f"users:\n- user:\n    client-certificate-data: {encoded('CERT')}\n"
        f"    client-key-data: {encoded('KEY')}\n"
    )
    assert client_certificates.of_kubeconfig(str(tmp_path / "admin.conf")) == (b"CERT", b"KEY")


def test_a_pair_in_files_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "a.crt").write_text("CERT")
    (tmp_path / "a.key").write_text("KEY")
    config = tmp_path / "admin.conf"
    config.write_text("client-certificate: a.crt\nclient-key: a.key\n")
    assert client_certificates.of_kubeconfig(str(config)) == (b"CERT", b"KEY")


@pytest.mark.parametrize(
    "text", ["token: x\n", "client-certificate-data: Q0VSVA==\n", "client-key-data: Q0VSVA==\n"]
)
def test_half_a_pair_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "admin.conf").write_text(text)
    assert client_certificates.of_kubeconfig(str(tmp_path / "admin.conf")) is None


def test_the_files_of_a_process_are_those_of_its_own_root(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []  # type: list[Any]

    def read(path: str, _limit: int, root: str) -> bytes:
        asked.append((root, path))
        return path.encode()

    monkeypatch.setattr(files, "read", read)
    process = {"pid": 7, "argv": ["x", "--cert=/a.crt", "--key=/a.key"]}
    assert client_certificates.of_process(process, "cert", "key") == (
        "/a.crt",
        b"/a.crt",
        b"/a.key",
    )
    assert asked == [("/proc/7/root", "/a.crt"), ("/proc/7/root", "/a.key")]
    assert client_certificates.of_process({"pid": 7, "argv": ["x"]}, "cert", "key") is None


def test_the_kubeconfig_comes_before_the_api_servers_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "admin.conf"
    config.write_text(
        f"client-certificate-data: {encoded('CERT')}\nclient-key-data: {encoded('KEY')}\n"
    )
    monkeypatch.setattr(
        client_certificates, "of_process", lambda process, *_flags: (process["pid"], b"", b"")
    )
    processes = [
        {"component": "kube-apiserver", "host_network": True, "pid": 1},
        {"component": "kube-apiserver", "host_network": False, "pid": 2},
        {"component": "etcd", "host_network": True, "pid": 3},
    ]
    found = client_certificates.of_components({"kubeconfig": str(config)}, processes)
    assert [pair[0] for pair in found] == [str(config), 1]
    missing = client_certificates.of_components({"kubeconfig": str(tmp_path / "no")}, processes)
    assert [pair[0] for pair in missing] == [1]


@pytest.mark.parametrize(("ends", "has_expired"), [(-1.0, True), (1.0, False), (40 * 365.0, False)])
def test_a_certificate_that_has_ended(ends: float, has_expired: bool) -> None:
    now = 1_800_000_000.0
    pair = Authority("kubernetes", now).issue("admin", begins=-400, ends=ends)
    pem = pair.pem.encode()
    assert client_certificates.has_expired(pem, now) is has_expired


def test_a_chain_counts_by_its_first_certificate() -> None:
    now = 1_800_000_000.0
    authority = Authority("kubernetes", now)
    pem = authority.pair.pem + authority.issue("admin", ends=-1).pem
    assert client_certificates.has_expired(pem.encode(), now) is False


@pytest.mark.parametrize(
    "pem", [b"", b"no PEM", b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"]
)
def test_what_cannot_be_read_has_not_ended(pem: bytes) -> None:
    assert client_certificates.has_expired(pem) is False
