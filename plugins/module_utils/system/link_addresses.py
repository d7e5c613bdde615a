# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""At which interface each address of this machine is.

/proc/net/fib_trie has the addresses without their interfaces, and those of local routes too, which
clouds add for their load balancers.
"""

import array
import fcntl
import socket
import struct

SIOCGIFCONF = 0x8912  # linux/sockios.h; without rights, and of this network namespace alone
NAME_SIZE, FAMILY_SIZE, PORT_SIZE, IPV4_SIZE = 16, 2, 2, 4
# struct ifreq: a name, and a union of which struct ifmap is the largest, with three bytes unused
ROW_SIZE = NAME_SIZE + struct.calcsize("@LLHBBB3x")
MAX_ADDRESSES = 1024
GLOBAL_SCOPE = "00"


def ipv4(control=fcntl.ioctl):
    """Return [(address, name of the interface or of its alias)], None where it is not told."""
    data = array.array("B", bytes(MAX_ADDRESSES * ROW_SIZE))
    request = struct.pack("iP", len(data), data.buffer_info()[0])
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            answer = control(probe.fileno(), SIOCGIFCONF, request)
    except OSError:
        return None
    return rows(data.tobytes()[: struct.unpack("iP", answer)[0]])


def rows(data):
    """Return [(address, name)] of the structures that the kernel wrote."""
    pairs = []
    at_address = NAME_SIZE + FAMILY_SIZE + PORT_SIZE
    for start in range(0, len(data) - ROW_SIZE + 1, ROW_SIZE):
        row = data[start : start + ROW_SIZE]
        name = row[:NAME_SIZE].split(b"\0")[0].decode("ascii", "replace")
        pairs.append((socket.inet_ntoa(row[at_address : at_address + IPV4_SIZE]), name))
    return pairs


def ipv6(if_inet6):
    """Return [(address, name)] of the addresses of global scope in /proc/net/if_inet6."""
    pairs = []
    for line in if_inet6.splitlines():
        words = line.split()
        if len(words) == 6 and len(words[0]) == 32 and words[3] == GLOBAL_SCOPE:
            address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(words[0]))
            pairs.append((address, words[5]))
    return pairs
