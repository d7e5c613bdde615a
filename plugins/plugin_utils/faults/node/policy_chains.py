# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find rules of kube-router's network policies that nothing keeps up to date (for KM534).

k3s leaves the chains of its controller when that is switched off, and releases of kube-router left
rules of the one before: https://github.com/k3s-io/k3s/issues/7244,
https://github.com/cloudnativelabs/kube-router/issues/1675
"""

from __future__ import annotations

from collections.abc import Iterator

from ....module_utils.shared.text import counted
from ...evidence.answers.node.network import PolicyChains, PolicyRules
from ...evidence.document import one_line
from ...models.cluster import Cluster, Host
from ...models.result import EvidenceRef
from ..base import Detection

COMPONENT, SHOWN = "network policy", 3


def hits(cluster: Cluster, host: Host) -> Iterator[Detection]:
    """Yield the hits of a host, one for each backend of iptables."""
    chains = host.network.answer.policy_chains
    if chains is None:
        return
    off = _switch(cluster)
    for rules in chains.backends:
        if off and not _has_router(cluster, chains) and rules.linked:
            yield _leftover(host, rules, off)
        elif rules.doubled:
            yield _repetition(host, rules)


def _switch(cluster: Cluster) -> str:
    """Return what switches the controller off, by which servers of k3s do so on all nodes."""
    answers = (host.network.answer.policy_chains for host in cluster.hosts)
    places = (one_line(row.off, 300) for row in answers if row is not None and row.off)
    return next(places, "")


def _has_router(cluster: Cluster, chains: PolicyChains) -> bool:
    """Tell whether kube-router itself may make these chains now."""
    rows = [host.network.answer.policy_chains for host in cluster.hosts]
    return chains.router or any(row.router for row in rows if row is not None)


def _leftover(host: Host, rules: PolicyRules, off: str) -> Detection:
    linked = ", ".join(one_line(name, 60) for name in rules.linked[:SHOWN])
    return Detection(
        f"k3s has disable-network-policy ({off}), and the chains KUBE-ROUTER-* of its policy"
        f" controller are still in iptables ({rules.backend}), called from {linked}, with"
        f" {counted(rules.pods, 'chain')} of pods and {rules.policies} of policies. No program"
        " updates them any more: they still allow and deny what was in force when the controller"
        " was switched off",
        (_proof(host, rules, f"-j KUBE-ROUTER-* in {linked}"),),
        f"on each node with such chains: {_removal(rules)}. k3s-killall.sh removes them too, and"
        " ends all pods of the node",
        host=host.host,
        node=host.node,
        component=COMPONENT,
    )


def _repetition(host: Host, rules: PolicyRules) -> Detection:
    rows = rules.doubled[:SHOWN]
    names = ", ".join(dict.fromkeys(one_line(row.chain, 60) for row in rows))
    most = max(row.count for row in rules.doubled)
    return Detection(
        f"{names} of iptables ({rules.backend}) has the same rules up to {most} times: a release of"
        " kube-router did not remove its own rules or those of the release before. Packets may meet"
        " a rule that should be gone",
        tuple(_proof(host, rules, f"{row.count} times: -A {row.chain} {row.rule}") for row in rows),
        f"update kube-router (k3s contains it). Then on that node remove the chains once:"
        f" {_removal(rules)}, and restart kube-router there, which makes them again (k3s: systemctl"
        " restart k3s or k3s-agent). A reboot of the drained node removes them too",
        host=host.host,
        node=host.node,
        component=COMPONENT,
    )


def _proof(host: Host, rules: PolicyRules, text: str) -> EvidenceRef:
    program = f"iptables-{one_line(rules.backend, 20)}-save -t filter"
    return EvidenceRef("process", host.host, object=program, text=one_line(text, 400))


def _removal(rules: PolicyRules) -> str:
    """Return the command that removes all chains of kube-router from a backend."""
    name = f"iptables-{one_line(rules.backend, 20)}"
    pattern = "KUBE-ROUTER|KUBE-NWPLCY|KUBE-POD-FW"
    return f"{name}-save | grep -vE '{pattern}' | {name}-restore"
