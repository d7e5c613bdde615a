# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the evidence of a node tells of processes that the kernel killed for want of memory."""

MAX_KILLS = 40  # the newest ones that a node sends
MACHINE, CGROUP = "machine", "cgroup"  # what had no memory left
