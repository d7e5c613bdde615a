# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the cluster's own pods that end again and again (KM550), by their logs and the API."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ....module_utils.shared import system_namespaces
from ...evidence import memoize
from ...evidence.answers.cluster.pod_start import PodStart
from ...evidence.document import ends, one_line
from ...models import (
    boot,
    bpf_denials,
    container_denials,
    default_runtime,
    host_network,
    kubelet_root,
    pod_roles,
    pod_start,
    refused_pods,
)
from ...models.api_node import and_others
from ...models.cluster import Cluster, Host
from ...models.container_denials import AUDIT, FileDenial
from ...models.pod_errors import PodError
from ...models.pod_start import Waiting
from ...models.result import EvidenceRef, Missing
from ...models.system_pods import EndedPod, UnreadPods
from ...parsers import error_answer, known_message, message_class, message_table
from ...parsers.known_message import EVENT
from ..base import CheckResult, Detection, causes, cluster_check, without_kubernetes
from ..known_causes import Source, with_cause, with_denial, with_rule
from ..other_folders import with_root
from . import end_context

WAITED_SECONDS = 300
SHOWN = 5  # places in the evidence
_CONTAINER = re.compile(r"restarting failed container[ =]([a-z0-9][a-z0-9-]{0,62}) ")
_DIGITS = re.compile(r"[0-9]+")
# What only a kernel refuses to an agent of the network.
_OF_KERNEL = re.compile(
    r"\bbpf_\w+|\bload program\b|BPF program|\bverifier\b|RTNETLINK answers"
    r"|modprobe: (?!.{1,120}Exec format)"
    r"|[Oo]peration not supported|[Ff]unction not implemented|does not support .{1,60}kernel"
    r"|kernel (?:version|too old|does not|lacks)|not supported by (?:the|your) kernel",
)
KERNEL_ADVICE = (
    "the kernel may be too new, too old or built without what the agent needs: compare it with the"
    " requirements of that release of the agent and with nodes that work, and boot the kernel"
    " before or change the release"
)
# Known messages about a module or a setting of the kernel, and the faults that are about these.
LOOSE = "calico-rp-filter-loose"
_KERNEL_FAULTS = {boot.WITHOUT_NETFILTER: "KM520", LOOSE: "KM534"}
FAILED = "Failed"  # the reason of such an event
BPF_DENIED = "KM528"
# Answers where packets do not arrive.
_WAYS = frozenset(("timeout", "unreachable"))


@dataclass(frozen=True)
class _Ending:
    """One container that ends again and again on one node.

    host: None where no host of the run is the node
    """

    node: str
    host: Host | None
    pod: EndedPod

    @property
    def kind(self) -> tuple[str, str, str]:
        """Return what pods of one cause have in common."""
        return self.pod.namespace, pod_roles.name(self.pod), _DIGITS.sub("#", self.pod.line)


def kernel_clause(pod: EndedPod | PodError, host: Host | None) -> str:
    """Return that a kernel refuses something to an agent of the network, as a clause, or ""."""
    if (
        host is None
        or not host.machine.kernel
        or pod_roles.role(pod) not in ("network", "kube-proxy")
    ):
        return ""
    if not _OF_KERNEL.search(getattr(pod, "line", "") or getattr(pod, "message", "")):
        return ""
    return f"; the kernel {host.machine.kernel} refuses it"


EFFECTS = {
    "kube-proxy": (
        "critical",
        "Services have no rules on the node, or those of before: what is reached by them fails"
        " sooner or later",
    ),
    "network": ("critical", "pods of the node get no network, or lose it"),
    pod_roles.CLOUD: (
        "critical",
        "nodes that join are not initialised and get no addresses, and with routes of the cloud no"
        " range for pods",
    ),
    "dns": (None, "names of Services are not resolved where all of them end"),
    "kops-controller": (None, "nodes that join get neither certificates nor labels"),
}


def endings(cluster: Cluster, part: str = "", node: str | None = None) -> tuple[EndedPod, ...]:
    """Return the pods of the cluster that end again and again, of one part or one node."""
    return tuple(
        row.pod
        for row in _rows(cluster)
        if (not part or pod_roles.role(row.pod) == part) and node in (None, row.node)
    )


