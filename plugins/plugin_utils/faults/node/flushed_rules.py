# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find firewalls that remove or drop what the network of pods needs (for KM534).

What starts at a boot, before the kubelet, harms nothing: kube-proxy and network plugins write their
rules after it. https://github.com/k0sproject/k0s/issues/2908,
https://github.com/rancher/rke2/issues/10469,
https://github.com/containernetworking/plugins/issues/512,
https://github.com/cilium/cilium/issues/35388
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....module_utils.shared import firewall_files
from ...evidence.document import shell_name
from ...models import pod_roles
from ...models.cluster import Host
from ...models.flushed_rules import RELOAD, STOP, Flush, Line
from ...models.pod_errors import PodError
from ...models.result import EvidenceRef
from ..base import Detection

RULES, FIREWALLD = "firewall rules", firewall_files.FIREWALLD  # components
LATER = 60.0  # seconds by which a service starts after the kubelet
CILIUM, RKE2 = "cilium_host", "rke2"
# What CoreDNS says while the API server's Service does not answer it.
_NO_ANSWER = re.compile(
    r"https://[^\s/\"]{3,60}/api.{0,300}dial tcp (?P<to>[^\s]{3,60}:\d{1,5}): i/o timeout"
)
_LOST = "the rules of kube-proxy, of the network plugin and of host ports included"
_COMES_BACK = (
    "kube-proxy writes its rules again within a minute, a network plugin not always all of them,"
    " and the rule of a host port (plugin portmap) is missing until its pod is started again"
)
_AGAIN = (
    "let the rules be written again on {node}: kubectl -n kube-system delete pod -l"
    " k8s-app=kube-proxy --field-selector spec.nodeName={node}, and the pod of the network plugin"
    " there likewise (Calico: -l k8s-app=calico-node)"
)
_AGAIN_OF_RKE2 = (
    "let the rules be written again on {node}: kubectl -n kube-system delete pod -l k8s-app=canal"
    " --field-selector spec.nodeName={node} (kube-proxy does it by itself)"
)
_AGAIN_BY_UNIT = "let the rules be written again on {node}: systemctl restart {unit} there"
_HOST_PORTS = (
    "; then delete the pods of {node} with a host port, which their owners make again (kubectl get"
    " pods -A --field-selector spec.nodeName={node} -o custom-columns=NAMESPACE:.metadata.namespace"
    ",NAME:.metadata.name,PORTS:.spec.containers[*].ports[*].hostPort)"
)
_OWN_TABLES = (
    "the two lines table inet NAME and delete table inet NAME for each table that the file defines"
    " itself"
)
_OWN_TABLE = (
    "replace flush ruleset in {place} by {tables} (nft -c -f {path} checks it), and load changes"
    " with systemctl reload nftables: a stop and a restart flush too, by ExecStop of the unit"
)
_UNIT = (
    "take the flush out of the unit: systemctl edit nftables, with the section [Service], the lines"
    " ExecStop= and ExecReload= without a value, and ExecReload=/usr/sbin/nft -f FILE; FILE is what"
    " its ExecStart loads. Write into that file, before its own tables, {tables}"
)
_DISABLE = (
    "; or, where something else guards the node, systemctl disable {service} without --now,"
    " because its stop may remove the rules too"
)


def hits(host: Host) -> Iterator[Detection]:
    """Yield what the firewalls of a host do to the rules and packets of pods."""
    if host.kubelet_started is None:
        return
    if _may_lose(host):
        for flush in host.firewall.flushes:
            if _is_after_kubelet(host, flush):
                yield _flushed(host, flush)
            elif flush.service == FIREWALLD:
                yield _at_reload(host, flush)
    yield from _dropped(host)


def _may_lose(host: Host) -> bool:
    """Tell whether the rules of Services are where a flush of the host's programs reaches them.

    In tables of iptables-legacy it does not.
    """
    rules = host.network.answer.iptables
    if rules is None or rules.tables is None:
        return False
    return "nat" not in rules.tables or rules.nft is True


def _is_after_kubelet(host: Host, flush: Flush) -> bool:
    if flush.at is None or host.kubelet_started is None:
        return False
    return (flush.at - host.kubelet_started).total_seconds() >= LATER


def _flushed(host: Host, flush: Flush) -> Detection:
    verb, effect = "started again", "and that flushed"
    if flush.by == RELOAD:
        verb = "reloaded"
    elif flush.by == STOP:
        effect = "and its stop, which is a part of each restart, flushed"
    place = ""
    if flush.lines and flush.service != FIREWALLD:
        place = f" ({_place(flush.lines[0])})"
    at = f"{flush.at:%Y-%m-%dT%H:%M:%SZ}"
    return Detection(
        f"{flush.service}.service was {verb} at {at}, after the kubelet, {effect} {flush.scope}"
        f"{place}, {_LOST}: {_COMES_BACK}",
        (_unit_ref(host, flush, f"active; {verb} at {at}"), *_refs(host, flush)),
        f"{_again(host)}. So that it does not happen again: {_cure(flush)}",
        host=host.host,
        node=host.node,
        component=RULES,
    )


def _is_rke2(host: Host) -> bool:
    return host.rancher is not None and host.rancher.program == RKE2


