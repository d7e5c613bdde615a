# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that mark a secret, and bytes that may hold one."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.shared import redaction_names


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("token", True),
        ("client-key-data", True),
        ("--bootstrap-token", True),
        ("DB_PASSWORD", True),
        ("token-file", False),
        ("secretName", False),
        ("initial-cluster-token", False),
    ],
)
def test_keys_of_secrets(name: str, is_secret: bool) -> None:
    assert redaction_names.secret_key(name) is is_secret


@pytest.mark.parametrize(
    ("data", "is_suspicious"),
    [(b"https://me:x@host/", True), (b"https://host/a@b", True), (b"https://host/", False)],
)
def test_urls_with_a_user(data: bytes, is_suspicious: bool) -> None:
    assert redaction_names.suspicious(data) is is_suspicious
