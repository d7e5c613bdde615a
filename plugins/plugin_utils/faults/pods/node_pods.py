# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check pods that a node accepted and that do not start (KM600, and KM610: the workload's own)."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ....module_utils.shared.text import counted, times
from ...evidence.answers.cluster.nodes import Node, Nodes
from ...evidence.answers.cluster.pod_start import PodEvents, PodStart
from ...evidence.answers.node.kernel_log import KernelLine
from ...evidence.document import ends, one_line, shell_name
from ...models import (
    docker_image_size,
    file_policies,
    kubelet_root,
    overlay_base,
    pod_start,
    pressure,
    remote_mounts,
    runtime_proxy,
    storage_clients,
)
from ...models.api_node import NodeView, and_others, views
from ...models.cluster import Cluster
from ...models.containerd_merge import Dropped
from ...models.denied_file import Denial
from ...models.pod_start import Waiting
from ...models.result import EvidenceRef, Missing
from ...models.system_pods import EndedPod
from ...parsers import error_origin, pod_start_message
from ...parsers.known_message import EVENT, RUNTIMES
from ...parsers.pod_start_message import (
    CERTIFICATE,
    CLIENT_CERTIFICATE,
    NODE,
    PLAIN_HTTP,
    WORKLOAD,
    Trouble,
)
from .. import dropped_settings
from ..base import CheckResult, Detection, causes, cluster_check, without_kubernetes
from ..known_causes import Source, explained, with_denial
from ..node import wording
from ..other_folders import with_cni, with_root
from . import late_runtime, pod_errors, refused_tokens, system_pods, volume_driver

# A kubelet tries again every few seconds to minutes. Where nothing is reported, images may be
# large.
WAITED_SECONDS, SILENT_SECONDS = 300, 900
OWNERS, PODS, MOST = 2, 3, 10
SANDBOX = "FailedCreatePodSandBox"
_BEFORE = re.compile(r"Failed to create pod sandbox: |rpc error: code = \w+ desc = ")
# A file system that the node mounts by a program of its own package.
_REMOTE = re.compile(r"-t (?:nfs4?|cifs|smb3) |kubernetes\.io~(?:nfs|cifs)/")
_HELPER = "nfs-helper-missing"  # a row of known messages
_DEAD_MOUNTS = ("dead-mount-of-docker-volume", "fuse-program-ended", "mount-point-does-not-answer")
_ID = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b")
SILENT, SURE, OVERLAY = "", "of the node", "overlay"
# The evidence of their node tells more of these than the row of known messages does.
TOLD = frozenset((OVERLAY, runtime_proxy.KIND, docker_image_size.MISFIT, docker_image_size.NO_DATA))
PLACES = (EVENT, "kubelet", *RUNTIMES)  # who writes what an event of a pod quotes
# How a runtime asks a registry: nothing in the workload corrects that.
OF_RUNTIME = frozenset((CERTIFICATE, CLIENT_CERTIFICATE, PLAIN_HTTP))
# What says no more than that something fails.
VAGUE = frozenset((pod_start_message.CREATE, pod_start_message.MOUNT))
SHOWN = 5
QUOTED = 2  # ends of containers in a summary


def missing_rows(cluster: Cluster) -> list[Missing]:
    """Return what is missing to say that no pod waits."""
    missing = list(cluster.missing("pod_start")) or list(cluster.cut("pod_start"))
    if not missing and any(not row.ages for row in pod_start.waiting(cluster)):
        missing = [cluster.missing_answer("pod_start", "error")]
    return missing


