# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collector network: what a node has for its pods' traffic beside their network plugin.

It reads files of /proc, /sys, /etc and /run, and asks the kernel for its addresses. It starts
iptables-save only where the kernel has tables of both of its backends, or has some and
kube-router's policies are a matter of the node.
"""

import os

from ...shared.kernel_modules import ABSENT, AVAILABLE, BUILTIN, LOADED, NETWORK, OPTIONS
from ...system import (
    files,
    iptables_tables,
    link_addresses,
    network_services,
    policy_chains,
    procfs,
    yaml_scalars,
)
from ...system.command import CommandError, run
from ..base import Absent
from . import boot

RESOLV_CONF, STUB_UPSTREAM = "/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"
# Interfaces of pods, of which a node has one each: they are counted together.
POD_INTERFACES = ("veth", "cali", "lxc", "eni", "azv", "gke")
NO_POD_INTERFACES = ("lxcbr",)  # the bridge of LXC
MAX_INTERFACES, MAX_OF_A_KIND, MAX_ROUTES, MAX_WORDS = 100, 64, 500, 40
MAX_RULES, RULES_SECONDS = 1048576, 3
MAX_CONFIG = 1048576
REJECTED = 0x0200  # RTF_REJECT
# /proc/net/route has no interface for a route that leads nowhere, and no flag for a blackhole.
NO_INTERFACE, BLACKHOLE, UNREACHABLE = "*", "blackhole", "unreachable"
# The chains that kube-proxy makes for Services; the kubelet makes others.
SERVICE_CHAINS = (":KUBE-SERVICES ", ":KUBE-SVC-", ":KUBE-SEP-", ":KUBE-NODEPORTS ")
TUNNEL = "vxlan"
IPVS, MAX_LINKS = "kube-ipvs0", 20
LOOPBACK = "127."
NEIGHBOURS = (("ipv4", "arp_cache"), ("ipv6", "ndisc_cache"))


def collect(context):
    """Return the resolvers, interfaces, routes, services and tables of this node's network."""
    kubelet = context.data.get("kubelet")
    if not kubelet:
        raise Absent("no kubelet")
    context.source = "/proc, /sys/class/net, resolv.conf, files of networkd and NetworkManager"
    names = files.names("/sys/class/net")
    route_rows, are_routes_cut = routes(files.whole("/proc/net/route"))
    return {
        "resolvers": [resolver(path) for path in resolver_paths(kubelet)],
        "interfaces": interfaces(names),
        "addresses": addresses(names),
        "rp_filter": _number("/proc/sys/net/ipv4/conf/all/rp_filter"),
        "arp_ignore": arp_ignore(names, route_rows),
        "routes": route_rows,
        "routes_cut": are_routes_cut,
        "networkd": network_services.networkd(),
        "network_manager": network_services.network_manager(),
        "iptables": iptables(),
        "policy_chains": policy_chains.collect(kubelet),
        "conntrack": {
            "count": _number("/proc/sys/net/netfilter/nf_conntrack_count"),
            "max": _number("/proc/sys/net/netfilter/nf_conntrack_max"),
        },
        "modules": modules(),
        "kernel_options": kernel_options(),
        "neighbours": [neighbours(family, cache) for family, cache in NEIGHBOURS],
    }


def resolver_paths(kubelet):
    """Return the file that the kubelet is told to give to pods, and those that it could be."""
    paths = [procfs.flag(kubelet.get("argv") or [], "resolv-conf")]
    for record in [kubelet.get("config")] + (kubelet.get("config_dropins") or []):
        if record and record.get("text"):
            paths.append(yaml_scalars.top(record["text"], "resolvConf"))
    absolute = [path for path in paths if path and path.startswith("/")]
    return list(dict.fromkeys([*absolute, RESOLV_CONF, STUB_UPSTREAM]))


def resolver(path):
    """Return {path, nameservers, search, error} of one resolv.conf."""
    record = {"path": files.one_line(path, 253), "nameservers": [], "search": [], "error": None}
    try:
        text = files.read(path).decode("utf-8", "replace")
    except OSError as error:
        record["error"] = files.reason(error)
        return record
    for line in text.split("\n"):
        words = line.split()
        if words[:1] == ["nameserver"]:
            record["nameservers"] += words[1:2]
        elif words[:1] in (["search"], ["domain"]):
            record["search"] = words[1:]
    for key in ("nameservers", "search"):
        record[key] = [files.one_line(word, 253) for word in record[key][:MAX_WORDS]]
    return record


