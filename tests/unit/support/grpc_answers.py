# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What servers of gRPC send on a connection: recorded, and made by hand."""

from ansible_collections.kubemend.remediation.plugins.module_utils.system import grpc_call

# grpc-status, a new name, by the code of HPACK
HUFFMAN = b"\x40\x88\x9a\xca\xc8\xb2\x12\x34\xda\x8f"
SETTINGS = grpc_call.frame(4, 0, 0, b"") + grpc_call.frame(4, 1, 0, b"")
BEGIN = grpc_call.frame(1, 4, 1, b"\x88\x5f\x10application/grpc")


# What containerd 2.2.1 sent: its version, and that it has no such service.
GREETING = (
    b"\0\0\x06\x04\0\0\0\0\0\0\x05\0\0@\0\0\0\0\x04\x01\0\0\0\0\0\0\x04\x08\0\0\0\0"
    b"\0\0\0\0\x05\0\0\x08\x06\0\0\0\0\0\x02\x04\x10\x10\t\x0e\x07\x07"
)
TOLD = (
    b"\0\0\x0e\x01\x04\0\0\0\x01\x88_\x8b\x1du\xd0b\r&=LMed\0\0$\0\0\0\0\0\x01\0\0\0\0\x1f\n\x05"
    b'0.1.0\x12\ncontainerd\x1a\x06v2.2.1"\x02v1'
    b"\0\0\x18\x01\x05\0\0\0\x01@\x88\x9a\xca\xc8\xb2\x124\xda\x8f\x010@\x89\x9a\xca\xc8\xb5%B"
    b"\x071\x7f\0"
)
NO_SERVICE = (
    b"\0\0E\x01\x05\0\0\0\x01\x88_\x8b\x1du\xd0b\r&=LMed@\x88\x9a\xca\xc8\xb2\x124\xda\x8f\x0212"
    b"@\x89\x9a\xca\xc8\xb5%B\x071\x7f\x9e\xb6\xae\xb5\x1f\xc5J"
    b" \xb6w1\n\xa5\x96\xd4\x93RU\xfb\x85}\xb6\xd4\x93R]\xc5\xb3\xb9\x88_"
)


def trailer(number, name=HUFFMAN):
    # and an empty grpc-message
    return (
        name + bytes([len(number)]) + number + b"\x40\x88\x9a\xca\xc8\xb5\x25\x42\x07\x31\x7f\x00"
    )


def done(number, message=b"\x0a\0"):
    size = len(message).to_bytes(4, "big")
    return (
        SETTINGS
        + BEGIN
        + grpc_call.frame(0, 0, 1, b"\0" + size + message)
        + grpc_call.frame(1, 5, 1, trailer(number))
    )


def refused(number):
    return SETTINGS + grpc_call.frame(1, 5, 1, b"\x88\x5f\x10application/grpc" + trailer(number))
