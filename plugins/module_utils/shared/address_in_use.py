# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which addresses a message says that a program cannot listen at, because they are in use.

The texts are those of Go's net package, nginx, HAProxy, Envoy, dnsmasq, ingress-nginx and Docker.
"""

import re

# Words without which no text is searched; the collector looks for them first.
MARKS = (" in use", "already allocated")
TCP, UDP = "tcp", "udp"
LONGEST, MOST = 4096, 4  # characters of a text that are read, addresses of one text
_PLACE = r"(?P<address>\[?[0-9a-fA-F.:*%]{0,60}?\]?):(?P<port>\d{1,5})"
_FORMS = tuple(
    re.compile(text, re.IGNORECASE)
    for text in (
        r"\blisten (?P<protocol>tcp|udp)[46]? " + _PLACE + r": bind: address already in use",
        r"cannot bind socket \(address already in use\) (?:for )?\[" + _PLACE + r"\]",
        r"\bbind\(\) to " + _PLACE + r" failed \(98: address already in use",
        r"cannot bind '?" + _PLACE + r"'?: address (?:already )?in use",
        r"\bbind for " + _PLACE + r" failed: port is already allocated",
        r"\b(?P<address>)port (?P<port>\d{1,5}) is already in use",
        r"for port (?P<port>\d{1,5}): (?P<address>)address already in use",
    )
)
ANY = ("", "0.0.0.0", "::", "*")  # a program that listens at one of these has all addresses


def find(text):
    """Return [(protocol, address, port)] of the addresses that a text names, the last one first.

    An address without a host part is "".
    """
    if not any(mark in text for mark in MARKS):
        return []
    rows = []
    for form in _FORMS:
        for match in form.finditer(text[:LONGEST]):
            port = int(match.group("port"))
            if 0 < port < 65536:
                protocol = match.groupdict().get("protocol") or TCP
                address = match.group("address").strip("[]").lower()
                rows.append((match.start(), (protocol.lower(), address, port)))
    return list(dict.fromkeys(row for _start, row in sorted(rows, reverse=True)))[:MOST]


def collide(address, other):
    """Return whether two programs cannot listen at these addresses with the same port."""
    return address in ANY or other in ANY or _plain(address) == _plain(other)


def _plain(address):
    """Return an address without its zone, and of an IPv4 address in IPv6 form the IPv4 one."""
    address = address.partition("%")[0]
    if address.startswith("::ffff:") and "." in address:
        return address[len("::ffff:") :]
    return address
