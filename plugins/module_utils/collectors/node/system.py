# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector system: the machine, its operating system and its addresses."""

import os
import time

from ...system import files, yaml_scalars

# kube-proxy's mode ipvs gives a node the address of every service.
MAX_ADDRESSES, MAX_TRIE = 1024, 4194304


def collect(context):
    """Return what this machine is."""
    context.source = "/proc, /etc, /sys/fs/cgroup"
    trie = files.whole("/proc/net/fib_trie", MAX_TRIE)
    addresses = ipv4(trie or "") + ipv6(files.whole("/proc/net/if_inet6", MAX_TRIE) or "")
    context.truncated = len(addresses) > MAX_ADDRESSES or trie is None or len(trie) >= MAX_TRIE
    uptime = files.text("/proc/uptime", 64, "0").split()
    return {
        "hostname": os.uname()[1],
        "machine_id": _line("/etc/machine-id"),
        "boot_id": _line("/proc/sys/kernel/random/boot_id"),
        "uptime_s": float(uptime[0]),
        "kernel": os.uname()[2],
        "os_release": yaml_scalars.os_release(
            files.text("/etc/os-release") or files.text("/usr/lib/os-release") or ""
        ),
        "cgroup": cgroup_version(),
        "addresses": addresses[:MAX_ADDRESSES],
        "clock": time.time(),
    }


def _line(path):
    return (files.text(path, 256) or "").strip() or None


def cgroup_version(root="/sys/fs/cgroup"):
    """Return v2, hybrid where the unified hierarchy exists in addition to those of v1, or v1."""
    if os.path.exists(root + "/cgroup.controllers"):
        return "v2"
    if os.path.exists(root + "/unified"):
        return "hybrid"
    return "v1"


def ipv4(fib_trie):
    """Return this host's own addresses of /proc/net/fib_trie in their order, without loopback."""
    addresses, address = [], None
    for line in fib_trie.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] in ("|--", "+--"):
            address = words[1]
        elif words[:3] == ["/32", "host", "LOCAL"] and address and address not in addresses:
            addresses.append(address)
    return [address for address in addresses if not address.startswith("127.")]


def ipv6(if_inet6):
    """Return the addresses of global scope in /proc/net/if_inet6, in their short form."""
    addresses = []
    for line in if_inet6.splitlines():
        words = line.split()
        if len(words) == 6 and len(words[0]) == 32 and words[3] == "00":
            addresses.append(short(words[0]))
    return addresses


def short(digits):
    """Return 32 hexadecimal digits as an IPv6 address, its longest run of zero groups as ::."""
    groups = [digits[at : at + 4].lstrip("0") or "0" for at in range(0, 32, 4)]
    best, length, at = 0, 1, 0
    while at < 8:
        end = at
        while end < 8 and groups[end] == "0":
            end += 1
        if end - at > length:
            best, length = at, end - at
        at = max(end, at + 1)
    if length == 1:
        return ":".join(groups)
    return ":".join(groups[:best]) + "::" + ":".join(groups[best + length :])
