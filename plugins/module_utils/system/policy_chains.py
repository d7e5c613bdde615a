# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""List the chains of kube-router's network policies in iptables, on nodes that may have them.

k3s contains that controller, k0s runs it as a pod. Its rules are listed only on such nodes, and
only where the kernel has a table already, so that no list loads a module.
"""

import collections
import os
import re

from . import files, iptables_tables, procfs
from .command import CommandError, run

CONTROLLER = "KUBE-ROUTER-"
PODS, POLICIES = "KUBE-POD-FW-", "KUBE-NWPLCY-"
K3S, SWITCH = "k3s", "disable-network-policy"
# What kube-router leaves on a node that it serves: its kubeconfig, its network, its interfaces.
SIGNS = (
    "/var/lib/kube-router",
    "/etc/cni/net.d/10-kuberouter.conflist",
    "/sys/class/net/kube-bridge",
    "/sys/class/net/kube-dummy-if",
)
SECONDS, MAX_RULES, MAX_DOUBLES, LONGEST = 3, 4 * 1048576, 8, 300
_RULE = re.compile(r"-A (\S{1,60}) (.*)")


def has_router(signs=SIGNS):
    """Return whether kube-router itself serves this node, or did."""
    return any(map(os.path.exists, signs))


def switch(kubelet):
    """Return the flag or file:line that switches the controller within k3s off, else ""."""
    argv = kubelet.get("argv") or []
    if procfs.flag(argv, SWITCH) in ("true", "") or "--" + SWITCH in argv:
        return "--" + SWITCH
    for file in (kubelet.get("distribution") or {}).get("files") or ():
        lines = [row["line"] for row in file["settings"] if _is_on(row)]
        if lines:
            return "{}:{}".format(files.one_line(file["path"], 300), lines[-1])
    return ""


def _is_on(row):
    return row["key"] == SWITCH and row["value"] == "true"


def collect(kubelet, proc="/proc", save=run, signs=SIGNS):
    """Return {router, off, backends} of a node of k3s or with kube-router, else None.

    off: what switches the controller within k3s off. backends: [{backend, linked, pods, policies,
    rules, doubled}] of those that have such chains
    """
    router = has_router(signs)
    if not router and (kubelet.get("distribution") or {}).get("program") != K3S:
        return None
    backends = []
    for backend in _backends(proc):
        try:
            text = save(["iptables-" + backend + "-save", "-t", "filter"], SECONDS, MAX_RULES)
        except (CommandError, OSError):
            continue
        row = read(text)
        if row is not None:
            backends.append(dict(row, backend=backend))
    return {"router": router, "off": switch(kubelet), "backends": backends}


def _backends(proc):
    """Return the backends of which the kernel has tables already."""
    if "filter" in (iptables_tables.legacy(proc) or ()):
        yield "legacy"
    if iptables_tables.has_nft(proc):
        yield "nft"


def read(text):
    """Return {linked, pods, policies, rules, doubled} of a list of rules, None without such chains.

    linked: the kernel's chains that lead to them. rules: how many the controller's own chains have.
    doubled: [{chain, rule, count}] of rules that one of these has more than once
    """
    lines = text.split("\n")
    chains = [line[1:].partition(" ")[0] for line in lines if line.startswith(":KUBE-")]
    if not any(chain.startswith(CONTROLLER) for chain in chains):
        return None
    rules = [match.groups() for match in map(_RULE.match, lines) if match]
    counts = collections.Counter(rule for rule in rules if rule[0].startswith(CONTROLLER))
    doubled = [rule for rule in counts.items() if rule[1] > 1]
    return {
        "linked": _linked(rules),
        "pods": sum(chain.startswith(PODS) for chain in chains),
        "policies": sum(chain.startswith(POLICIES) for chain in chains),
        "rules": sum(counts.values()),
        "doubled": [
            {
                "chain": files.one_line(chain, 60),
                "rule": files.one_line(rule, LONGEST),
                "count": count,
            }
            for (chain, rule), count in doubled[:MAX_DOUBLES]
        ],
    }


def _linked(rules):
    """Return the kernel's chains that lead to those of the controller."""
    chains = [chain for chain, rule in rules if "-j " + CONTROLLER in rule]
    return [files.one_line(chain, 60) for chain in dict.fromkeys(chains) if "KUBE-" not in chain][
        :10
    ]
