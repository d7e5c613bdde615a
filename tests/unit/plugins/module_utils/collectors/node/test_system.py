# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses of a node."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.base import (
    Context,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.collectors.node import (
    system,
)
from ansible_collections.kubemend.remediation.plugins.module_utils.system import (
    files,
)


def test_own_addresses(capture):
    assert system.ipv4(capture("fib_trie.txt"))[0].startswith("10.89.")
    assert not any(address.startswith("127.") for address in system.ipv4(capture("fib_trie.txt")))


def test_addresses_behind_the_first_page_are_read(tmp_path, monkeypatch):
    """The kernel gives a page of such a file at each read."""
    read = files.os.read
    monkeypatch.setattr(
        files.os, "read", lambda descriptor, size: read(descriptor, min(size, 4096))
    )
    text = "".join(
        f"|-- 10.0.{number // 250}.{number % 250 + 1}\n/32 host LOCAL\n" for number in range(500)
    )
    (tmp_path / "trie").write_text(text)
    assert len(text) > 8192
    assert len(system.ipv4(files.whole(str(tmp_path / "trie")))) == 500
    assert files.whole("/nowhere") is None


@pytest.mark.parametrize(
    ("count", "cut"), [(3, False), (system.MAX_ADDRESSES, False), (system.MAX_ADDRESSES + 1, True)]
)
def test_more_addresses_than_are_kept_are_said(monkeypatch, count, cut):
    text = "".join(
        f"|-- 10.{number // 250}.{number % 250}.1\n/32 host LOCAL\n" for number in range(count)
    )
    monkeypatch.setattr(
        system.files, "whole", lambda path, limit: text if path.endswith("fib_trie") else ""
    )
    context = Context({}, [], {})
    assert (len(system.collect(context)["addresses"]), context.truncated) == (
        min(count, system.MAX_ADDRESSES),
        cut,
    )


@pytest.mark.parametrize(
    ("digits", "expected"),
    [
        ("fd000000000000000000000000000001", "fd00::1"),
        ("20010db8000000010000000000000001", "2001:db8:0:1::1"),
        ("0" * 32, "::"),
        ("1" * 32, ":".join(["1111"] * 8)),
    ],
)
def test_ipv6(digits, expected):
    assert system.short(digits) == expected
    assert system.ipv6(f"{digits} 02 40 00 80 eth0\n{'f' * 32} 02 40 20 80 eth0\n") == [expected]
