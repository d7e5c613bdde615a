# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses on several machines, in evidence that is written by hand."""

from __future__ import annotations

from typing import Any

from tests.unit.support import network_evidence
from tests.unit.support.api_nodes import node

VIP = "192.0.2.100"
HOSTS = ("m1", "m2", "m3", "w1")
NETWORK = {"to": "192.0.2.0/24", "dev": "eth0"}


def machines(world: Any) -> None:
    """Let each host be a machine of its own in 192.0.2.0/24, whose Node has its address."""
    for number, host in enumerate(HOSTS, 11):
        address = f"192.0.2.{number}"
        data = network_evidence.network(world, host)
        data["routes"].append(dict(NETWORK))
        world.data(host, "system").update(addresses=[address], boot_id=f"{number}" * 16)
        node(world, host)["addresses"] = [{"type": "InternalIP", "address": address}]


def give(world: Any, *hosts: str, address: str = VIP) -> None:
    """Let hosts have an address, at an interface that is not known."""
    for host in hosts:
        world.data(host, "system")["addresses"].append(address)


def tell(world: Any, dev: str, *hosts: str, address: str = VIP) -> None:
    """Let all hosts tell their interfaces, and these have an address at this one."""
    for host in HOSTS:
        own = [{"address": own, "dev": "eth0"} for own in world.data(host, "system")["addresses"]]
        rows = [row for row in own if row["address"] != address]
        rows += [{"address": address, "dev": dev}] if host in hosts else []
        world.data(host, "network")["addresses"] = rows


def front(world: Any, address: str = VIP, **way: Any) -> None:
    """Let kubelets have an address as that of the API."""
    server = f"https://[{address}]:6443" if ":" in address else f"https://{address}:6443"
    for host in HOSTS:
        data = {"server": server, "address": address, "failed": None, "error": None, **way}
        world.documents[host]["collectors"]["api_way"] = {"status": "ok", "data": data}