def _rows(cluster: Cluster) -> list[_Ending]:
    """Return what ends again and again by its own logs, by the API, or by both."""
    crashes = {
        (row.node, _namespace(row), name): row for row in _crashes(cluster) for name in _names(row)
    }
    rows = []
    for host in cluster.hosts:
        node = host.node or host.host
        for pod in host.system_pods:
            if crashes.pop((node, pod.namespace, pod.pod), None) is not None or pod.current:
                rows.append(_Ending(node, host, pod))
    by_node = cluster.hosts_by_node()
    rows += [
        _Ending(node, by_node.get(node), _by_api(cluster, row, name))
        for (node, _dummy, name), row in crashes.items()
    ]
    return rows


def _crashes(cluster: Cluster) -> list[Waiting]:
    """Return the cluster's own pods that end again and again, as the API tells."""
    return [
        row
        for row in (*pod_start.waiting(cluster), *pod_start.crash_loops(cluster))
        if is_own(cluster, row) and row.late(WAITED_SECONDS)
    ]


def is_own(cluster: Cluster, row: Waiting) -> bool:
    """Tell whether these are pods of the cluster itself whose containers end."""
    if row.is_control_plane or row.trouble is not pod_start.ENDS:
        return False
    if system_namespaces.is_one(_namespace(row)) or row.row.agent:
        return True
    return any((_namespace(row), name) in _read(cluster) for name in _names(row))


@memoize.last
def _read(cluster: Cluster) -> frozenset[tuple[str, str]]:
    """Return namespace and name of the pods that a node took for the cluster's own."""
    return frozenset((pod.namespace, pod.pod) for host in cluster.hosts for pod in host.system_pods)


def _namespace(row: Waiting) -> str:
    return one_line(row.row.namespace or "", 63)


def _names(row: Waiting) -> list[str]:
    return [one_line(name, 253) for name in row.row.names]


def _by_api(cluster: Cluster, row: Waiting, name: str) -> EndedPod:
    """Return what the API alone tells: a container that cannot be started has no log."""
    container = _CONTAINER.search(row.text)
    words = container.group(1) if container else ""
    message = _failure(cluster, f"{_namespace(row)}/{name}")
    cause = known_message.first((EVENT, "kubelet"), (message,))
    line = ends(one_line(message, 2000), 400)
    return EndedPod(_namespace(row), name, words, 0, True, "", line, None, known=cause)


def _failure(cluster: Cluster, pod: str) -> str:
    """Return what the kubelet says of a container of a pod that it cannot start, or ""."""
    events = (event for event in cluster.typed(PodStart).events if event.pod == pod)
    return next((event.message for event in events if event.reason == FAILED), "")


