# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collector network answers, for evidence written by hand."""

from __future__ import annotations

from typing import Any


def network(world: Any, host: str = "w1", **changes: Any) -> dict[str, Any]:
    """Let a host answer, as a node without anything of note does."""
    data: dict[str, Any] = {
        "resolvers": [
            {
                "path": "/etc/resolv.conf",
                "nameservers": ["192.0.2.53"],
                "search": ["example.org"],
                "error": None,
            }
        ],
        "interfaces": [interface("eth0")],
        "rp_filter": 0,
        "routes": [{"to": "0.0.0.0/0", "dev": "eth0"}],
        "routes_cut": False,
        "networkd": None,
        "network_manager": None,
        "iptables": {"tables": [], "legacy": False, "nft": None},
        "conntrack": {"count": 900, "max": 131072},
        "neighbours": [{"family": "ipv4", "entries": 20, "most": 1024, "overflows": 0}],
        **changes,
    }
    world.documents[host]["collectors"]["network"] = {"status": "ok", "data": data}
    return data


def interface(name: str, mtu: int = 1500, rp_filter: int = 0, kind: str = "") -> dict[str, Any]:
    return {"name": name, "count": 1, "kind": kind, "mtu": mtu, "rp_filters": [rp_filter]}


def service(*rows: tuple[str, str, str], active: bool = True, **more: Any) -> dict[str, Any]:
    """Return a service with settings (section, key, value)."""
    settings = [
        {"path": "/etc/x.conf", "line": number, "section": section, "key": key, "value": value}
        for number, (section, key, value) in enumerate(rows, 1)
    ]
    return {"active": active, "since": None, "rows": settings, "unread": [], **more}
