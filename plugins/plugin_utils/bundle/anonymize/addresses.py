# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses replaced by others, the same by the same, without a table that could be guessed.

IPv4: octet by octet, each below the octets before it, so that neighbours stay neighbours and a /8,
/16 or /24 holds what it held; among the octets of one place the order of their text stays, by which
hosts that are named by addresses are sorted. What says of what kind an address is (loopback,
private, link-local, multicast) stays. IPv6 likewise by its groups, MAC addresses by all of them.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Iterable

ORDINARY = [one for one in range(1, 224) if one not in (10, 100, 127, 169, 172, 192, 198, 203)]
SPECIAL = {"100": range(64, 128), "172": range(16, 32)}  # within these a second octet is the kind


class Addresses:
    """One replacement for one bundle. seen: every IPv4 address that there is.

    Others get what is left.
    """

    def __init__(self, seen: Iterable[str], chance: random.Random) -> None:
        self._chance = chance
        self._below: dict[tuple[str, ...], set[str]] = {}
        self._octets: dict[tuple[str, ...], dict[str, str]] = {}
        self._groups: dict[tuple[int, ...], dict[int, int]] = {}
        self._macs: dict[str, str] = {}
        for address in seen:
            octets = tuple(address.split("."))
            for place in range(4):
                self._below.setdefault(octets[:place], set()).add(octets[place])

    def ipv4(self, address: str) -> str:
        """Another address of the same kind; the same where the kind is all that it says."""
        octets = tuple(address.split("."))
        if (
            octets[0] in ("0", "127", "255")
            or octets[:2] == ("169", "254")
            or int(octets[0]) >= 224
        ):
            return address
        return ".".join(self._octet(octets[:place], octets[place]) for place in range(4))

    def network(self, address: str, prefix: int) -> str:
        """The same for the address of a network, which has no bits behind its prefix."""
        whole = int(ipaddress.IPv4Address(address))
        mask = (0xFFFFFFFF << (32 - prefix)) & 0xFFFFFFFF
        new = int(ipaddress.IPv4Address(self.ipv4(address)))
        return str(ipaddress.IPv4Address(new if whole & ~mask & 0xFFFFFFFF else new & mask))

    def ipv6(self, text: str) -> str:
        """Another address, written as short as this one or as long; text that is none stays."""
        try:
            address = ipaddress.IPv6Address(text)
        except ValueError:
            return text
        if address.ipv4_mapped is not None:
            return "::ffff:" + self.ipv4(str(address.ipv4_mapped)) if "." in text else text
        if int(address) < 2**32 or address.is_multicast:
            return text
        groups = [int(group, 16) for group in address.exploded.split(":")]
        if groups[0] & 0xFFC0 == 0xFE80:
            new = groups[:4] + [
                self._group(tuple(groups[:place]), groups[place]) for place in range(4, 8)
            ]
        else:
            new = [self._group(tuple(groups[:place]), groups[place]) for place in range(8)]
        made = ipaddress.IPv6Address(":".join(f"{group:x}" for group in new))
        shown = (
            made.exploded
            if text.lower() == address.exploded and text.lower() != address.compressed
            else made.compressed
        )
        return shown.upper() if text != text.lower() else shown

    def mac(self, text: str) -> str:
        """Another address of a network card, locally administered."""
        plain = text.lower().replace("-", ":")
        if plain in ("00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"):
            return text
        if plain not in self._macs:
            self._macs[plain] = ":".join(
                ["02"] + [f"{self._chance.randrange(256):02x}" for _pair in range(5)]
            )
        return self._macs[plain].replace(":", "-") if "-" in text else self._macs[plain]

    def _octet(self, before: tuple[str, ...], octet: str) -> str:
        known = self._octets.get(before)
        if known is None:
            known = self._octets[before] = self._assigned(before)
        if octet not in known:  # of a text that was not there when all were gathered
            left = [str(one) for one in self._free(before) if str(one) not in known.values()] or [
                octet
            ]
            known[octet] = self._chance.choice(left)
        return known[octet]

    def _assigned(self, before: tuple[str, ...]) -> dict[str, str]:
        """Replacements of all the octets that stand at this place, in the order of their text.

        What is no host's stays.
        """
        free, there = self._free(before), self._below.get(before, set())
        moved = sorted(octet for octet in there if int(octet) in free)
        chosen = moved
        for _try in range(50):  # rather none that stays; where nearly all are there that cannot be
            if any(old == new for old, new in zip(moved, chosen)):
                chosen = sorted(str(one) for one in self._chance.sample(free, len(moved)))
        return {**{octet: octet for octet in there}, **dict(zip(moved, chosen))}

    @staticmethod
    def _free(before: tuple[str, ...]) -> list[int]:
        """What may stand at this place instead of what stands there."""
        if not before:
            return ORDINARY
        if len(before) == 1 and before[0] in SPECIAL:
            return list(SPECIAL[before[0]])
        if before == ("192",):
            return [one for one in range(1, 256) if one not in (2, 88, 168)]
        if before == ("198",):
            return [one for one in range(256) if one not in (18, 19, 51)]
        return list(range(256)) if len(before) < 3 else list(range(1, 255))

    def _group(self, before: tuple[int, ...], group: int) -> int:
        known = self._groups.setdefault(before, {0: 0})
        if group not in known:
            low, high = (group & 0xE000, (group & 0xE000) + 0x1FFF) if not before else (1, 0xFFFF)
            if not before and group & 0xFE00 == 0xFC00:
                low, high = group & 0xFF00, (group & 0xFF00) + 0xFF
            taken = set(known.values())
            new = self._chance.randint(low, high)
            while (
                new in taken
                or new == group
                or (not before and group & 0xFE00 != 0xFC00 and new >= 0xFC00)
                or new == 0
            ):
                new = self._chance.randint(low, high)
                if len(taken) > 60000 or (not before and len(taken) > 200):
                    break
            known[group] = new
        return known[group]