@cluster_check(
    "KM550",
    "A pod of the cluster itself ends again and again",
    severity="warning",
    applies="pods of kube-system, of networks and of add-ons, and agents of nodes",
    needs=("system", "system_pods", "boot"),
    cluster_needs=("pod_start",),
    explained_by=causes("KM115", "KM178", "KM508", "KM512")
    | causes("KM520", component=boot.NETFILTER)
    | causes("KM534", component="openvswitch")
    | causes("KM534", component="rp_filter"),
    same_node=True,
)
def ending(cluster: Cluster) -> Iterator[CheckResult]:
    """KM550: report pods that make the cluster and end again and again, and why."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    groups: dict[tuple[str, str, str], list[_Ending]] = {}
    for row in _rows(cluster):
        groups.setdefault(row.kind, []).append(row)
    missing = [item for host in cluster.hosts for item in _missing(host)]
    hits = tuple(_hit(cluster, rows) for rows in groups.values())
    texts = [
        unread_note(host, host.unread_system_pods, "that started again recently", "--previous")
        for host in cluster.hosts
    ]
    yield CheckResult(hits, tuple(missing), note=notes(texts))


def _missing(host: Host) -> tuple[Missing, ...]:
    missing = host.missing("system_pods")
    if not missing and host.unread_system_pods.count:
        return (Missing(host.host, "system_pods", "error"),)
    return missing


def unread_note(host: Host, unread: UnreadPods, state: str, option: str) -> str:
    """Return how many logs of a host were not read, and how to see them; "" where all were."""
    if not unread.count:
        return ""
    of_all = f"{unread.count} logs of the cluster's own pods {state} were not read"
    if unread.read:
        of_all = (
            f"{unread.read} of {unread.read + unread.count} logs of the cluster's own pods {state}"
            " were read"
        )
    rest = "the other pods"
    if unread.pods:
        rest += f", such as {and_others(unread.pods)}"
    return (
        f"{host.host}: {of_all}; see those of {rest}: kubectl -n NAMESPACE logs POD"
        f" --all-containers {option}"
    )


def notes(texts: Iterable[str]) -> str:
    """Return the first few notes of hosts as one, and how many more there are."""
    present = [text for text in texts if text]
    more = len(present) - SHOWN
    return "; ".join(present[:SHOWN]) + (f"; and of {more} more hosts" if more > 0 else "")


def _hit(cluster: Cluster, rows: list[_Ending]) -> Detection:
    first = rows[0]
    nodes = list(dict.fromkeys(row.node for row in rows))
    severity, effect = _effect(first.pod)
    denial = denied(first.host, first.pod, first.pod.line)
    clause, advice = _cause(first.pod, is_denied=bool(denial.line))
    refused = kernel_clause(first.pod, first.host)
    if refused:
        advice = f"{KERNEL_ADVICE}; {advice}"
    probe = end_context.failed_probe(cluster, first.pod)
    if probe:
        refused += f"; the kubelet ends it, because its probe fails: {probe}"
    refused += end_context.without_proxy(
        first.pod.known, endings(cluster, "kube-proxy", first.node)
    )
    if first.host is not None:
        refused += default_runtime.clause(first.host.default_runtime, first.pod.known)
    name = pod_roles.workload(first.pod)
    summary = f"{first.pod.namespace}/{name} on {and_others(nodes)} ends again and again"
    if first.pod.restarts:
        summary += f" ({max(row.pod.restarts for row in rows)} starts before)"
    node, host = place(first.node, first.host, len(nodes))
    hit = Detection(
        "; ".join(filter(None, (f"{summary}{_said(first.pod)}{clause}{refused}", effect))),
        (*_proofs(cluster, rows), *proofs_of(first.host, denial)),
        advice,
        host=host,
        node=node,
        component=pod_roles.name(first.pod),
        because=(
            *_asks_itself(rows),
            *_of_kernel(rows),
            *denied_network(first.host, first.pod.line),
            *of_webhook(cluster, first.pod.line),
        ),
        severity=severity,
    )
    hit = with_root(hit, kubelet_root.of_driver(cluster, first.node, probe or first.pod.line))
    if denial.line:
        return with_denial(hit, denial.denial)
    return with_rule(
        with_cause(hit, first.pod.known), (first.pod.line,), Source(name=first.pod.container)
    )


def denied(host: Host | None, pod: EndedPod | PodError, line: str) -> FileDenial:
    """Return what denies a container of a host the file that its line names."""
    if host is None:
        return FileDenial()
    versions = host.releases.of_node
    return container_denials.find(line, pod, host.host, host.container_denials, versions)


def denied_network(host: Host | None, line: str) -> tuple[str, ...]:
    """Return KM528 where a line is about a way that SELinux may deny the network of a host."""
    if host is None or not bpf_denials.of_privileged(host.container_denials):
        return ()
    answer = error_answer.read(line, message_table.LIBRARY)
    if answer is not None and answer.kind in _WAYS:
        return (BPF_DENIED,)
    return ()


def proofs_of(host: Host | None, denial: FileDenial) -> Iterator[EvidenceRef]:
    """Yield the line of the audit log that shows a denial."""
    if host is not None and denial.line:
        yield EvidenceRef("log", host.host, path=AUDIT, text=denial.line)


def _effect(pod: EndedPod) -> tuple[str | None, str]:
    """Return the severity, where it is not the fault's own, and what does not work meanwhile."""
    if pod_roles.is_driver(pod):
        return None, "volumes of its driver are not mounted on the node, or not made"
    return EFFECTS.get(pod_roles.role(pod), (None, ""))