def _at_reload(host: Host, flush: Flush) -> Detection:
    """Return that each reload of firewalld flushes iptables, whether or not one did so already."""
    name, severity = "this release of firewalld", "info"
    if host.firewall.firewalld is not None and host.firewall.firewalld.version:
        name = f"firewalld {host.firewall.firewalld.version}"
    if _is_rke2(host):
        name, severity = f"{name}, which RKE2 wants to be off,", "warning"
    return Detection(
        f"firewalld is active, and {name} flushes {flush.scope} at each reload and"
        f" restart, {_LOST}; FlushAllOnReload in {_conf(flush)} does not change that. After it,"
        f" {_COMES_BACK}",
        (_unit_ref(host, flush, "active"), *_refs(host, flush)),
        f"{_firewalld_cure()}. Where it was reloaded already: {_again(host)}",
        host=host.host,
        node=host.node,
        component=RULES,
        severity=severity,
    )


def _dropped(host: Host) -> Iterator[Detection]:
    """Yield firewalld where pods of Cilium get no answer by TCP.

    It sees one direction of a connection that BPF programs translate, and takes it for invalid. No
    zone changes that, as it drops these packets before it asks its zones.
    """
    firewalld = host.firewall.firewalld
    if firewalld is None or firewalld.drops_invalid is False or not host.network.has(CILIUM):
        return
    if host.api_way is not None and host.api_way.failed:
        return  # the node itself does not reach the API either
    for row in host.pod_errors.rows:
        match = _NO_ANSWER.search(row.message)
        if match is not None and pod_roles.role(row) == "dns" and row.is_constant:
            yield _no_answer(host, row, match.group("to"))
            return


def _no_answer(host: Host, row: PodError, address: str) -> Detection:
    name = f"{row.namespace}/{row.pod}"
    return Detection(
        f"{name} gets no answer by TCP from {address} (i/o timeout), and firewalld is active on"
        f" {host.node or host.host} together with Cilium: since 1.2.1 firewalld drops packets of"
        " TCP that the kernel takes for invalid, as those of connections which Cilium's BPF"
        " programs translate. UDP and ping pass",
        (
            EvidenceRef("unit", host.host, object="firewalld.service", text="active"),
            EvidenceRef("log", host.host, path=row.path, object=name, text=row.message),
        ),
        "systemctl stop firewalld on that node shows whether the errors end: then systemctl disable"
        " --now firewalld on all nodes, and let network policies of Cilium (its host firewall)"
        " guard them. A zone for Cilium's interfaces does not help, because firewalld drops invalid"
        " packets before it looks at zones (nft list chain inet firewalld filter_FORWARD). Where"
        " the errors stay, firewalld is not the cause",
        host=host.host,
        node=host.node,
        component=FIREWALLD,
        severity="critical",
    )


def _again(host: Host) -> str:
    """Return the commands after which the rules of a node are there again."""
    node = shell_name(host.node or "", "NODE")
    rewrite, unit = _AGAIN, ""
    if _is_rke2(host):
        rewrite = _AGAIN_OF_RKE2
    elif host.is_k3s and host.rancher is not None:
        rewrite, unit = _AGAIN_BY_UNIT, shell_name(host.rancher.name, "k3s")
    return rewrite.format(node=node, unit=unit) + _HOST_PORTS.format(node=node)


def _cure(flush: Flush) -> str:
    """Return what keeps a service from removing the rules of others."""
    if flush.service == FIREWALLD:
        return _firewalld_cure()
    line = flush.lines[0]
    if flush.service == firewall_files.NFTABLES:
        return _nftables_cure(line) + _DISABLE.format(service="nftables")
    if flush.service == firewall_files.PERSISTENT:
        return (
            "write IPTABLES_RESTORE_NOFLUSH=yes and IP6TABLES_RESTORE_NOFLUSH=yes into"
            f" {firewall_files.PERSISTENT_DEFAULTS}, and start the service at a boot alone: a"
            " second start adds its rules once more"
        )
    if flush.service == firewall_files.UFW:
        return f"set MANAGE_BUILTINS=no in {_place(line)}"
    return (
        f"do not restart {flush.service}.service on a node with pods, and load changes of"
        f" {line.path} rule by rule ({flush.service} -I){_DISABLE.format(service=flush.service)}"
    )


def _nftables_cure(line: Line) -> str:
    if line.text.startswith("Exec"):
        return _UNIT.format(tables=_OWN_TABLES)
    return _OWN_TABLE.format(place=_place(line), path=line.path, tables=_OWN_TABLES)


def _firewalld_cure() -> str:
    return (
        "open ports without a reload (firewall-cmd --permanent --add-port=PORT/tcp, and once more"
        " without --permanent); an update to firewalld 2.0, or to 1.2.5 of RHEL 9.3, ends the"
        " flushes, where FirewallBackend is nftables and there are no direct rules; or systemctl"
        " disable --now firewalld, where something else guards the node"
    )


def _conf(flush: Flush) -> str:
    line = next((line for line in flush.lines if line.text.startswith("FlushAll")), None)
    if line is None:
        return "firewalld.conf"
    return _place(line)


def _place(line: Line) -> str:
    return f"{line.path}:{line.line}"


def _unit_ref(host: Host, flush: Flush, text: str) -> EvidenceRef:
    return EvidenceRef("unit", host.host, object=f"{flush.service}.service", text=text)


def _refs(host: Host, flush: Flush) -> Iterator[EvidenceRef]:
    for line in flush.lines:
        yield EvidenceRef("file", host.host, path=line.path, line=line.line, text=line.text)
