# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytes are redacted only where they may hold a secret."""

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import redacted_bytes


def test_bytes_without_a_hint_stay_as_they_are() -> None:
    assert redacted_bytes.masked(b"a: 1\n") == (b"a: 1\n", [])
    assert redacted_bytes.masked(b"token: abc\n") == (b"token: ***\n", [[7, 10]])
