# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holders of ports, in evidence that is written by hand."""

from __future__ import annotations

from typing import Any


def row(port: int, address: str = "0.0.0.0", protocol: str = "tcp", **holder: Any) -> dict:
    """Return an address that one socket has, or none where the holder is not told."""
    holders = []
    if holder:
        holders = [{"kind": "listen", "address": "0.0.0.0", "comm": "", **holder}]
    return {"protocol": protocol, "address": address, "port": port, "holders": holders}


def hold(world: Any, host: str, *rows: dict, **more: Any) -> None:
    """Let a host tell who has these addresses."""
    data = {"addresses": [dict(item, **more) for item in rows]}
    world.documents[host]["collectors"]["address_holders"] = {"status": "ok", "data": data}
