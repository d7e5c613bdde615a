# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table that decides by which way a host is asked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible.plugins.become.sudo import BecomeModule as Sudo
from ansible.plugins.connection.local import Connection as Local
from ansible.plugins.connection.ssh import Connection as Ssh

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import ways


class Own(Ssh):  # type: ignore[misc]
    """A plugin of the operator's own."""


Own.__module__ = "ansible_collections.some.where.plugins.connection.ssh"


def plugin(kind: type, options: dict[str, Any], **attributes: Any) -> Any:
    made = object.__new__(kind)
    made.get_option = options.get
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def host(
    kind: type = Ssh,
    options: dict[str, Any] | None = None,
    become: Any = None,
    takes: bool = True,
    **attributes: Any,
) -> Any:
    passwords = {"password": "", "become_pass": "", **attributes}
    context = SimpleNamespace(**passwords)
    connection = plugin(kind, options or {}, become=become, _play_context=context)
    connection._shell = SimpleNamespace()
    action = SimpleNamespace(takes_program=lambda: takes, _play_context=context)
    return SimpleNamespace(connection=connection, action=action)


def test_plain_ssh_is_asked_by_a_client() -> None:
    assert ways.way_of(host()) == ways.CLIENT
    assert ways.way_of(host(become=plugin(Sudo, {}))) == ways.CLIENT


@pytest.mark.parametrize(
    "asked",
    [
        host(Local),
        host(Own),
        host(takes=False),
        host(options={"password": "x"}),
        host(options={"pkcs11_provider": "/lib/x.so"}),
        host(options={"private_key": "x"}),
        host(password="x"),
        host(become=plugin(Sudo, {"become_pass": "x"})),
        host(become=plugin(Sudo, {}), become_pass="x"),
        host(become=plugin(Own, {})),
    ],
)
def test_in_doubt_a_worker_asks(asked: Any) -> None:
    assert ways.way_of(asked) == ways.PLUGIN


@pytest.mark.parametrize(
    "words",
    [
        ("-J", "bastion"),
        ("-Jbastion",),
        ("-4Jbastion",),
        ("-vJ", "bastion"),
        ("-o", "ProxyJump=bastion"),
        ("-oProxyJump=bastion",),
        ("-o", "proxyjump bastion"),
        ("-o", "ProxyCommand=ssh -W %h:%p bastion"),
        ("-C", "-o", "ControlMaster=no", "-oproxycommand nc %h %p"),
    ],
)
def test_a_jump_host_is_seen(words: tuple[str, ...]) -> None:
    assert ways.jumps(["ssh", *words, "m1", "true"])


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("-o", "ProxyJump=none"),
        ("-i", "-J", "-l", "Jo"),
        ("-o", "ControlPath=/tmp/J"),
        ("-F", "ProxyJump=x"),
    ],
)
def test_no_jump_host_is_seen_where_there_is_none(words: tuple[str, ...]) -> None:
    assert not ways.jumps(["ssh", *words, "m1", "ssh", "-J", "bastion"])
