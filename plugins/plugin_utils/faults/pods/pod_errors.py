# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the cluster's own pods that run and repeat an error (KM560), by their logs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....module_utils.shared import system_namespaces
from ....module_utils.shared.kernel_modules import ABSENT, AVAILABLE, XTABLES
from ....module_utils.shared.text import times
from ...evidence.answers.cluster.nodes import Nodes
from ...evidence.document import one_line, shell_name
from ...models import default_runtime, pod_roles
from ...models.api_node import and_others
from ...models.cluster import Cluster, Host
from ...models.moments import moment
from ...models.pod_errors import PodError
from ...models.repeated_errors import MACHINE, NETWORK
from ...models.result import EvidenceRef, Missing
from ...parsers import known_message
from ..base import CheckResult, Detection, causes, cluster_check, without_kubernetes
from ..known_causes import Source, explained, with_cause, with_denial, with_rule
from . import search_domains, system_pods

SHOWN = 5  # places in the evidence
MIG_MANAGER, MIG_STATE = "nvidia-mig-manager", "nvidia.com/mig.config.state"
# Whose work is the whole node's or cluster's; what others repeat may be about one object of users.
PARTS = ("kube-proxy", "network", "dns", pod_roles.CLOUD)
EFFECTS = {
    "kube-proxy": "rules of Services on the node stay as they are, or are not there",
    "network": "pods of the node may not reach others, or get no network",
    "dns": "names are not resolved where it answers",
    pod_roles.CLOUD: "nodes that join, their addresses and their routes wait for it",
}
# Where CoreDNS forwards a name and gets no answer. What it knows itself is resolved; the cache of a
# node forwards names of the cluster too.
_FORWARDS, _CACHE = "plugin/errors", "node-cache"
_OUTSIDE = "names outside the cluster, which it forwards, are not resolved"
_FORWARDED = "names that it forwards there are not resolved"
# What keeps any program from its work, and is no answer about one object.
_OWN_WORK = MACHINE | NETWORK | {"unauthorized", "forbidden", "credentials", "webhook", "gone"}
# About an object of users, or a client that went away.
_OTHERS = re.compile(
    r"context canceled|operation was canceled|the object has been modified|is being terminated"
    r"|failed to provision volume|InvalidArgument|NotFound desc"
    r"|required revision has been compacted"
    r"|TLS handshake error|NXDOMAIN|http: Handler timeout|client disconnected|broken pipe"
)
WITHOUT_PROVIDER_ID, EXTERNAL = "vsphere-node-without-provider-id", "external"
_DOWN, _IPIP = "Network is down", "tunl0"
_DIGITS = re.compile(r"[0-9]+")
# A balancer of the node's agent, in front of the API servers, listens at such an address.
_AT_BALANCER = re.compile(r"dial tcp 127\.\S{1,20}: connect: connection refused")
BALANCER = (
    "a program of the node listens there for the API (the agent of RKE2, nginx-proxy of Kubespray):"
    " where it runs, it may have another port since its restart, which the pod has not read: "
)
# kubectl deletes only the API's picture of a static pod; its container runs on.
_AGAIN = "kubectl -n {0} delete pod {1}"
_STATIC_AGAIN = (
    "it is a static pod, which kubectl delete does not start again: on the node, move its manifest"
    " out of the kubelet's folder of static pods for 20 seconds, and back (of RKE2"
    " /var/lib/rancher/rke2/agent/pod-manifests: mv"
    " /var/lib/rancher/rke2/agent/pod-manifests/kube-proxy.yaml /root/; sleep 20; mv"
    " /root/kube-proxy.yaml /var/lib/rancher/rke2/agent/pod-manifests/)"
)


@dataclass(frozen=True)
class _Saying:
    """One container that repeats an error on one node."""

    host: Host
    node: str
    pod: PodError
    severity: str

    @property
    def kind(self) -> tuple[str, str, str, str]:
        """Return what pods of one cause have in common."""
        words = _DIGITS.sub("#", self.pod.message)
        return self.severity, self.pod.namespace, pod_roles.role(self.pod), words


