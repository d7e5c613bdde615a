# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A password of the command line, which is meant for every host.

Ansible keeps it in what every connection is made from. One task for all hosts keeps no password
there, so that none can reach another host: it does not read such hosts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ansible import context

# Options of ansible-playbook with which the base of every connection holds a password.
PASSWORD_OPTIONS = {
    "ask_pass": "-k",
    "become_ask_pass": "-K",
    "connection_password_file": "--connection-password-file",
    "become_password_file": "--become-password-file",
}

PASSWORD_VARIABLE = re.compile(r"ansible_(?:\w+_)?(?:pass|password|passphrase)")


def shared_password(extra_variables: Iterable[object]) -> str:
    """Return why the command line gives one password for all hosts; empty where it does not."""
    for name, option in PASSWORD_OPTIONS.items():
        if context.CLIARGS.get(name):
            return f"{option} gives one password for all hosts"
    for variable in extra_variables:
        if PASSWORD_VARIABLE.fullmatch(str(variable)):
            return f"{variable} on the command line is one password for all hosts"
    return ""
