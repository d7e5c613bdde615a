# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys that are offered are those that ssh would offer without asking anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import (
    identities,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet.options import (
    NotHonoured,
    Settings,
)
from tests.unit.support import loopback_sshd

pytest.importorskip("asyncssh")


def settings(*files: Path | str, **options: str) -> Settings:
    values = {name: (value,) for name, value in options.items()}
    return Settings({**values, "identityfile": tuple(map(str, files))})


def test_each_file_that_exists_is_a_key(tmp_path: Path) -> None:
    loopback_sshd.keygen(tmp_path / "a")
    loopback_sshd.keygen(tmp_path / "b", "-t", "ecdsa")
    files = (tmp_path / "a", tmp_path / "missing", "none", tmp_path / "b")
    keys = identities.file_keys(settings(*files), False)
    assert [key.algorithm for key in keys] == [b"ssh-ed25519", b"ecdsa-sha2-nistp256"]


def test_a_passphrase_is_left_to_the_agent_or_to_ssh(tmp_path: Path) -> None:
    loopback_sshd.keygen(tmp_path / "a", "-N", "a passphrase")
    assert identities.file_keys(settings(tmp_path / "a"), True) == []
    with pytest.raises(NotHonoured):
        identities.file_keys(settings(tmp_path / "a"), False)


def test_a_file_that_others_may_read_is_left_to_ssh(tmp_path: Path) -> None:
    loopback_sshd.keygen(tmp_path / "a")
    (tmp_path / "a").chmod(0o640)
    with pytest.raises(NotHonoured):
        identities.file_keys(settings(tmp_path / "a"), True)


def test_a_certificate_a_folder_and_a_public_key_are_left_to_ssh(tmp_path: Path) -> None:
    loopback_sshd.keygen(tmp_path / "a")
    public = tmp_path / "public"
    public.write_text((tmp_path / "a.pub").read_text())
    public.chmod(0o600)
    (tmp_path / "b").write_text((tmp_path / "a").read_text())
    (tmp_path / "b").chmod(0o600)
    (tmp_path / "b-cert.pub").write_text("x")
    for path in (tmp_path, public, tmp_path / "b"):
        with pytest.raises(NotHonoured):
            identities.file_keys(settings(path), False)


def test_a_small_key_of_rsa_is_not_offered(tmp_path: Path) -> None:
    loopback_sshd.keygen(tmp_path / "a", "-t", "rsa", "-b", "2048")
    assert len(identities.file_keys(settings(tmp_path / "a"), False)) == 1
    assert identities.file_keys(settings(tmp_path / "a", requiredrsasize="3072"), False) == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "/run/agent"),
        ({"identityagent": "SSH_AUTH_SOCK"}, "/run/agent"),
        ({"identityagent": "none"}, ""),
        ({"identitiesonly": "yes"}, ""),
    ],
)
def test_the_agent_is_asked_where_ssh_asks_it(options: dict[str, Any], expected: str) -> None:
    environment = {"SSH_AUTH_SOCK": "/run/agent"}
    assert identities.agent_path(settings(**options), environment) == expected
    assert identities.agent_path(settings(**options), {}) == ""
