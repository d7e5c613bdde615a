# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of services that load a ruleset, as the collector boot reads them."""

from __future__ import annotations

from typing import Any

UNIT, CONF = "/usr/lib/systemd/system/nftables.service", "/etc/nftables.conf"
OF_RED_HAT = "/etc/sysconfig/nftables.conf"
# The commands of Debian 12 and of RHEL 9.
DEBIAN = (
    (UNIT, 15, "ExecStart=/usr/sbin/nft -f /etc/nftables.conf"),
    (UNIT, 16, "ExecReload=/usr/sbin/nft -f /etc/nftables.conf"),
    (UNIT, 17, "ExecStop=/usr/sbin/nft flush ruleset"),
)
RED_HAT = (
    (UNIT, 15, "ExecStart=/sbin/nft -f /etc/sysconfig/nftables.conf"),
    (UNIT, 16, "ExecReload=/sbin/nft 'flush ruleset; include \"/etc/sysconfig/nftables.conf\";'"),
    (UNIT, 17, "ExecStop=/sbin/nft flush ruleset"),
)
FLUSH = (CONF, 3, "flush ruleset")


def loader(*lines: tuple[str, int, str], **changes: Any) -> dict[str, Any]:
    """Return the record of a service that is active."""
    return {
        "active": True,
        "since": None,
        "enabled": True,
        "enabled_at": None,
        "masked": False,
        "lines": [{"path": path, "line": line, "text": text} for path, line, text in lines],
        "unread": [],
        **changes,
    }
