# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible's message as one sentence."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.document import (
    NEVER_BEGAN,
)
from ansible_collections.kubemend.remediation.plugins.plugin_utils.run.ansible_message import (
    never_began,
)


@pytest.mark.parametrize(
    "message",
    [
        "Task failed: 'x' is undefined",
        "Task failed: Action failed: 'x' is undefined",
        "'x' is undefined. 'x' is undefined. 'x' is undefined",
        "'x' is undefined\n\nTask failed.\nOrigin: /a/b.yml:1:2",
        "'x' is undefined\nOrigin: /a/b.yml:1:2",
    ],
)
def test_only_the_cause_is_left(message: str) -> None:
    assert never_began(message) == f"{NEVER_BEGAN}: 'x' is undefined"


def test_without_a_cause_it_says_so() -> None:
    assert never_began("  ").startswith(NEVER_BEGAN)
    assert ":" not in never_began("")
