# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checksum of the kubelet's state files, and how much of the device checkpoint is kept."""

MAX_ENTRIES = 2000  # of the checkpoint of the device manager


def fnv32a(data):
    """Return FNV-1a of 32 bits, which the kubelet writes into its state files."""
    value = 0x811C9DC5
    for byte in bytearray(data):
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value
