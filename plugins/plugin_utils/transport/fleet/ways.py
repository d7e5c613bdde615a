# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which way a host is asked: by an ssh client, or by a worker with any connection plugin.

In doubt it is the next way. A worker does what Ansible's task does, so it is right for every host.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ansible

from .hosts import Host

CLIENT, PLUGIN = "client", "plugin"
SSH = "ansible.plugins.connection.ssh"
BECOME = (
    "ansible.plugins.become.sudo",
    "ansible_collections.community.general.plugins.become.doas",
)
# Options of the ssh plugin with which it does more than to run a command.
SECRETS = ("password", "private_key", "private_key_passphrase", "pkcs11_provider")
# Letters of ssh's options that take an argument.
WITH_ARGUMENT = frozenset("BbcDEeFIiJLlmOoPpQRSWw")
PROXIES = ("proxyjump", "proxycommand")


def way_of(host: Host) -> str:
    """Return the way on which a host is asked."""
    if all(allows(host) for allows in CLIENT_REQUIRES):
        return CLIENT
    return PLUGIN


def _is_the_ssh_plugin(host: Host) -> bool:
    """Tell whether the connection is Ansible's own ssh plugin, and no other of the same name."""
    return _is_of_ansible(type(host.connection), (SSH,))


def _has_no_secret(host: Host) -> bool:
    connection = host.connection
    if connection._play_context.password:
        return False
    return not any(_option(connection, name) for name in SECRETS)


def _takes_a_program(host: Host) -> bool:
    return bool(host.action.takes_program())


def _speaks_sh(host: Host) -> bool:
    return not getattr(host.connection._shell, "_IS_WINDOWS", False)


def _becomes_without_password(host: Host) -> bool:
    become = host.connection.become
    if become is None:
        return True
    if not _is_of_ansible(type(become), BECOME):
        return False
    if getattr(become, "require_tty", False) or host.connection._play_context.become_pass:
        return False
    return not (_option(become, "become_pass") or host.action._play_context.become_pass)


def _is_not_persistent(host: Host) -> bool:
    return not getattr(host.connection, "force_persistence", False)


CLIENT_REQUIRES: tuple[Callable[[Host], bool], ...] = (
    _is_the_ssh_plugin,
    _has_no_secret,
    _takes_a_program,
    _speaks_sh,
    _becomes_without_password,
    _is_not_persistent,
)


def _is_of_ansible(plugin: type, names: Sequence[str]) -> bool:
    """Tell whether a plugin's class is one of these, from where they are installed.

    A plugin of the operator's own, in a folder of a playbook, gets the name of Ansible's.
    """
    module = plugin.__module__
    if module not in names:
        return False
    if not module.startswith("ansible."):
        return True
    path = getattr(sys.modules.get(module), "__file__", None)
    home = Path(ansible.__file__).resolve().parent
    return path is not None and home in Path(path).resolve().parents


def _option(plugin: Any, name: str) -> Any:
    """Return an option of a plugin; None where this release of the plugin does not have it."""
    try:
        return plugin.get_option(name)
    except KeyError:
        return None


def jumps(line: Sequence[str]) -> bool:
    """Tell whether the arguments of an ssh client name a jump host or another proxy."""
    words = iter(line[1:])
    for word in words:
        if not word.startswith("-") or word == "-":
            return False  # the destination: what follows is the command
        for place, letter in enumerate(word[1:], 2):
            if letter in WITH_ARGUMENT:
                value = word[place:] or next(words, "")
                if letter == "J" or (letter == "o" and _names_proxy(value)):
                    return True
                break
    return False


def _names_proxy(setting: str) -> bool:
    name, _mark, value = setting.replace("=", " ", 1).strip().partition(" ")
    return name.lower() in PROXIES and value.strip().lower() not in ("", "none")
