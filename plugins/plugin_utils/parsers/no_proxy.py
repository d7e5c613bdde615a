# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a program of Go asks an address through its proxy, as golang.org/x/net/http/httpproxy.

An entry of NO_PROXY is an address, a network, a name (with its subdomains) or *, with or without a
port. An address of the machine itself is never asked through a proxy.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

# A cluster's hosts may be in it with their names and addresses.
MAX_TEXT, MAX_ENTRIES = 65536, 20000
HTTPS_PORT = "443"
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def bypasses(server: str, no_proxy: str) -> bool:
    """Tell whether requests to a server (HOST:PORT) do not go to the proxy. Never raises."""
    host, port = split(server)
    if not port and server.strip().lower().startswith("https://"):
        port = HTTPS_PORT
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(entry, host, port, address) for entry in _entries(no_proxy))


def is_cut(no_proxy: str) -> bool:
    """Tell whether not all of a list is there, so that it may have a server without its entry."""
    return no_proxy.endswith("\u2026") or no_proxy.count(",") >= MAX_ENTRIES


def split(server: str) -> tuple[str, str]:
    """Return (host in lower case without brackets, port or "") of HOST:PORT or a URL of it."""
    text = server.strip().lower().rpartition("://")[2].partition("/")[0]
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or (":" in host and not host.endswith("]")):
        host, port = text, ""
    return host.strip("[]").rstrip("."), port


def _entries(no_proxy: str) -> Iterator[str]:
    for entry in no_proxy.split(",", MAX_ENTRIES)[:MAX_ENTRIES]:
        if entry.strip():
            yield entry.strip().lower()


def _matches(entry: str, host: str, port: str, address: Address | None) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        return address is not None and _is_in_network(address, entry)
    name, named_port = split(entry)
    if named_port and named_port != port:
        return False
    if address is not None or _address(name) is not None:
        return address is not None and _address(name) == address
    return _is_in_domain(host, name)


def _is_in_domain(host: str, name: str) -> bool:
    """Tell whether a name is the domain or below it; one with a leading dot leaves itself out."""
    if name.startswith("*."):
        name = name[1:]
    if name.startswith("."):
        return host.endswith(name)
    return host == name or host.endswith(f".{name}")


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_in_network(address: Address, entry: str) -> bool:
    try:
        return address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False