def severity(pod: PodError) -> str | None:
    """Return how much an error weighs that a pod repeats; None where it repeats none of its own."""
    if pod.known is not None:
        return "warning"
    if not pod.message or _OTHERS.search(pod.message):
        return None
    is_part = pod_roles.role(pod) in PARTS
    if pod.kind in _OWN_WORK or (is_part and pod.is_constant):
        return "warning"
    if pod.is_constant:
        return "info"
    return None


def because(cluster: Cluster, part: str, node: str | None = None) -> tuple[str, ...]:
    """Return this fault where such a part of the cluster repeats an error on a node."""
    for row in _sayings(cluster):
        is_meant = pod_roles.role(row.pod) == part and node in (None, row.node)
        if is_meant and row.severity != "info":
            return ("KM560",)
    return ()


def _sayings(cluster: Cluster) -> Iterator[_Saying]:
    for host in cluster.hosts:
        for pod in host.pod_errors.rows:
            weight = severity(pod)
            if weight is not None:
                yield _Saying(host, host.node or host.host, pod, weight)


@cluster_check(
    "KM560",
    "A pod of the cluster itself repeats an error",
    severity="warning",
    applies="pods of kube-system, of networks and of add-ons, agents of nodes, and device plugins",
    needs=("system", "system_pods", "network", "boot"),
    cluster_needs=("nodes",),
    explained_by=causes(
        "KM115",
        "KM178",
        "KM401",
        "KM402",
        "KM404",
        "KM411",
        "KM508",
        "KM512",
        "KM520",
        "KM521",
        "KM523",
        "KM526",
        "KM527",
        "KM533",
        "KM535",
    )
    | causes("KM562", component="rules"),
    same_node=True,
)
def saying(cluster: Cluster) -> Iterator[CheckResult]:
    """KM560: report pods that make the cluster, run, and say an error again and again."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    groups: dict[tuple[str, str, str, str], list[_Saying]] = {}
    for row in _sayings(cluster):
        groups.setdefault(row.kind, []).append(row)
    hits = [_hit(cluster, rows) for rows in groups.values()]
    hits += _plugins(cluster)
    hits += _mig_failures(cluster)
    note = system_pods.notes(map(_note, cluster.hosts))
    yield CheckResult(tuple(hits), tuple(_missing(cluster)), note=note)


def _note(host: Host) -> str:
    """Return which logs of a host were not read, and how to see them."""
    errors = host.pod_errors
    unread = system_pods.unread_note(
        host, errors.unread, "that were written to recently", "--since=10m"
    )
    if not errors.gaps:
        return unread
    unreadable = f"{host.host}: the logs of {and_others(errors.gaps)} cannot be read there"
    look = "see them with kubectl -n NAMESPACE logs POD --all-containers --since=10m"
    return "; ".join(filter(None, (unread, unreadable, look)))


def _missing(cluster: Cluster) -> Iterator[Missing]:
    for host in cluster.hosts:
        missing = host.missing("system_pods")
        if missing:
            yield from missing
        elif host.statuses.get("system_pods") == "ok" and not host.pod_errors.is_known:
            yield Missing(host.host, "system_pods", "not_asked")
        elif host.pod_errors.gaps or host.pod_errors.unread.count:
            yield Missing(host.host, "system_pods", "error")


def _hit(cluster: Cluster, rows: list[_Saying]) -> Detection:
    first = rows[0]
    nodes = list(dict.fromkeys(row.node for row in rows))
    most = max(rows, key=lambda row: row.pod.count)
    pod = most.pod
    name = f"{pod.namespace}/{pod_roles.workload(pod)}"
    summary = f"{name} on {and_others(nodes)} repeats an error, {_count(pod)}: {pod.message}"
    denial = system_pods.denied(first.host, first.pod, first.pod.message)
    if pod.clause and not denial.line:
        summary += f": {pod.clause}"
    summary += system_pods.kernel_clause(pod, first.host) + _unloaded(most)
    tunnel, reload = _tunnel(most)
    summary += tunnel
    effect = _effect(pod)
    if first.severity == "info":
        effect = ""
    node, host = system_pods.place(first.node, first.host, len(nodes))
    hit = Detection(
        "; ".join(filter(None, (summary, effect))),
        (
            *(_proof(row, row.pod.message) for row in rows[:SHOWN]),
            *system_pods.proofs_of(first.host, denial),
        ),
        reload + _advice(most, is_denied=bool(denial.line)),
        host=host,
        node=node,
        component=pod.container,
        because=(
            *system_pods.denied_network(first.host, pod.message),
            *system_pods.of_webhook(cluster, pod.message),
        ),
        severity=first.severity,
    )
    if denial.line:
        return with_denial(hit, denial.denial)
    hit = search_domains.with_domain(cluster, with_cause(hit, pod.known), pod.message)
    if pod.known is not None and pod.known.id == WITHOUT_PROVIDER_ID:
        hit = replace(hit, summary=f"{hit.summary}{_without_provider(cluster)}")
    return with_rule(hit, (pod.message,), Source(name=pod.container))


def _without_provider(cluster: Cluster) -> str:
    """Return which kubelets run without an external cloud provider, as a clause, or ""."""
    names = [
        host.node or host.host
        for host in cluster.hosts
        if host.identity.runs and host.identity.cloud != EXTERNAL
    ]
    if not names:
        return ""
    return f". Without --cloud-provider={EXTERNAL} run the kubelets of {and_others(names)}"


def _unloaded(row: _Saying) -> str:
    """Return the other modules that kube-proxy needs and the host has not loaded, as a clause."""
    if pod_roles.role(row.pod) != "kube-proxy" or "modprobe: " not in row.pod.message:
        return ""
    states = row.host.network.answer.modules or {}
    names = sorted(name for name in XTABLES if states.get(name) in (ABSENT, AVAILABLE))
    if not names:
        return ""
    return f"; of what it needs, the host has not loaded {and_others(names, 8)} either"


def _tunnel(row: _Saying) -> tuple[str, str]:
    """Return that a boot loads ipip before Calico, as a clause, and what to do; "" where not."""
    network = row.host.network
    is_down = pod_roles.role(row.pod) == "network" and _DOWN in row.pod.message
    if not is_down or not network.has(_IPIP) or not network.tunnel_lines:
        return "", ""
    path = network.tunnel_lines[0]
    return (
        f"; a boot loads the module ipip by {path}, so that {_IPIP} is there before Calico, which"
        " then may leave it down",
        f"ip -br link show {_IPIP} shows whether it is down: then take ipip out of {path}, run"
        " modprobe -r ipip on the drained node, and start its calico-node again; else ",
    )


def _effect(pod: PodError) -> str:
    """Return what does not work while a part of the cluster repeats an error."""
    role = pod_roles.role(pod)
    if role != "dns" or _FORWARDS not in pod.message:
        return EFFECTS.get(role, "")
    return _FORWARDED if pod.container == _CACHE else _OUTSIDE


def _count(pod: PodError) -> str:
    text = f"{times(pod.count)} in {pod.minutes} minutes"
    last = moment(pod.last)
    if last is None:
        return text
    return f"{text}, last at {last:%Y-%m-%dT%H:%M:%SZ}"


def _advice(row: _Saying, *, is_denied: bool) -> str:
    pod = row.pod
    if is_denied:
        return f"see {pod.path} on the node"
    look = f"see {pod.path} on the node, and correct what that line names"
    balancer = ""
    if pod_roles.role(pod) == "kube-proxy" and _AT_BALANCER.search(pod.message):
        names = shell_name(pod.namespace, "NAMESPACE"), shell_name(pod.pod, "POD")
        again = _AGAIN.format(*names)
        if pod.pod == f"{pod.container}-{row.node}":
            again = _STATIC_AGAIN
        balancer = BALANCER + again
    return "; ".join(filter(None, (balancer, pod.advice, look)))


def _proof(row: _Saying, text: str) -> EvidenceRef:
    name = f"{row.pod.namespace}/{row.pod.pod}"
    return EvidenceRef("log", row.host.host, path=row.pod.path, object=name, text=text)


def _plugins(cluster: Cluster) -> Iterator[Detection]:
    """Yield device plugins of Nodes that have none of the devices which they have a name for."""
    lacking = dict(_without_devices(cluster))
    for host in cluster.hosts:
        node = host.node or host.host
        for pod in host.pod_errors.rows:
            if pod.told and node in lacking and system_namespaces.is_device_plugin(pod.pod):
                yield _plugin(host, node, pod, lacking[node])


def _mig_failures(cluster: Cluster) -> Iterator[Detection]:
    """Yield Nodes whose GPUs NVIDIA's MIG manager could not divide, with what it says."""
    hosts = cluster.hosts_by_node()
    for row in cluster.typed(Nodes).items or ():
        if (row.labels or {}).get(MIG_STATE) == "failed":
            node = one_line(row.name, 253)
            yield _mig_failure(cluster, node, hosts.get(node))