@cluster_check(
    "KM600",
    "Pods of a node do not start",
    severity="warning",
    applies="clusters whose API answers",
    needs=("instances", "manifests", "kernel_log", "boot", "system_pods"),
    cluster_needs=("pod_start", "nodes"),
    current_only=True,
    same_node=True,
    explained_by=causes(
        "KM115",
        "KM401",
        "KM402",
        "KM403",
        "KM404",
        "KM405",
        "KM411",
        "KM508",
        "KM512",
        "KM516",
        "KM519",
        "KM520",
        "KM521",
        "KM522",
        "KM523",
        "KM524",
        "KM525",
        "KM527",
        "KM528",
        "KM536",
        "KM601",
        "KM602",
        "KM603",
        "KM604",
        "KM605",
        "KM606",
        "KM607",
        "KM608",
    ),
)
def not_starting(cluster: Cluster) -> Iterator[CheckResult]:
    """KM600: report pods of a node that wait for what is not the workload's own mistake."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    late = _late_nodes(cluster)
    hits = [_hit(cluster, node, rows, len(late) - 1) for node, rows in sorted(late.items())]
    yield CheckResult(tuple(hits), tuple(missing_rows(cluster)))


def _late_nodes(cluster: Cluster) -> dict[str, list[Waiting]]:
    """Return the nodes that do not start pods, with those that wait for too long."""
    by_node: dict[str, list[Waiting]] = {}
    for row in pod_start.waiting(cluster):
        if _late(row):
            by_node.setdefault(row.node, []).append(row)
    return {
        node: rows
        for node, rows in by_node.items()
        if _is_of_node(cluster, rows) or _kernel_line(cluster, node, rows) is not None
    }


def _kernel_line(cluster: Cluster, node: str, rows: Sequence[Waiting]) -> KernelLine | None:
    """Return what the kernel of a node says of the storage that its pods wait for, or None."""
    host = cluster.hosts_by_node().get(node)
    lines = host.storage_lines if host is not None else ()
    candidates = (
        storage_clients.about(lines, row.text)
        for row in rows
        if row.reason in pod_start_message.MOUNT_REASONS
    )
    return next((line for line in candidates if line is not None), None)


def _of_kernel(cluster: Cluster, node: str, rows: Sequence[Waiting]) -> tuple[str, tuple[str, ...]]:
    """Return what the kernel says of that storage, as a clause, and the fault that has it."""
    line = _kernel_line(cluster, node, rows)
    if line is None:
        return "", ()
    return f"; the kernel of the node says: {ends(one_line(line.line, 2000), 200)}", ("KM562",)


def _late(row: Waiting) -> int:
    """Return how many pods wait for too long, and not for the workload."""
    if row.is_of(WORKLOAD):
        return 0
    return row.late(WAITED_SECONDS if row.trouble else SILENT_SECONDS)


def _is_of_node(cluster: Cluster, rows: Sequence[Waiting]) -> bool:
    """Tell whether the rows are more than one workload's problem.

    Hardly any workload can keep its sandbox from being created.
    """
    if any(_is_of_node_alone(cluster, row) for row in rows):
        return True
    by_kind = _by_kind(rows)
    silent, sure = by_kind.pop(SILENT, []), by_kind.pop(SURE, [])
    if _pods(sure) >= PODS or (sure and _are_several(sure + silent)):
        return True
    if _are_several(silent) and _pods(silent) >= PODS:
        return True
    return any(_are_several(doubtful) for doubtful in by_kind.values())


def _is_of_node_alone(cluster: Cluster, row: Waiting) -> bool:
    """Tell whether hardly any workload can bring about that its pods wait for this."""
    if row.reason == SANDBOX:
        return row.trouble is not None and row.trouble.kind != pod_start_message.OF_ATTACHMENT
    if row.trouble is pod_start.REMOVED or _lacks_helper(row):
        return True
    if _dropped(cluster, row):
        return True
    if row.trouble is not None and pod_start_message.is_of_machine(row.trouble.kind):
        return True
    return kubelet_root.elsewhere(cluster, row) is not None


def _dropped(cluster: Cluster, row: Waiting) -> tuple[Dropped, ...]:
    """Return the settings for which pods wait, and which containerd of their node drops."""
    host = cluster.hosts_by_node().get(row.node)
    return dropped_settings.of_pull(host, _kind(row)) or dropped_settings.of_runtime(host, row.text)


def _lacks_helper(row: Waiting) -> bool:
    """Tell whether a node lacks the program that mounts a remote file system."""
    named = row.trouble is not None and row.trouble.kind.endswith(f" {_HELPER}")
    return named and _REMOTE.search(row.text) is not None


def _by_kind(rows: Sequence[Waiting]) -> dict[str, list[Waiting]]:
    """Return the rows by what one workload can cause too; SURE is what none can."""
    by_kind: dict[str, list[Waiting]] = {}
    for row in rows:
        kind = _kind(row)
        if kind and not pod_start_message.may_be_of_one(kind):
            kind = SURE
        by_kind.setdefault(kind, []).append(row)
    return by_kind


def _are_several(rows: Sequence[Waiting]) -> bool:
    """Tell whether rows are of more than one workload."""
    return len({row.owner for row in rows}) >= OWNERS


def _pods(rows: Sequence[Waiting]) -> int:
    return sum(_late(row) for row in rows)


def _hit(cluster: Cluster, node: str, rows: Sequence[Waiting], other_nodes: int) -> Detection:
    event = pod_start.repeated(cluster, node)
    view = next((view for view in views(cluster) if view.name == node), None)
    pods, main = _pods(rows), _with_reason(_main(rows), view)
    since = min((row.row.since or "~" for row in rows), default="")
    summary = f"{wording.pods(pods)}{_runtime(view)} {wording.do(pods)} not start"
    summary += wording.since(since)
    if main.trouble is not None:
        summary += f": {main.trouble.what}"
    clause, codes = _of_kernel(cluster, node, rows)
    summary += _quoted(event, main) + _mount(main, view) + _dead_mount(main, view) + clause
    advice, proofs = _advice(node, main.trouble), _event_proofs(cluster, event)
    refusal = refused_tokens.of_message(cluster, main.text)
    if refusal is not None:
        summary += f": {refusal.clause}"
        advice = f"{refusal.advice}; {advice}"
        proofs += refusal.proofs
    hit = Detection(
        f"{summary}; {_others(cluster, node, other_nodes)}",
        (*proofs, *_origin(cluster, main), *_proofs(cluster, rows)),
        advice,
        host=wording.host_name(view) if view is not None else None,
        node=node,
        because=(*_of_network_pods(cluster, node, main), *codes),
        severity=_severity(cluster, node, pods),
    )
    hit = with_root(hit, kubelet_root.elsewhere(cluster, main))
    hit = dropped_settings.with_dropped(hit, hit.host, _dropped(cluster, main))
    hit = late_runtime.with_signs(hit, main, cluster.hosts_by_node().get(node))
    hit = volume_driver.with_driver(hit, main, cluster.hosts_by_node().get(node))
    if _kind(main) in TOLD:
        return hit
    hit = with_denial(hit, _denial(main, view))
    hit = with_cni(hit, cluster.hosts_by_node().get(main.node), main.text)
    return _explained(hit, main, event, view)


def _denial(main: Waiting, view: NodeView | None) -> Denial:
    """Return which policy of a node refuses root what its pods wait for, where one does."""
    host = view.host if view is not None else None
    if host is None or not _kind(main).endswith(pod_start_message.OF_MACHINE):
        return Denial()
    return file_policies.read(error_origin.read(main.text), host.policies)


def _explained(
    hit: Detection, main: Waiting, event: PodEvents | None, view: NodeView | None
) -> Detection:
    """Return a finding with the known cause of its message."""
    release = view.kubelet if view is not None else None
    host = view.host if view is not None else None
    texts = [main.text]
    if main.trouble is None and event is not None:
        texts.insert(0, event.message)
    versions = host.releases.of_node if host is not None else ()
    return explained(hit, PLACES, texts, release, source=Source(versions=versions))


def _with_reason(main: Waiting, view: NodeView | None) -> Waiting:
    """Return a row with the reason that evidence of its node has, where there is one."""
    host = view.host if view is not None else None
    trouble = host.runtime_proxy.trouble(main.text) if host is not None else None
    if trouble is not None:
        return replace(main, trouble=trouble)
    reason = overlay_base.reason(host.overlay, main.text) if host is not None else None
    if reason is None:
        return main
    return replace(main, trouble=Trouble(OVERLAY, NODE, reason.clause, reason.advice))


def _of_network_pods(cluster: Cluster, node: str, main: Waiting) -> tuple[str, ...]:
    """Return the faults of a node's own pods of the network, where pods wait for the network."""
    codes = pod_errors.because(cluster, "network", node)
    if pod_start_message.is_of_network(main.text):
        codes += system_pods.because(cluster, "network", node)
    return codes