def interfaces(names, sys="/sys/class/net", proc="/proc/sys/net/ipv4/conf"):
    """Return [{name, count, kind, mtu, rp_filters, mac}]; those of pods are one row for each kind.

    mac: of a tunnel alone, None of others.
    """
    rows = {}
    for name in sorted(names):
        key = _kind_of_pods(name) or name
        if name == "lo" or (key not in rows and len(rows) >= MAX_INTERFACES):
            continue
        row = rows.setdefault(
            key,
            {
                "name": files.one_line(key, 40),
                "count": 0,
                "kind": "",
                "mtu": None,
                "rp_filters": [],
                "mac": None,
            },
        )
        row["count"] += 1
        if row["count"] <= MAX_OF_A_KIND:
            _measure(row, name, sys, proc)
    return list(rows.values())


def addresses(names, ipv4=link_addresses.ipv4, proc="/proc"):
    """Return [{address, dev}] without loopback, None where the kernel does not tell it.

    dev: empty where it is an alias that does not begin with the name of its interface.
    """
    pairs = ipv4()
    if pairs is None:
        return None
    pairs += link_addresses.ipv6(files.whole(os.path.join(proc, "net/if_inet6")) or "")
    devices = {name: files.one_line(name, 40) for name in names}
    return [
        {"address": address, "dev": devices.get(name.partition(":")[0], "")}
        for address, name in pairs
        if not address.startswith(LOOPBACK)
    ][: link_addresses.MAX_ADDRESSES]


def _kind_of_pods(name):
    if name.startswith(NO_POD_INTERFACES):
        return None
    prefix = next((prefix for prefix in POD_INTERFACES if name.startswith(prefix)), None)
    return prefix + "*" if prefix else None


def _measure(row, name, sys, proc):
    mtu = _number(os.path.join(sys, name, "mtu"))
    if mtu is not None:
        row["mtu"] = max(mtu, row["mtu"] or 0)
    if row["count"] == 1:
        row["kind"] = _kind(files.text(os.path.join(sys, name, "uevent"), 1024) or "")
    if row["kind"] == TUNNEL:
        row["mac"] = files.one_line(files.text(os.path.join(sys, name, "address"), 40) or "", 40)
    value = _number(os.path.join(proc, name, "rp_filter"))
    if value is not None and value not in row["rp_filters"]:
        row["rp_filters"] = sorted([*row["rp_filters"], value])


def _kind(uevent):
    for line in uevent.split("\n"):
        key, _equals, value = line.partition("=")
        if key == "DEVTYPE":
            return files.one_line(value.strip(), 40)
    return ""


def routes(text):
    """Return ([{to, dev, kind}] of the main table, whether it was cut), without pods' interfaces.

    kind: of a route that leads nowhere; empty of others.
    """
    if text is None:
        return None, False
    rows = []
    for line in text.split("\n")[1:]:
        words = line.split()
        if len(words) > 7 and not _kind_of_pods(words[0]):
            to = "{}/{}".format(_address(words[1]), bin(int(words[7], 16)).count("1"))
            kind = _kind_of_route(words[0], int(words[3], 16))
            rows.append({"to": to, "dev": files.one_line(words[0], 40), "kind": kind})
        if len(rows) > MAX_ROUTES:
            return rows[:MAX_ROUTES], True
    return rows, False


def _kind_of_route(dev, flags):
    """Return how a route throws packets away: `unreachable` is `prohibit` too."""
    if flags & REJECTED:
        return UNREACHABLE
    if dev == NO_INTERFACE:
        return BLACKHOLE
    return ""


def arp_ignore(names, route_rows, conf="/proc/sys/net/ipv4/conf"):
    """Return {interface: for which addresses it answers ARP} of those with routes.

    It is None where kube-proxy has no addresses on an interface of its own. The kernel takes the
    larger value of `all` and of the interface.
    """
    if IPVS not in names:
        return None
    everywhere = _number(os.path.join(conf, "all", "arp_ignore"))
    values = {}
    for dev in [row["dev"] for row in route_rows or ()][:MAX_ROUTES]:
        number = _number(os.path.join(conf, dev, "arp_ignore"))
        if len(values) < MAX_LINKS and None not in (number, everywhere):
            values[dev] = max(number, everywhere)
    return values