def _mig_failure(cluster: Cluster, node: str, host: Host | None) -> Detection:
    rows = host.pod_errors.rows if host is not None else ()
    name = host.host if host is not None else None
    pods = [pod for pod in rows if pod.told and system_namespaces.MIG_MANAGER in pod.pod]
    lines = [line for pod in pods for line in pod.told]
    quote = f"; {pods[-1].namespace}/{pods[-1].pod} says: {lines[-1]}" if pods else ""
    proofs = [
        EvidenceRef("api", cluster.api_host, object=f"Node {node}", text=f"{MIG_STATE}: failed"),
        *(EvidenceRef("log", name, path=pods[-1].path, text=line) for line in lines),
    ]
    hit = Detection(
        f"{node} has the label {MIG_STATE}=failed: nvidia-mig-manager could not divide its GPUs as"
        f" the label nvidia.com/mig.config asks for{quote}",
        tuple(proofs),
        "see its log (kubectl get pods -A -o wide | grep mig-manager), that nvidia-smi works on the"
        " node, and whether programs use the GPUs; correct what it names, then delete its pod on"
        " this node, which lets it try again",
        host=name,
        node=node,
        component=MIG_MANAGER,
    )
    return explained(hit, (pod_roles.DEVICES,), reversed(lines))


def _without_devices(cluster: Cluster) -> Iterator[tuple[str, list[str]]]:
    """Yield Nodes that name devices and have none, with the names."""
    for row in cluster.typed(Nodes).items or ():
        names = [one_line(name, 253) for name in row.devices or {}]
        if names and not any(healthy for _dummy, healthy in (row.devices or {}).values()):
            yield one_line(row.name, 253), names


def _plugin(host: Host, node: str, pod: PodError, names: list[str]) -> Detection:
    name = f"{pod.namespace}/{pod.pod}"
    hit = Detection(
        f"{node} has 0 {and_others(names)}; its device plugin {name} runs and says: {pod.told[-1]}",
        tuple(
            EvidenceRef("log", host.host, path=pod.path, object=name, text=line)
            for line in pod.told
        ),
        "see to what that line names: the driver and its devices on the machine (lspci, lsmod,"
        " journalctl -k), and whether the runtime gives the plugin's container the libraries of the"
        " driver (of containerd default_runtime_name or the RuntimeClass of the pod). It looks"
        " for its devices when it starts: delete its pod on this node once they are there"
        f" (kubectl -n {pod.namespace} delete pod {pod.pod})",
        host=host.host,
        node=node,
        component=pod.container,
    )
    places, versions = pod_roles.places(pod), host.releases.of_node
    hit = explained(hit, places, reversed(pod.told), source=Source(versions=versions))
    row = known_message.first(places, reversed(pod.told), versions=versions)
    clause = default_runtime.clause(host.default_runtime, row)
    return replace(hit, summary=f"{hit.summary}{clause}")
