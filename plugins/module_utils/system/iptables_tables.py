# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell which backends of iptables the kernel has, so that no list of rules loads a module."""

import os

from . import files

NFT = "nf_tables"


def legacy(proc="/proc"):
    """Return the names of the legacy tables, None where this user may not read them."""
    path = proc + "/net/ip_tables_names"
    text = files.text(path, 4096)
    if text is None and os.path.exists(path):
        return None
    return [files.one_line(word, 40) for word in (text or "").split()][:10]


def has_nft(proc="/proc", tree=None):
    """Return whether the kernel has nf_tables, as a module that is loaded or as a part of it."""
    loaded = files.whole(proc + "/modules")
    if loaded is None and not os.path.exists(proc + "/modules"):
        return True  # a kernel without modules loads none
    tree = tree or "/lib/modules/" + os.uname()[2]
    builtin = files.whole(tree + "/modules.builtin") or ""
    return NFT + " " in (loaded or "") or f"/{NFT}.ko" in builtin