def _address(digits):
    """Return eight hexadecimal digits of /proc/net/route as an address: the last byte first."""
    return ".".join(str(int(digits[at : at + 2], 16)) for at in (6, 4, 2, 0))


def iptables(proc="/proc", save=run):
    """Return {tables, legacy, nft}: the legacy tables, and which backend has rules of Services.

    The rules are only looked for where both backends may have some; None where that is not known.
    """
    tables = iptables_tables.legacy(proc)
    if tables is None:
        return {"tables": None, "legacy": None, "nft": None}
    outcome = {"tables": tables, "legacy": False, "nft": None}
    if "nat" in tables and iptables_tables.has_nft(proc):
        outcome["legacy"] = _has_services("iptables-legacy-save", save)
        if outcome["legacy"]:
            outcome["nft"] = _has_services("iptables-nft-save", save)
    return outcome


def _has_services(program, save):
    """Return whether its table nat has chains of Services, None where it cannot be listed."""
    try:
        text = save([program, "-t", "nat"], RULES_SECONDS, MAX_RULES)
    except (CommandError, OSError):
        return None
    return any(line.startswith(SERVICE_CHAINS) for line in text.split("\n"))


def modules(proc="/proc", sys="/sys", tree=None):
    """Return {name: loaded, builtin, available or absent}, None for each that is not known.

    A container has not the modules of its kernel: there nothing is known of what is not loaded.
    """
    tree = tree or "/lib/modules/" + os.uname()[2]
    loaded_names = boot.loaded(proc)
    builtins = files.whole(tree + "/modules.builtin")
    dependencies = files.whole(tree + "/modules.dep")
    builtin_names = boot.builtins(builtins or "")
    if None in (loaded_names, builtins):
        dependencies = None
    states = {}
    for name in NETWORK:
        if loaded_names and name in loaded_names:
            states[name] = LOADED
        elif name in builtin_names or os.path.isdir(os.path.join(sys, "module", name)):
            states[name] = BUILTIN
        else:
            states[name] = _state_on_disk(name, dependencies)
    return states


def kernel_options(path=None):
    """Return {option: y, m or n} of the kernel's build, None where its file is not there.

    An option that a complete file does not name depends on another one that is off.
    """
    text = files.whole(path or "/boot/config-" + os.uname()[2], MAX_CONFIG)
    if not text or len(text) >= MAX_CONFIG or "CONFIG_NET=y" not in text:
        return None
    return {name: _option(name, text) for name in OPTIONS}


def _option(name, text):
    """Return y, m or n."""
    value = text.partition(f"\nCONFIG_{name}=")[2][:1]
    return value if value in ("y", "m") else "n"


def _state_on_disk(name, dependencies):
    """Return whether modules.dep has a module, None where it is not known."""
    if not dependencies:
        return None
    return AVAILABLE if _has_module(dependencies, name) else ABSENT


def _has_module(dependencies, name):
    """Return whether modules.dep has a file of this module, however it is compressed."""
    names = {name, name.replace("_", "-")}
    return any(f"/{word}.ko" in dependencies for word in names)


def neighbours(family, cache, proc="/proc"):
    """Return {family, entries, most, overflows} of one table; the kernel has one for all."""
    lines = (files.whole(f"{proc}/net/stat/{cache}") or "").split("\n")
    titles, rows = lines[0].split(), [line.split() for line in lines[1:] if line]
    columns = [dict(zip(titles, row)) for row in rows]
    overflows = [_hexadecimal(row.get("table_fulls")) for row in columns]
    counted = [value for value in overflows if value is not None]
    table = {"family": family, "entries": None, "most": None, "overflows": None}
    table["most"] = _number(f"{proc}/sys/net/{family}/neigh/default/gc_thresh3")
    if columns:
        table["entries"] = _hexadecimal(columns[0].get("entries"))
    if counted:
        table["overflows"] = sum(counted)
    return table


def _hexadecimal(text):
    try:
        return int(text or "", 16)
    except ValueError:
        return None


def _number(path):
    """Return the number in a file of /proc or /sys; None where there is none."""
    return procfs.number((files.text(path, 64) or "").strip())
