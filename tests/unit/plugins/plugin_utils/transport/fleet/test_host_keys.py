# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host keys that count are those that ssh would find for the name and the port."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import (
    host_keys,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet.options import (
    NotHonoured,
    Settings,
)

asyncssh: Any = pytest.importorskip("asyncssh")
SUPPORTED = ["ssh-ed25519", "ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256"]


@pytest.fixture(scope="module")
def keys() -> dict[str, Any]:
    made = {name: asyncssh.generate_private_key("ssh-ed25519") for name in ("mine", "other")}
    made["rsa"] = asyncssh.generate_private_key("ssh-rsa", key_size=2048)
    return {name: key.convert_to_public() for name, key in made.items()}


def line(pattern: str, key: Any) -> str:
    return f"{pattern} {key.export_public_key().decode().strip()}\n"


def found(tmp_path: Path, text: str, **options: str) -> host_keys.HostKeys:
    path = tmp_path / "known_hosts"
    path.write_text(text)
    values = {"hostname": "Web1", "port": "22", "userknownhostsfile": f"{path} {path}2", **options}
    settings = Settings({name: (value,) for name, value in values.items()})
    return host_keys.host_keys(settings, SUPPORTED)


@pytest.mark.parametrize(
    ("pattern", "port"),
    [
        ("web1", "22"),
        ("web1,10.0.0.1", "22"),
        ("web*", "22"),
        ("[web1]:2222", "2222"),
        ("web1", "2222"),  # ssh looks without the port too
    ],
)
def test_a_key_of_the_name_counts(
    tmp_path: Path, keys: dict[str, Any], pattern: str, port: str
) -> None:
    answer = found(tmp_path, line(pattern, keys["mine"]) + "# text\n\n", port=port)
    assert answer.trusts(keys["mine"])
    assert not answer.trusts(keys["other"])
    assert answer.algorithms == ["ssh-ed25519"]


def test_a_hashed_name_counts(tmp_path: Path, keys: dict[str, Any]) -> None:
    path = tmp_path / "hashed"
    path.write_text(line("web1", keys["mine"]))
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(path)], check=True, capture_output=True)
    text = path.read_text()
    assert "web1" not in text
    assert found(tmp_path, text).trusts(keys["mine"])


@pytest.mark.parametrize(
    "pattern", ["web2", "10.0.0.1", "[web1]:2222", "!web1,web*", "10.0.0.0/8", "|1|x|y"]
)
def test_a_key_of_another_name_does_not_count(
    tmp_path: Path, keys: dict[str, Any], pattern: str
) -> None:
    with pytest.raises(NotHonoured):
        found(tmp_path, line(pattern, keys["mine"]))


def test_a_network_is_no_name(tmp_path: Path, keys: dict[str, Any]) -> None:
    with pytest.raises(NotHonoured):
        found(tmp_path, line("10.0.0.0/8", keys["mine"]), hostname="10.0.0.1")


@pytest.mark.parametrize("marker", ["@cert-authority", "@revoked"])
def test_certificates_and_revoked_keys_are_left_to_ssh(
    tmp_path: Path, keys: dict[str, Any], marker: str
) -> None:
    text = line("web1", keys["mine"]) + line(f"{marker} web1", keys["other"])
    with pytest.raises(NotHonoured):
        found(tmp_path, text)


def test_an_unknown_host_is_left_to_ssh_unless_it_keeps_no_key(
    tmp_path: Path, keys: dict[str, Any]
) -> None:
    with pytest.raises(NotHonoured):
        found(tmp_path, "", stricthostkeychecking="false")
    nowhere = {"stricthostkeychecking": "false", "userknownhostsfile": "/dev/null"}
    answer = found(tmp_path, "", **nowhere)
    assert answer.trusts(keys["other"])
    assert answer.algorithms == SUPPORTED
    known = tmp_path / "global"
    known.write_text(line("web1", keys["mine"]))
    answer = found(tmp_path, "", globalknownhostsfile=str(known), **nowhere)
    assert not answer.trusts(keys["other"])


def test_a_small_key_of_rsa_does_not_count(tmp_path: Path, keys: dict[str, Any]) -> None:
    text = line("web1", keys["rsa"])
    assert found(tmp_path, text).algorithms == ["rsa-sha2-512", "rsa-sha2-256"]
    with pytest.raises(NotHonoured):
        found(tmp_path, text, requiredrsasize="3072")
    nowhere = {"stricthostkeychecking": "false", "userknownhostsfile": "/dev/null"}
    assert not found(tmp_path, "", requiredrsasize="3072", **nowhere).trusts(keys["rsa"])


def test_files_are_read_once_in_each_state(
    tmp_path: Path, keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    load = asyncssh.import_known_hosts

    def count(text: str) -> Any:
        read.append(text)
        return load(text)

    monkeypatch.setattr(asyncssh, "import_known_hosts", count)
    path = tmp_path / "known_hosts"
    path.write_text(line("web1", keys["mine"]))
    values = {"hostname": "web1", "userknownhostsfile": str(path)}
    settings = Settings({name: (value,) for name, value in values.items()})
    for _number in range(3):
        assert host_keys.host_keys(settings, SUPPORTED).trusts(keys["mine"])
    assert len(read) == 1
    path.write_text(line("web1,web2", keys["other"]))
    assert not host_keys.host_keys(settings, SUPPORTED).trusts(keys["mine"])
    assert len(read) == 2