def _mount(main: Waiting, view: NodeView | None) -> str:
    """Return a clause about the file system of a runtime that misses layers of images."""
    if main.trouble is None or main.trouble.kind != pod_start_message.STORE:
        return ""
    host = view.host if view is not None else None
    place = pressure.own_mount(host.pressure) if host is not None else ""
    if not place:
        return ""
    return (
        f"; {place} is a mount of its own: a runtime that was started before it was mounted has"
        " this, until it is restarted"
    )


def _dead_mount(main: Waiting, view: NodeView | None) -> str:
    """Return which remote mount of the node pods wait for, as a clause, where a message names it.

    Only of what is known for a dead mount: other messages have the point of a mount that is well.
    """
    host = view.host if view is not None else None
    if host is None or _kind(main).rpartition(" ")[2] not in _DEAD_MOUNTS:
        return ""
    mount = remote_mounts.quoted(host.remote_mounts, main.text)
    if mount is None:
        return ""
    return f"; that mount is {remote_mounts.described(mount)}"


def _runtime(view: NodeView | None) -> str:
    """Return the runtime of a node in brackets: a release of it may be the cause."""
    if view is None or not view.runtime:
        return ""
    return f" ({view.runtime})"


def _main(rows: Sequence[Waiting]) -> Waiting:
    """Return the row whose cause most pods have."""
    pods: dict[str, int] = {}
    for row in rows:
        pods[_kind(row)] = pods.get(_kind(row), 0) + _late(row)
    return max(rows, key=lambda row: (row.trouble is not None, pods[_kind(row)], _late(row)))


