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
