# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules that pods need, and where a distribution names modules for the next boot."""

MODULES = ("br_netfilter", "overlay")
# Without these no rule of kube-proxy or of a network plugin is accepted, in mode iptables and ipvs.
XTABLES = ("nf_conntrack", "xt_conntrack", "xt_comment", "xt_mark")
NETWORK = (*XTABLES, "vxlan", "openvswitch")
# Options of the kernel's build (CONFIG_...) without which Cilium does not start.
OPTIONS = ("BPF_SYSCALL", "CGROUP_BPF", "NET_CLS_ACT", "NET_CLS_BPF", "NET_SCH_INGRESS")
LOADED, BUILTIN, ABSENT = "loaded", "builtin", "absent"
AVAILABLE = "available"  # on the disk, and not loaded
# The content of /run is gone by the next boot.
LOAD = (
    "/etc/modules-load.d",
    "/usr/local/lib/modules-load.d",
    "/usr/lib/modules-load.d",
    "/lib/modules-load.d",
)
SINGLE = "/etc/modules"
