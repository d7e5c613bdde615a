# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The spare disk of a virtual machine behind device-mapper, where it can fail or be suspended."""

from __future__ import annotations

DISK = "/dev/vdb"
NAME = "lab"
MAPPED = f"/dev/mapper/{NAME}"
FOLDER = "/var/lib/kubelet"
SECTORS = f"$(blockdev --getsz {DISK})"
MAKE = f"""
dmsetup create {NAME} --table "0 {SECTORS} linear {DISK} 0"
mkfs.ext4 -q -E lazy_itable_init=1 {MAPPED}
mount {MAPPED} /mnt
"""
# The folder of the kubelet moves to a file system of its own on that device.
MOVE = f"""
systemctl stop kubelet
{MAKE}
cp -ax {FOLDER}/. /mnt/
umount /mnt
mount -o errors=remount-ro {MAPPED} {FOLDER}
systemctl start kubelet
"""