def _kind(row: Waiting) -> str:
    return row.trouble.kind if row.trouble else ""


def _quoted(event: PodEvents | None, main: Waiting) -> str:
    """Return what is reported most often, with its count, or the message of a pod, as a clause."""
    if event is not None:
        is_told = event.message in main.text and _kind(main).endswith(pod_start_message.OF_MACHINE)
        quote = "" if is_told else f": {_shortened(event.message)}"
        return f" ({times(event.count)}{quote})"
    if main.text:
        return f" ({_shortened(main.text)})"
    return ", and nothing is reported of them"


def _shortened(message: str) -> str:
    """Return a message without what each has; its innermost part is never cut away."""
    return error_origin.shortened(_ID.sub(r"\1", _BEFORE.sub("", message)), 300)


def _others(cluster: Cluster, node: str, other_nodes: int) -> str:
    if other_nodes:
        return f"pods wait on {_nodes(other_nodes)} too"
    names = {view.name for view in views(cluster) if view.ready == "True"}
    if names - {node}:
        return "those of other nodes do"
    if names:
        return "it is the only Ready node"
    return "no node is Ready"


def _nodes(count: int) -> str:
    return counted(count, "other node")


def _severity(cluster: Cluster, node: str, pods: int) -> str | None:
    """Return critical where the node does not start most of its pods, or many."""
    total = pod_start.total(cluster, node)
    is_most = total is not None and pods >= PODS and 2 * pods >= total
    return "critical" if is_most or pods >= MOST else None


def _advice(node: str, trouble: Trouble | None) -> str:
    selector = f"spec.nodeName={shell_name(node, 'NODE')}"
    look = f"kubectl get pods -A -o wide --field-selector {selector} lists them"
    if trouble is None:
        return (
            f"{look}; see kubectl describe pod of one of them, and the journal of kubelet and"
            " runtime on that node"
        )
    return f"{trouble.cure}; {look}"


