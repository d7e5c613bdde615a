# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a unit ended at boot because the network was not there yet. Pure.

What a program misses may be missing for good. So it counts only where it is there now, or where
the evidence cannot tell, and only of a unit that ended minutes after the boot and stays down.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..evidence import contract
from ..evidence.answers.node.network import Network
from ..evidence.answers.node.system import System
from ..evidence.answers.node.unit_start import UnitStart
from ..evidence.document import one_line, shell_name

BOOT_SECONDS = 600
TARGET = "network-online.target"
DEFAULT = "0.0.0.0/0"
_LACKS = re.compile(
    # flannel, by itself and within k3s
    r"failed to find IPv[46] address for interface (?P<interface>[\w.-]{1,15})"
    r"|(?P<route>no default routes found|[Uu]nable to find default route)"
    r"|listen (?:tcp|udp)[46]? \[?(?P<address>[0-9a-fA-F.:]{3,45}?)\]?:\d{1,5}:"
    r" bind: cannot assign requested address"
)


class Early(NamedTuple):
    """What a unit did not wait for.

    is_ordered: whether it is ordered after network-online.target; None where that is not known
    """

    subject: str
    is_ordered: bool | None
    interface: str = ""

    @property
    def clause(self) -> str:
        """Return what happened, as a clause that follows the state of the unit."""
        text = f"; it was started at boot before {self.subject}"
        if self.is_ordered is None:
            return text
        if self.is_ordered:
            return f"{text}: its unit waits for {TARGET}, which was reached without that"
        return f"{text}: its unit has no After={TARGET}"

    def advice(self, unit: str) -> str:
        """Return what keeps the next boot from ending in the same way, as a clause."""
        online = (
            "systemd-networkd-wait-online.service or NetworkManager-wait-online.service, of which"
            " the one of this machine must be enabled"
        )
        if self.interface:
            online += f" (systemd-networkd-wait-online waits with --interface={self.interface})"
        return (
            f"; and systemctl edit {unit}: [Unit] After={TARGET} Wants={TARGET}, [Service]"
            f" Restart=always RestartSec=5, or the next boot may end the same way; {TARGET} waits"
            f" by {online}"
        )


def early(
    document: Mapping[str, Any], unit: str, line: str, ended_at: float | None
) -> Early | None:
    """Return what of the network a unit missed at this boot, or None.

    line: with which its program ended. ended_at: when, in seconds since the epoch.
    """
    match = _LACKS.search(line)
    if match is None or not _is_of_boot(document, ended_at):
        return None
    subject = _subject(document, match)
    if not subject:
        return None
    interface = shell_name(match.group("interface") or "", "")
    return Early(subject, _is_ordered(document, unit), interface)


def _subject(document: Mapping[str, Any], match: re.Match[str]) -> str:
    """Return what was missing, as a clause, or "" where it is missing still."""
    address, interface = match.group("address"), match.group("interface")
    if address:
        addresses = contract.answer(document, System).addresses
        is_there = addresses is None or address in addresses
        return f"{one_line(address, 45)} was an address of the machine" if is_there else ""
    if interface:
        return f"{one_line(interface, 15)} had an address"
    routes = contract.answer(document, Network).routes
    is_there = not routes or any(route.to == DEFAULT and not route.is_dead_end for route in routes)
    return "the machine had a default route" if is_there else ""


def _is_of_boot(document: Mapping[str, Any], ended_at: float | None) -> bool:
    system = contract.answer(document, System)
    if ended_at is None or system.clock is None or system.uptime_s is None:
        return False
    return 0 <= ended_at - (system.clock - system.uptime_s) < BOOT_SECONDS


def _is_ordered(document: Mapping[str, Any], unit: str) -> bool | None:
    units = contract.answer(document, UnitStart).units
    after = next((row.after for row in units if row.name == unit), None)
    return None if after is None else TARGET in after
