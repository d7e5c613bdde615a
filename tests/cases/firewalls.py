# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Macro of firewalls: firewalld as Red Hat's package brings it."""

from __future__ import annotations

from collections.abc import Iterable

from tests.unit.support import firewall_records

from .cluster import Evidence


def firewalld(
    evidence: Evidence,
    hosts: Iterable[str],
    ports: Iterable[str] = (),
    active: bool = True,
) -> None:
    """Let firewalld run on hosts, its public zone open for these ports, such as 10250/tcp.

    active: whether it runs now; it starts at the next boot in any case.
    """
    lines = "".join(
        f'  <port port="{port}" protocol="{protocol}"/>\n'
        for port, protocol in (one.split("/") for one in ports)
    )
    for host in hosts:
        found = firewall_records.red_hat(lines, active=active)
        found["firewalld"]["unread"] = []
        evidence.data(host, "boot")["firewall"] = found