def _event_proofs(cluster: Cluster, event: PodEvents | None) -> list[EvidenceRef]:
    if event is None:
        return []
    text = (
        f"{one_line(event.reason, 80)}, {times(event.count)} about {wording.pods(event.pods)}, last"
        f" {one_line(event.last, 40)}: {ends(event.message, 600)}"
    )
    about = f"Event of Pod {one_line(event.pod, 320)}"
    return [EvidenceRef("api", cluster.api_host, object=about, text=text)]


def _origin(cluster: Cluster, main: Waiting) -> list[EvidenceRef]:
    """Return what tells more of a cause: who removed an image, or the releases of both sides."""
    if main.trouble is None:
        return []
    if main.trouble.kind == runtime_proxy.KIND:
        owner = cluster.node_hosts.get(main.node)
        return [*owner.runtime_proxy.proof(owner.host)] if owner is not None else []
    if main.trouble.kind == pod_start_message.SERVICES:
        nodes = cluster.typed(Nodes).items
        node = next((node for node in nodes if node.name == main.node), Node())
        kubelet, server = one_line(node.kubelet_version, 40), one_line(cluster.version, 40)
        text = f"kubelet {kubelet}, API server {server}"
        return [EvidenceRef("api", cluster.api_host, object=f"Node {main.node}", text=text)]
    if main.trouble is not pod_start.REMOVED:
        return []
    host = cluster.hosts_by_node()[main.node]
    return [EvidenceRef("log", host.host, object="kubelet", text=host.image_removed)]


def _proofs(cluster: Cluster, rows: Sequence[Waiting]) -> list[EvidenceRef]:
    ordered = sorted(rows, key=lambda row: (-row.pods, row.row.since or "~", row.owner))
    proofs = [proof(cluster, row) for row in ordered[:SHOWN]]
    node = ordered[0].node
    for row in cluster.typed(PodStart).nodes:
        if row.node == node and row.states:
            states = [f"{count} {one_line(state, 80)}" for state, count in row.states.items()]
            text = f"its pods: {and_others(sorted(states), 12)}"
            proofs.append(EvidenceRef("api", cluster.api_host, object=f"Node {node}", text=text))
    return proofs


def proof(cluster: Cluster, row: Waiting) -> EvidenceRef:
    """Return the pods of one owner that wait, for a report."""
    names = ", ".join(one_line(name, 253) for name in row.row.names)
    text = (
        f"{wording.pods(row.pods)} {one_line(row.row.state, 80)} on {row.node} since"
        f" {one_line(row.row.since, 40)} ({names})"
    )
    if row.text:
        text += f": {row.text}"
    return EvidenceRef("api", cluster.api_host, object=row.owner, text=text)


@cluster_check(
    "KM610",
    "Pods do not start because of their own workload",
    severity="info",
    applies="clusters whose API answers",
    cluster_needs=("pod_start",),
    current_only=True,
)
def own_mistake(cluster: Cluster) -> Iterator[CheckResult]:
    """KM610: report workloads whose pods wait for what they themselves name or have to provide."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    nodes = _late_nodes(cluster)
    rows = [
        row
        for row in (*pod_start.waiting(cluster), *pod_start.crash_loops(cluster))
        if not _is_clusters(cluster, row)
        and row.late(WAITED_SECONDS)
        and (row.is_of(WORKLOAD) or _is_alone(row, nodes))
    ]
    hits: tuple[Detection, ...] = ()
    if rows:
        hits = (_own(cluster, rows),)
    yield CheckResult(hits, tuple(missing_rows(cluster)))


def _is_clusters(cluster: Cluster, row: Waiting) -> bool:
    """Tell whether other faults judge these: pods of the control plane, and KM550's."""
    return row.is_control_plane or system_pods.is_own(cluster, row)


def _is_alone(row: Waiting, nodes: Mapping[str, object]) -> bool:
    """Tell whether no other workload of a node waits for what this one may have wrong."""
    return row.node not in nodes and pod_start_message.may_be_of_one(_kind(row))


