# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses by which a node is known."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import node_identity


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://10.0.0.1:2379", ("10.0.0.1",)),
        ("https://[fd00::1]:2379,http://10.0.0.1", ("fd00::1", "10.0.0.1")),
        ("https://name:1", ()),
        ("", ()),
        (None, ()),
        ("https://[fd00::zz]:1", ()),
    ],
)
def test_addresses_in_urls(text, expected):
    assert node_identity.of_urls(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80::1"),
        ("[::1]", "::1"),
        ("x", "None"),
        (None, "None"),
        ("010.0.0.1.1", "None"),
    ],
)
def test_addresses(text, expected):
    assert str(node_identity.ip(text)) == expected
