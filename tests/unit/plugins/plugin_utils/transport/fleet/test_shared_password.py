# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A password of the command line."""

from __future__ import annotations

from typing import Any

import pytest
from ansible import context

from ansible_collections.kubemend.remediation.plugins.plugin_utils.transport.fleet import (
    shared_password as passwords,
)


@pytest.mark.parametrize(
    ("options", "variables", "named"),
    [
        ({"ask_pass": True}, {}, "-k"),
        ({"become_ask_pass": True}, {}, "-K"),
        ({"connection_password_file": "/x"}, {}, "--connection-password-file"),
        ({"become_password_file": "/x"}, {}, "--become-password-file"),
        ({}, {"ansible_password": 1}, "ansible_password"),
        ({}, {"ansible_ssh_pass": 1}, "ansible_ssh_pass"),
        ({}, {"ansible_become_password": 1}, "ansible_become_password"),
        ({}, {"ansible_sudo_pass": 1}, "ansible_sudo_pass"),
        ({"ask_pass": False}, {"ansible_user": 1, "kubemend_transport": 1}, ""),
    ],
)
def test_what_is_meant_for_every_host_is_named(
    options: dict[str, Any], variables: dict[str, Any], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "CLIARGS", options)
    assert passwords.shared_password(variables).startswith(named)
    assert bool(passwords.shared_password(variables)) == bool(named)
