# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM533: check the resolv.conf that a kubelet gives to pods."""

from __future__ import annotations

from collections.abc import Iterator

from ...evidence.answers.cluster.pod_start import PodStart
from ...evidence.answers.node.network import Resolver
from ...evidence.document import one_line
from ...models import host_network as model
from ...models.api_node import NodeView, and_others
from ...models.cluster import Cluster, Host
from ...models.result import EvidenceRef, Missing
from ..base import CheckResult, Detection, cluster_check, present, unknown
from . import identity

RESOLVER, MISSING, DENIED = "resolv.conf", "missing", "denied"
NAMESERVERS = 3  # of which the kubelet gives pods no more
DNS_PODS = ("coredns", "kube-dns", "rke2-coredns")
CURRENT = ("BackOff", "CrashLoopBackOff", "Error")


@cluster_check(
    "KM533",
    "Pods inherit name servers that do not answer them",
    severity="warning",
    applies="nodes with a kubelet of its own",
    needs=("system", "kubelet", "network"),
    cluster_needs=("pod_start",),
)
def inherited(cluster: Cluster) -> Iterator[CheckResult]:
    """KM533: report a kubelet that gives pods a resolver of the machine's own loopback, or none."""
    yield from identity.each(cluster, _result)


def _result(cluster: Cluster, host: Host, _view: NodeView | None) -> CheckResult:
    missing = host.missing("network")
    if missing or host.statuses.get("network") == "absent":
        return CheckResult((), missing, host=host.host, component=RESOLVER)
    return _answered(cluster, host)


def _not_known(missing: Missing, note: str = "") -> CheckResult:
    return unknown(missing, host=missing.host, component=RESOLVER, note=note)


def _answered(cluster: Cluster, host: Host) -> CheckResult:
    network, resolver = host.network, host.network.resolver
    if network.setting is not None and not network.setting.value:
        note = "its kubelet is configured to give pods no resolv.conf of the machine"
        return CheckResult(host=host.host, component=RESOLVER, note=note)
    if network.problem or resolver is None:
        note = f"which file it gives to pods is not known: {network.problem or 'not read'}"
        return _not_known(Missing(host.host, "kubelet", "error"), one_line(note, 300))
    if resolver.error == DENIED:
        return _not_known(Missing(host.host, "network", DENIED))
    if resolver.error not in (None, MISSING):
        return _not_known(Missing(host.host, "network", "error"))
    hit = _hit(cluster, host, resolver)
    if hit is None:
        return CheckResult(host=host.host, component=RESOLVER)
    return present(hit, host=host.host, component=RESOLVER)


def _hit(cluster: Cluster, host: Host, resolver: Resolver) -> Detection | None:
    servers = [one_line(server, 60) for server in resolver.nameservers]
    loopback = [server for server in servers if model.is_loopback(server)]
    if resolver.error == MISSING:
        text = "is not there: pods with dnsPolicy Default, CoreDNS among them, do not start"
        return _detection(cluster, host, resolver, text, "critical")
    if not servers:
        text = "names no name server: CoreDNS has none to ask, and ends"
    elif len(loopback) == len(servers):
        text = (
            f"names {and_others(servers)} alone: that is the pod itself there. CoreDNS asks itself"
            " and ends (its plugin loop), other pods get no answer"
        )
    elif loopback:
        text = (
            f"names {and_others(loopback)} next to others: that is the pod itself. CoreDNS asks"
            " itself from time to time, and its plugin loop may end it"
        )
    elif len(servers) > NAMESERVERS:
        text = (
            f"names {len(servers)} name servers: pods get the first {NAMESERVERS} alone, and each"
            " of them an event DNSConfigForming"
        )
        return _detection(cluster, host, resolver, text, "info")
    else:
        return None
    return _detection(cluster, host, resolver, text, None)


def _detection(
    cluster: Cluster, host: Host, resolver: Resolver, text: str, severity: str | None
) -> Detection:
    path, proofs = one_line(resolver.path, 200), []
    shown = ", ".join(f"nameserver {server}" for server in resolver.nameservers)
    proofs.append(EvidenceRef("file", host.host, path=path, text=one_line(shown or text, 300)))
    if host.network.setting is not None:
        proofs.append(host.network.setting.proof(host.host))
    ends = ""
    ended = _ended(cluster, host)
    if ended and severity != "info":
        severity, ends = "critical", f"; {ended} of this node ends again and again"
        proofs.append(EvidenceRef("api", cluster.api_host, object=f"Pod {ended}"))
    return Detection(
        f"{path}, which the kubelet gives to pods, {text}{ends}",
        tuple(proofs),
        _advice(host, resolver, severity),
        host=host.host,
        node=host.node,
        component=RESOLVER,
        severity=severity,
    )


def _advice(host: Host, resolver: Resolver, severity: str | None) -> str:
    if severity == "info":
        return f"leave at most {NAMESERVERS} name servers in {one_line(resolver.path, 200)}"
    better = next((item.path for item in _usable(host.network)), None)
    if better is None:
        return (
            "write the real name servers into a file, name it as resolvConf in the kubelet's"
            " configuration, and restart the kubelet; then restart CoreDNS (kubectl -n kube-system"
            " rollout restart deployment coredns)"
        )
    return (
        f"set resolvConf: {one_line(better, 200)}, which has the real name servers, in the"
        " kubelet's configuration (kubeadm: /var/lib/kubelet/config.yaml, and the ConfigMap"
        " kubelet-config, from which upgrades write it again), and restart the kubelet; then"
        " restart CoreDNS (kubectl -n kube-system rollout restart deployment coredns)"
    )


def _usable(network: model.HostNetwork) -> Iterator[Resolver]:
    """Yield the files whose name servers pods reach; the cluster's own DNS would ask itself."""
    for resolver in network.answer.resolvers:
        servers = resolver.nameservers
        if network.of_cluster(servers):
            continue
        if servers and not any(model.is_loopback(server) for server in servers):
            yield resolver


def _ended(cluster: Cluster, host: Host) -> str:
    """Return a DNS pod of this node whose container ends again and again, or ""."""
    start = cluster.typed(PodStart)
    rows = [row for row in start.pods if row.node == host.node and row.state in CURRENT]
    pods = [f"{row.namespace}/{name}" for row in rows for name in row.names]
    pods += [
        row.pod or "" for row in start.events if row.node == host.node and row.reason in CURRENT
    ]
    for pod in pods:
        if pod.partition("/")[2].startswith(DNS_PODS):
            return one_line(pod, 200)
    return ""
