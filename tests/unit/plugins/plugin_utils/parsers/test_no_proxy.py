# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a program of Go asks without its proxy, as the tests of golang.org/x/net/http/httpproxy."""

from __future__ import annotations

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.parsers import no_proxy


@pytest.mark.parametrize(
    ("server", "entries", "bypassed"),
    [
        ("https://10.0.0.9:6443", "", False),
        ("https://10.0.0.9:6443", "10.0.0.9", True),
        ("https://10.0.0.9:6443", "10.0.0.9:6443", True),
        ("https://10.0.0.9:6443", "10.0.0.9:443", False),
        ("https://api.example.com", "api.example.com:443", True),
        ("https://api.example.com", "api.example.com:6443", False),
        ("api.example.com", "api.example.com:443", False),
        ("10.0.0.9:6443", "192.0.2.0/24, 10.0.0.0/8", True),
        ("10.0.0.9:6443", "10.0.0.0/33,10.0.0", False),
        ("10.0.0.9:6443", "*", True),
        ("https://[fd00::9]:6443", "fd00::/8", True),
        ("https://[fd00::9]:6443", "[fd00::9]:6443", True),
        ("https://fd00::9", "fd00:0::9", True),
        ("https://api.Example.com:6443", "example.com", True),
        ("https://api.example.com:6443", ".example.com", True),
        ("https://api.example.com:6443", "*.example.com", True),
        ("https://example.com:6443", ".example.com", False),
        ("https://example.com.:6443", "example.com", True),
        ("https://badexample.com:6443", "example.com", False),
        ("https://api.example.com:6443", "10.0.0.0/8", False),
        ("https://127.0.0.1:6443", "", True),
        ("https://localhost:6443", "", True),
        ("", "a,b", False),
    ],
)
def test_what_goes_around_the_proxy(server, entries, bypassed):
    assert no_proxy.bypasses(server, entries) is bypassed


@pytest.mark.parametrize(
    ("server", "parts"),
    [
        ("https://10.0.0.9:6443", ("10.0.0.9", "6443")),
        ("https://api.example.com/k8s/clusters/c-1", ("api.example.com", "")),
        ("[fd00::9]:6443", ("fd00::9", "6443")),
        ("fd00::9", ("fd00::9", "")),
    ],
)
def test_host_and_port(server, parts):
    assert no_proxy.split(server) == parts


@pytest.mark.parametrize(
    ("entries", "is_cut"),
    [("", False), ("a,b", False), ("a,b\u2026", True), ("a," * no_proxy.MAX_ENTRIES, True)],
)
def test_a_list_that_was_cut(entries, is_cut):
    assert no_proxy.is_cut(entries) is is_cut
