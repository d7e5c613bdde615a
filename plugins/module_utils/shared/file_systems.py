# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""File systems whose files are on a server, which may be gone and has rights of its own."""

REMOTE = ("nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "glusterfs", "lustre", "afs")