def _reason(cause: Trouble, rows: Sequence[Waiting]) -> str:
    """Return a cause, with the answer of the registry, or with what only the message says."""
    text = next(row.text for row in rows if _kind(row) == cause.kind)
    if cause.kind.startswith("pull_"):
        return f"{cause.what} ({_answer(text)})"
    if cause.kind in VAGUE and text:
        return f"{cause.what} ({error_origin.inner(text)})"
    return cause.what


def _answer(message: str) -> str:
    """Return the end of a message about an image, which has what the registry or a name says."""
    return error_origin.shortened(_ID.sub(r"\1", _BEFORE.sub("", message)), 200)


def _own(cluster: Cluster, rows: Sequence[Waiting]) -> Detection:
    owners = list(dict.fromkeys(row.owner for row in rows))
    causes_by_kind = {row.trouble.kind: row.trouble for row in rows if row.trouble is not None}
    pods = sum(row.late(WAITED_SECONDS) for row in rows)
    reasons = and_others([_reason(cause, rows) for cause in causes_by_kind.values()])
    cures = and_others([cause.cure for cause in causes_by_kind.values()])
    logs = _last_words(cluster, rows)
    hit = Detection(
        f"{wording.pods(pods)} of {and_others(owners)} {wording.do(pods)} not start,"
        f" {_reach(rows, logs)}: {reasons}{_at_end(logs)}",
        (*(proof(cluster, row) for row in rows[:SHOWN]), *_end_proofs(logs)),
        cures,
        severity=_weight(causes_by_kind),
    )
    if len(causes_by_kind) > 1 or not TOLD.isdisjoint(causes_by_kind):
        return hit
    return explained(hit, PLACES, _texts_of_nodes(rows))


def _last_words(cluster: Cluster, rows: Sequence[Waiting]) -> list[tuple[str, EndedPod]]:
    """Return (host, container) of those that end and whose log their node has, once each text."""
    hosts = cluster.hosts_by_node()
    ending = [row for row in rows if row.trouble is pod_start.ENDS and row.node in hosts]
    logs: dict[str, tuple[str, EndedPod]] = {}
    for row in ending:
        host = hosts[row.node]
        for pod in filter(functools.partial(_ends_among, row), host.unclear_pods):
            logs.setdefault(pod.line, (host.host, pod))
    return list(logs.values())[:QUOTED]


def _ends_among(row: Waiting, pod: EndedPod) -> bool:
    """Tell whether a container that says something at its end is of one of these pods."""
    return bool(pod.line) and pod.namespace == row.row.namespace and pod.pod in row.row.names


def _at_end(logs: Sequence[tuple[str, EndedPod]]) -> str:
    """Return what containers say at their end, as a clause."""
    texts = [f"; {pod.container} of {pod.pod} says at its end: {pod.line}" for _host, pod in logs]
    return "".join(texts)


def _end_proofs(logs: Sequence[tuple[str, EndedPod]]) -> list[EvidenceRef]:
    return [
        EvidenceRef("log", host, path=pod.path, object=f"{pod.namespace}/{pod.pod}", text=pod.line)
        for host, pod in logs
    ]


def _texts_of_nodes(rows: Sequence[Waiting]) -> list[str]:
    """Return the messages of those that wait for more than what their own workload names."""
    return [row.text for row in rows if not row.is_of(WORKLOAD)]


def _reach(rows: Sequence[Waiting], logs: Sequence[tuple[str, EndedPod]]) -> str:
    """Return why the nodes of these pods are not accused.

    What an add-on finds on its node is not always its own.
    """
    if logs:
        return "and no evidence shows a fault of their nodes"
    if all(row.is_of(WORKLOAD) for row in rows):
        return "which is no fault of a node"
    return "and no other workload of their nodes waits for the same"


def _weight(kinds: Collection[str]) -> str:
    if (OF_RUNTIME | TOLD).intersection(map(pod_start_message.base, kinds)):
        return "warning"
    return "info"
