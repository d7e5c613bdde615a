# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules that pods need, and where a distribution names modules for the next boot."""

MODULES = ("br_netfilter", "overlay")
LOADED, BUILTIN, ABSENT = "loaded", "builtin", "absent"
# The content of /run is gone by the next boot.
LOAD = (
    "/etc/modules-load.d",
    "/usr/local/lib/modules-load.d",
    "/usr/lib/modules-load.d",
    "/lib/modules-load.d",
)
SINGLE = "/etc/modules"
