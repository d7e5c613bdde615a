# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Become only where it is needed: the node itself reports whether the connection is root already.

Ansible knows the remote user by name only. A connection without a user name (podman, docker,
kubectl) is root as a rule, and such a node has no sudo. So the command that becomes root checks
that first on the node, in the same round trip, for a program on standard input and for modules.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ansible import constants

# These only become another user. Another plugin may enter a namespace or a session too, which root
# needs as well.
METHODS = frozenset(
    ("sudo", "su", "doas", "dzdo", "pbrun", "pfexec", "pmrun", "ksu", "sesu", "sudosu", "run0")
)
ROOT = (None, "", "root")
ASK = 'if [ "$(id -u 2>/dev/null)" = 0 ]; then {plain}; else {become}; fi'


@contextmanager
def only_where_needed(connection: Any) -> Iterator[None]:
    """Let this connection become root only where the node does not say that it is root already."""
    become = connection.become
    if become is None or not _may_be_skipped(become):
        yield
        return
    build = become.build_become_command

    def either(command: str, shell: Any) -> str:
        with_become: str = build(command, shell)
        if not command or with_become == command:
            return with_become
        return _either(become, command, with_become, shell)

    become.build_become_command = either
    try:
        yield
    finally:
        del become.build_become_command


def _may_be_skipped(become: Any) -> bool:
    """Tell whether become does nothing for root.

    An operator who allows it for the same user wants it for root too.
    """
    if (
        constants.config.get_config_value("BECOME_ALLOW_SAME_USER")
        or become.get_option("become_user") not in ROOT
    ):
        return False
    # An executable of the operator's own may do more: enter a namespace, for example.
    words = str(become.get_option("become_exe") or "").split()
    if words and _last(words[0], "/") not in METHODS:
        return False
    return _last(str(become.name), ".") in METHODS


def _last(name: str, mark: str) -> str:
    return name.rpartition(mark)[2]


def _either(become: Any, command: str, with_become: str, shell: Any) -> str:
    """Return the command for both.

    The mark by which Ansible sees that become succeeded is printed in both.
    """
    # There is no other way to the mark.
    build = become._build_success_command  # pylint: disable=protected-access
    success = build(command, shell, True)
    plain = f"{getattr(shell, 'executable', None) or '/bin/sh'} -c {success}"
    return f"/bin/sh -c {shlex.quote(ASK.format(plain=plain, become=with_become))}"
