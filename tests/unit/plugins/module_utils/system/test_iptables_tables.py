# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which backends of iptables a kernel has already."""

import pytest

from ansible_collections.kubemend.remediation.plugins.module_utils.system import iptables_tables


@pytest.mark.parametrize(
    ("modules", "builtin", "has_nft"),
    [
        ("nf_tables 262144 1 - Live 0x0\n", "", True),
        ("nf_conntrack 1 1 - Live 0x0\n", "", False),
        ("", "kernel/net/netfilter/nf_tables.ko\n", True),
        ("", "kernel/net/netfilter/nf_tables_set.ko\n", False),
        # a kernel without modules
        (None, "", True),
    ],
)
def test_whether_the_kernel_has_nft(tmp_path, modules, builtin, has_nft):
    if modules is not None:
        (tmp_path / "modules").write_text(modules)
    (tmp_path / "modules.builtin").write_text(builtin)
    assert iptables_tables.has_nft(str(tmp_path), str(tmp_path)) is has_nft


@pytest.mark.parametrize(
    ("text", "tables"), [("nat\nfilter\n", ["nat", "filter"]), ("", []), (None, [])]
)
def test_the_legacy_tables(tmp_path, text, tables):
    (tmp_path / "net").mkdir()
    if text is not None:
        (tmp_path / "net" / "ip_tables_names").write_text(text)
    assert iptables_tables.legacy(str(tmp_path)) == tables


def test_tables_that_may_not_be_read_are_not_known(tmp_path):
    (tmp_path / "net" / "ip_tables_names").mkdir(parents=True)
    assert iptables_tables.legacy(str(tmp_path)) is None