def _asks_itself(rows: Iterable[_Ending]) -> tuple[str, ...]:
    """Return KM533 where a DNS server's resolv.conf names the pod itself."""
    for row in rows:
        resolver = row.host.network.resolver if row.host is not None else None
        if resolver is None or pod_roles.role(row.pod) != "dns":
            continue
        if any(map(host_network.is_loopback, resolver.nameservers)):
            return ("KM533",)
    return ()


def _of_kernel(rows: Iterable[_Ending]) -> tuple[str, ...]:
    """Return the faults about what of the kernel a pod says that it ends for."""
    rows = [row for row in rows if row.pod.known is not None and row.host is not None]
    names = {row.pod.known.id for row in rows if row.pod.known is not None}
    codes = {name: code for name, code in _KERNEL_FAULTS.items() if name in names}
    if not any(row.host is not None and row.host.network.is_loose for row in rows):
        codes.pop(LOOSE, None)
    return tuple(codes.values())


def of_webhook(cluster: Cluster, line: str) -> tuple[str, ...]:
    """Return KM176 where a line says that a webhook without a server refuses what a pod asks."""
    name = refused_pods.webhook_in(line)
    if name and name in refused_pods.dead_webhooks(cluster):
        return ("KM176",)
    return ()


def place(node: str, host: Host | None, nodes: int) -> tuple[str | None, str | None]:
    """Return the Node and the host of a finding about so many nodes, None for several ones."""
    if nodes > 1:
        return None, None
    if host is None:
        return node, None
    return node, host.host


def _said(pod: EndedPod) -> str:
    if pod.told:
        return f": {pod.line}; its own log on the node ({pod.told_in}) says: {pod.told}"
    if pod.line:
        return f": {pod.line}{pod.panicked}"
    if pod.error:
        return f"; its log cannot be read: {pod.error}"
    if pod.path:
        return "; its log has no line"
    return "; its log was not read here"


def _cause(pod: EndedPod, *, is_denied: bool = False) -> tuple[str, str]:
    """Return what the line means, as a clause, and what to do about it.

    is_denied: whether it is known that SELinux denies it, so that nothing else comes into question
    """
    container = f" -c {pod.container}" if pod.container else ""
    look = f"see its log: kubectl -n {pod.namespace} logs {pod.pod}{container} --previous"
    if pod.told_in or pod.path:
        look = f"see {pod.told_in or pod.path} on the node"
    if is_denied:
        return "", look
    if pod.reading is None:
        answer = error_answer.read(pod.line, message_table.LIBRARY)
        if answer is None:
            return "", f"{look}; correct what its last line names"
        return f" ({answer.clause})", f"{answer.advice}; {look}"
    meaning = message_class.CLASSES[pod.reading.meaning]
    return f" ({meaning.clause})", f"{meaning.advice}; {look}"


def _proofs(cluster: Cluster, rows: Iterable[_Ending]) -> Iterator[EvidenceRef]:
    for row in list(rows)[:SHOWN]:
        name = f"{row.pod.namespace}/{row.pod.pod}"
        if row.host is not None and row.pod.path:
            text = row.pod.line or row.pod.error or "no line"
            yield EvidenceRef("log", row.host.host, path=row.pod.path, object=name, text=text)
            if row.pod.told:
                path = row.pod.told_in
                yield EvidenceRef("log", row.host.host, path=path, object=name, text=row.pod.told)
        else:
            text = row.pod.line or "CrashLoopBackOff"
            yield EvidenceRef("api", cluster.api_host, object=f"Pod {name}", text=text)


def because(cluster: Cluster, part: str, node: str | None = None) -> tuple[str, ...]:
    """Return this fault where such a part of the cluster ends again and again."""
    return ("KM550",) if endings(cluster, part, node) else ()
