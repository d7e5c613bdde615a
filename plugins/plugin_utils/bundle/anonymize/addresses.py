# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses replaced by others, the same by the same, without a table that could be guessed.

IPv4: octet by octet, each below the octets before it, so that neighbours stay neighbours and a /8,
/16 or /24 holds what it held; the octets of one position keep the order of their text, by which
hosts that are named by addresses are sorted. The kind of an address (loopback, private, link-local,
multicast) stays. IPv6 likewise by its groups, MAC addresses as a whole.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Iterable

SHARED_OCTETS = (10, 100, 127, 169, 172, 192, 198, 203)  # begin networks with a meaning
ORDINARY = [octet for octet in range(1, 224) if octet not in SHARED_OCTETS]
# The second octets that belong to the same kind; of others those without a meaning of their own.
SECOND_OCTETS = {
    ("100",): list(range(64, 128)),
    ("172",): list(range(16, 32)),
    ("192",): [octet for octet in range(1, 256) if octet not in (2, 88, 168)],
    ("198",): [octet for octet in range(256) if octet not in (18, 19, 51)],
}
ATTEMPTS = 50
MAX_GROUPS, MAX_FIRST_GROUPS = 60000, 200  # after which a replacement may occur twice


class Addresses:
    """The replacements of one bundle. Addresses outside of `seen` get what remains free."""

    def __init__(self, addresses: Iterable[str], chance: random.Random) -> None:
        self._chance = chance
        self._below: dict[tuple[str, ...], set[str]] = {}
        self._octets: dict[tuple[str, ...], dict[str, str]] = {}
        self._groups: dict[tuple[int, ...], dict[int, int]] = {}
        self._macs: dict[str, str] = {}
        for address in addresses:
            octets = tuple(address.split("."))
            for place in range(4):
                self._below.setdefault(octets[:place], set()).add(octets[place])

    def ipv4(self, address: str) -> str:
        """Return another address of the same kind; the same if it says only its kind."""
        octets = tuple(address.split("."))
        if octets[0] in ("0", "127", "255") or int(octets[0]) >= 224:
            return address
        if octets[:2] == ("169", "254"):
            return address
        return ".".join(self._octet(octets[:place], octets[place]) for place in range(4))

    def network(self, address: str, prefix: int) -> str:
        """Replace an address with a prefix: a network has no bits after the prefix."""
        mask = (0xFFFFFFFF << (32 - prefix)) & 0xFFFFFFFF
        new = int(ipaddress.IPv4Address(self.ipv4(address)))
        if not int(ipaddress.IPv4Address(address)) & ~mask & 0xFFFFFFFF:
            new &= mask
        return str(ipaddress.IPv4Address(new))

    def ipv6(self, text: str) -> str:
        """Return another address, written in the same form; other text stays."""
        try:
            address = ipaddress.IPv6Address(text)
        except ValueError:
            return text
        if address.ipv4_mapped is not None:
            if "." not in text:
                return text
            return "::ffff:" + self.ipv4(str(address.ipv4_mapped))
        if int(address) < 2**32 or address.is_multicast:
            return text
        return _written_like(text, address, self._ipv6(address))

    def _ipv6(self, address: ipaddress.IPv6Address) -> ipaddress.IPv6Address:
        groups = [int(group, 16) for group in address.exploded.split(":")]
        kept = 0
        if groups[0] & 0xFFC0 == 0xFE80:  # link-local
            kept = 4
        new = groups[:kept] + [
            self._group(tuple(groups[:place]), groups[place]) for place in range(kept, 8)
        ]
        return ipaddress.IPv6Address(":".join(f"{group:x}" for group in new))

    def mac(self, text: str) -> str:
        """Return another address of a network card, locally administered."""
        plain = text.lower().replace("-", ":")
        if plain in ("00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"):
            return text
        if plain not in self._macs:
            pairs = [f"{self._chance.randrange(256):02x}" for _pair in range(5)]
            self._macs[plain] = ":".join(["02", *pairs])
        if "-" in text:
            return self._macs[plain].replace(":", "-")
        return self._macs[plain]

    def _octet(self, before: tuple[str, ...], octet: str) -> str:
        if before not in self._octets:
            self._octets[before] = self._assigned(before)
        octets = self._octets[before]
        if octet not in octets:  # of a text that was not gathered
            unused = [str(free) for free in _free(before) if str(free) not in octets.values()]
            octets[octet] = self._chance.choice(unused or [octet])
        return octets[octet]

    def _assigned(self, before: tuple[str, ...]) -> dict[str, str]:
        """Return replacements of all octets at this position, in the order of their text.

        An octet that no host may have stays.
        """
        free, octets = _free(before), self._below.get(before, set())
        moved = sorted(octet for octet in octets if int(octet) in free)
        chosen = moved
        for _attempt in range(ATTEMPTS):  # preferably no octet stays; not always possible
            if any(old == new for old, new in zip(moved, chosen, strict=True)):
                chosen = sorted(str(octet) for octet in self._chance.sample(free, len(moved)))
        return {**{octet: octet for octet in octets}, **dict(zip(moved, chosen, strict=True))}

    def _group(self, before: tuple[int, ...], group: int) -> int:
        groups = self._groups.setdefault(before, {0: 0})
        if group not in groups:
            groups[group] = self._new_group(before, group, set(groups.values()))
        return groups[group]

    def _new_group(self, before: tuple[int, ...], group: int, used: set[int]) -> int:
        if before:
            low, high, limit = 1, 0xFFFF, MAX_GROUPS
        else:
            low, high = _first_group_range(group)
            limit = MAX_FIRST_GROUPS
        # The first groups from 0xFC00 on are local or link-local, which others must not become.
        local_begins = 0x10000
        if not before and group & 0xFE00 != 0xFC00:
            local_begins = 0xFC00
        new = self._chance.randint(low, high)
        while new in used or new in (0, group) or new >= local_begins:
            new = self._chance.randint(low, high)
            if len(used) > limit:
                break
        return new


def _first_group_range(group: int) -> tuple[int, int]:
    """Return the range of first groups that are of the same kind."""
    if group & 0xFE00 == 0xFC00:
        low = group & 0xFF00
        return low, low + 0xFF
    low = group & 0xE000
    return low, low + 0x1FFF


def _free(before: tuple[str, ...]) -> list[int]:
    """Return the octets that may replace an octet at this position."""
    if not before:
        return ORDINARY
    if before in SECOND_OCTETS:
        return SECOND_OCTETS[before]
    if len(before) < 3:
        return list(range(256))
    return list(range(1, 255))


def _written_like(text: str, address: ipaddress.IPv6Address, new: ipaddress.IPv6Address) -> str:
    """Return the new address as the text writes the old one: exploded or not, in its case."""
    shown = new.compressed
    if text.lower() == address.exploded and text.lower() != address.compressed:
        shown = new.exploded
    if text != text.lower():
        return shown.upper()
    return shown
