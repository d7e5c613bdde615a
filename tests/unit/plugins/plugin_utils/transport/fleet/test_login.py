# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a login passes on to asyncssh, and what a connection that fails says."""

from __future__ import annotations

import asyncio
import inspect
import socket
from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import (
    login,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet.options import (
    NotHonoured,
    Settings,
)
from tests.unit.support import loopback_sshd

asyncssh: Any = pytest.importorskip("asyncssh")


def settings(port: int, **options: str) -> Settings:
    values = {"hostname": "127.0.0.1", "port": str(port), "addressfamily": "any", **options}
    return Settings({name: (value,) for name, value in values.items()})


def test_a_refusal_is_said_as_ssh_says_it() -> None:
    port = loopback_sshd.free_port()
    with pytest.raises(login.NotConnected) as raised:
        asyncio.run(login.connect(settings(port)))
    expected = f"ssh: connect to host 127.0.0.1 port {port}: Connection refused\r\n"
    assert str(raised.value) == expected


def test_a_silent_address_costs_the_time_of_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async def wait(*_args: Any) -> None:
            await asyncio.sleep(600)

        monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", wait)
        await login.connect(settings(9, connecttimeout="1"))

    with pytest.raises(login.NotConnected, match="Connection timed out"):
        asyncio.run(run())


def test_a_name_without_an_address_is_left_to_ssh() -> None:
    with pytest.raises(NotHonoured):
        asyncio.run(login.connect(settings(22, hostname="no.such.name.invalid")))


def test_an_address_of_the_other_family_is_not_used() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        asyncio.run(login.connect(settings(port, addressfamily="inet"))).close()
        with pytest.raises(NotHonoured):
            asyncio.run(login.connect(settings(port, addressfamily="inet6")))


def test_a_login_without_a_key_connects_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    offered = dict.fromkeys(("hostkeyalgorithms", "pubkeyacceptedalgorithms"), "ssh-ed25519")
    nowhere = {"stricthostkeychecking": "false", "userknownhostsfile": "/dev/null"}
    with pytest.raises(NotHonoured, match="key"):
        asyncio.run(login.log_in(settings(9, **offered, **nowhere)))


def test_asyncssh_knows_each_option_that_is_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the options from a login, because asyncssh's own tables of them may change."""
    passed: dict[str, Any] = {}

    async def connect(*_places: Any, **named: Any) -> str:
        passed.update(named)
        return "a connection"

    async def keys(_settings: Settings) -> tuple[list[str], None]:
        return ["a key"], None

    async def connected(_settings: Settings) -> None:
        return None

    monkeypatch.setattr(asyncssh, "connect", connect)
    monkeypatch.setattr(login, "_client_keys", keys)
    monkeypatch.setattr(login, "connect", connected)
    options = {
        "user": "me",
        "hostkeyalgorithms": "ssh-ed25519",
        "pubkeyacceptedalgorithms": "ssh-ed25519",
        "kexalgorithms": "sntrup761x25519-sha512,curve25519-sha256",
        "ciphers": "aes128-ctr",
        "macs": "hmac-sha2-256",
        "stricthostkeychecking": "no",
        "userknownhostsfile": "/dev/null",
    }
    assert asyncio.run(login.log_in(settings(22, **options))) == "a connection"
    known = set(inspect.signature(asyncssh.SSHClientConnectionOptions.prepare).parameters)
    assert set(passed) - known == {"sock"}
    assert passed["config"] is None
    assert passed["agent_path"] is None
    assert passed["preferred_auth"] == ("publickey",)
    assert passed["kex_algs"][-1] == "curve25519-sha256"
    assert [bool(passed[name]) for name in ("password_auth", "kbdint_auth", "gss_auth")] == [
        False
    ] * 3


def test_only_a_key_of_the_host_is_accepted() -> None:
    told: list[str] = []
    keys = login.host_keys.HostKeys(["ssh-ed25519"], lambda key: key == "mine")
    checks = login._checks(keys, lambda: told.append("exchanged"))()
    assert checks.validate_host_public_key("m1", "10.0.0.1", 22, "mine")
    assert not checks.validate_host_public_key("m1", "10.0.0.1", 22, "other")
    assert not checks.validate_host_ca_key("m1", "10.0.0.1", 22, "mine")
    assert told == ["exchanged"] * 2
