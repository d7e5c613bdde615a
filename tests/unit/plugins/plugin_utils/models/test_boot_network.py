# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units that were started at boot before their network, and that nothing starts again."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubemend.remediation.plugins.plugin_utils.models import boot_network

CLOCK, UPTIME = 1_800_000_000.0, 900.0
UNIT = "k3s.service"
INTERFACE = 'level=fatal msg="flannel exited: failed to find IPv4 address for interface ens224"'
BIND = "listen tcp 10.0.0.1:2380: bind: cannot assign requested address"
ROUTE = 'no default routes found in "/proc/net/route" or "/proc/net/ipv6_route"'


def document(
    *, addresses: Any = ("10.0.0.1",), routes: Any = ("0.0.0.0/0",), after: Any = ("basic.target",)
) -> dict[str, Any]:
    units = [] if after is False else [{"name": UNIT, "after": after}]
    answers = {
        "system": {"clock": CLOCK, "uptime_s": UPTIME, "addresses": addresses},
        "network": {"routes": [{"to": route, "dev": "eth0"} for route in routes]},
        "unit_start": {"units": units},
    }
    rows = {name: {"status": "ok", "data": data} for name, data in answers.items()}
    return {"schema": "kubemend.evidence/1", "collectors": rows}


def early(line: str, ago: float | None = 880, **facts: Any) -> boot_network.Early | None:
    ended_at = None if ago is None else CLOCK - ago
    return boot_network.early(document(**facts), UNIT, line, ended_at)


@pytest.mark.parametrize(
    ("line", "subject"), [(INTERFACE, "ens224"), (BIND, "10.0.0.1"), (ROUTE, "default route")]
)
def test_what_is_there_now_was_not_there_at_boot(line: str, subject: str) -> None:
    found = early(line)
    assert found is not None
    assert subject in found.subject
    assert "After=network-online.target" in found.clause
    assert "After=network-online.target" in found.advice(UNIT)


@pytest.mark.parametrize(
    ("after", "is_ordered"),
    [(False, None), (None, None), (["network.target"], False), (["network-online.target"], True)],
)
def test_the_order_of_the_unit(after: Any, is_ordered: bool | None) -> None:
    found = early(INTERFACE, after=after)
    assert found is not None
    assert found.is_ordered is is_ordered
    assert ("no After=" in found.clause) is (is_ordered is False)
    assert "--interface=ens224" in found.advice(UNIT)


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        (BIND, {"addresses": ["10.0.0.9"]}),
        (ROUTE, {"routes": ["10.0.0.0/24"]}),
        (INTERFACE, {"ago": 100}),  # long after the boot
        (INTERFACE, {"ago": 1000}),  # before it
        (INTERFACE, {"ago": None}),
        ("listen tcp 10.0.0.1:2380: bind: address already in use", {}),
    ],
)
def test_what_is_missing_still_or_ended_later_is_no_order(line: str, facts: dict[str, Any]) -> None:
    assert early(line, **facts) is None
