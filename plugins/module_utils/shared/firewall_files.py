# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of firewalld, of ufw, and of services that load a ruleset at their start."""

FIREWALLD, UFW = "firewalld", "ufw"
OURS, VENDOR = "/etc/firewalld", "/usr/lib/firewalld"
KUBERNETES = ("kube", "etcd")  # how the services are called that firewalld brings for it
RULES = (
    "/etc/ufw/ufw.conf",
    "/etc/default/ufw",
    "/etc/ufw/before.rules",
    "/etc/ufw/before6.rules",
    "/etc/ufw/user.rules",
    "/etc/ufw/user6.rules",
    "/etc/ufw/after.rules",
    "/etc/ufw/after6.rules",
    "/lib/ufw/user.rules",
    "/lib/ufw/user6.rules",
)
# ufw runs them where they are executable: as they are shipped they are not
SCRIPTS = ("/etc/ufw/before.init", "/etc/ufw/after.init")
NFTABLES, PERSISTENT = "nftables", "netfilter-persistent"
IPTABLES, IP6TABLES = "iptables", "ip6tables"
PERSISTENT_DEFAULTS = "/etc/default/netfilter-persistent"
# Services that load a ruleset at their start, and the files that they load.
LOADERS = {
    NFTABLES: ("/etc/nftables.conf", "/etc/sysconfig/nftables.conf"),
    IPTABLES: ("/etc/sysconfig/iptables",),
    IP6TABLES: ("/etc/sysconfig/ip6tables",),
    PERSISTENT: ("/etc/iptables/rules.v4", "/etc/iptables/rules.v6", PERSISTENT_DEFAULTS),
}
