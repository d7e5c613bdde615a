# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM536: check whether a release with a known defect shows its symptoms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ....module_utils.shared.text import counted
from ...evidence.answers.cluster.pod_start import PodStart
from ...evidence.document import ends, one_line
from ...models import known_defects, pod_start
from ...models.api_node import NodeView, views
from ...models.cluster import Cluster, Host
from ...models.known_defects import DEFECTS, Defect
from ...models.pod_start import Waiting
from ...models.result import EvidenceRef, Missing
from ..base import CheckResult, Detection, cluster_check, without_kubernetes
from . import rancher_tunnels, wording

SILENT_SECONDS, OWNERS, PODS, SHOWN = 900, 2, 3, 3
STARTING_SECONDS = 180  # between the change of a manifest and the start of the kubelet
# The collector that reads the version of a program on its host.
READ_BY = {
    known_defects.RUNC: "pinning",
    known_defects.UTIL_LINUX: "pinning",
    known_defects.SYSTEMD: "swap",
}


class Said(NamedTuple):
    """A text of a Node's evidence, where it is, and its proof."""

    place: str
    text: str
    proof: EvidenceRef


@cluster_check(
    "KM536",
    "Release with a known defect",
    severity="warning",
    applies="clusters whose API answers",
    needs=("kubelet", "pinning", "swap", "cri"),
    cluster_needs=("nodes", "pod_start"),
    current_only=True,
)
def defects(cluster: Cluster) -> Iterator[CheckResult]:
    """KM536: report releases with a known defect whose symptoms are in the evidence."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    hits: list[Detection] = []
    missing = [*cluster.missing("nodes"), *cluster.missing("pod_start")]
    for view in views(cluster):
        texts = list(_texts(cluster, view))
        for defect in DEFECTS:
            proofs = _proofs(defect, texts)
            if not proofs:
                continue
            version = _version(defect, view)
            if defect.has(version):
                hits.append(_hit(cluster, view, defect, str(version), proofs))
            elif version is None:
                missing += _unread(defect, view)
    hits += rancher_tunnels.hits(cluster)
    yield CheckResult(tuple(hits), tuple(dict.fromkeys(missing)))


def _version(defect: Defect, view: NodeView) -> str | None:
    """Return the release of a program on a Node, None where it is not known."""
    if defect.program in (known_defects.KUBELET, known_defects.KUBEADM):
        return view.kubelet or None
    if defect.program == known_defects.CONTAINERD:
        kind, _space, version = view.runtime.partition(" ")
        return version if kind == defect.program else "0"
    return view.host.releases.version(defect.program) if view.host is not None else None


def _unread(defect: Defect, view: NodeView) -> list[Missing]:
    """Return what is missing to know the release of a program."""
    collector = READ_BY.get(defect.program, "kubelet")
    if view.host is None:
        return [Missing(view.name, "host", "not_asked")]
    return list(view.host.missing(collector)) or [Missing(view.host.host, collector, "not_asked")]


def _texts(cluster: Cluster, view: NodeView) -> Iterator[Said]:
    """Yield what the evidence says of a Node, in which symptoms are looked for."""
    yield from _of_pods(cluster, view)
    ready = view.condition("Ready")
    if ready is not None and view.ready != "True" and ready.message:
        message = ends(ready.message, 400)
        about = f"Node {view.name}"
        proof = EvidenceRef("api", cluster.api_host, object=about, text=f"Ready: {message}")
        yield Said(known_defects.READY, message, proof)
    if view.host is None:
        return
    releases, host = view.host.releases, view.host.host
    yield from _of_static_pods(view.host)
    if releases.cgroup_driver:
        text = f"cgroupDriver: {one_line(releases.cgroup_driver, 40)}"
        proof = EvidenceRef("process", host, object="kubelet", text=text)
        yield Said(known_defects.CGROUP_DRIVER, releases.cgroup_driver, proof)
    for path, line, kind in releases.shims:
        text = f"runtime_type is {kind}"
        proof = EvidenceRef("file", host, path=path, line=line, text=text)
        yield Said(known_defects.SHIM, kind, proof)
    if releases.without_runtimes:
        path, text = releases.without_runtimes, "older than version 3, and names no runtime"
        proof = EvidenceRef("file", host, path=path, text=text)
        yield Said(known_defects.REGISTRY, path, proof)
    if releases.without_flags and view.control_plane:  # where kubeadm upgrade apply runs
        path = releases.without_flags
        proof = EvidenceRef("file", host, path=path, text="KUBELET_KUBEADM_ARGS has no flags")
        yield Said(known_defects.FLAGS, path, proof)


def _of_static_pods(host: Host) -> Iterator[Said]:
    """Yield static pods of the control plane that a kubelet was told of at its start, and lacks."""
    plane, started = host.control_plane, host.kubelet_started
    if plane is None or started is None or plane.kubelet_problem:
        return
    begun = started.timestamp()
    if plane.clock - begun < STARTING_SECONDS or host.statuses.get("instances") != "ok":
        return
    running = {process.component for process in plane.processes if process.static}
    for use in plane.files:
        if use.component not in running and abs(begun - use.changed) < STARTING_SECONDS:
            text = f"{use.component} does not start since"
            proof = EvidenceRef("file", host.host, path=one_line(use.path, 300), text=text)
            yield Said(known_defects.STATIC, use.component, proof)


def _of_pods(cluster: Cluster, view: NodeView) -> Iterator[Said]:
    """Yield what is told of pods of a Node that do not start, also that nothing is."""
    about = f"Node {view.name}"
    rows = [row for row in pod_start.waiting(cluster) if row.node == view.name]
    for message in _messages(cluster, view.name, rows):
        proof = EvidenceRef("api", cluster.api_host, object=about, text=message)
        yield Said(known_defects.WAITING, message, proof)
    silent = [row for row in rows if row.trouble is None and not row.text]
    late = {row.owner: row.late(SILENT_SECONDS) for row in silent if row.late(SILENT_SECONDS)}
    pods = sum(late.values())
    if pods >= PODS and len(late) >= OWNERS:
        text = f"{counted(pods, 'pod does', 'pods do')} not start, and nothing is reported of them"
        proof = EvidenceRef("api", cluster.api_host, object=about, text=text)
        yield Said(known_defects.SILENT, "", proof)


def _messages(cluster: Cluster, node: str, rows: list[Waiting]) -> Iterator[str]:
    """Yield what is reported of these pods, and of others of their node that wait."""
    for row in rows:
        if row.text:
            yield row.text
        if row.row.event is not None:
            yield ends(row.row.event.message, 600)
    for event in cluster.typed(PodStart).events:
        if event.node == node and event.waiting:
            yield ends(event.message, 600)


def _proofs(defect: Defect, texts: list[Said]) -> list[EvidenceRef]:
    """Return what shows all symptoms of a defect, nothing where one of them is not there."""
    proofs: list[EvidenceRef] = []
    for symptom in defect.symptoms:
        shown = [row.proof for row in texts if symptom.is_in(row.place, row.text)]
        if not shown:
            return []
        proofs += dict.fromkeys(shown[:SHOWN])
    return proofs


def _hit(
    cluster: Cluster, view: NodeView, defect: Defect, version: str, proofs: list[EvidenceRef]
) -> Detection:
    shown = one_line(version, 60).removeprefix("runc version ")
    verb = "shows" if defect.sure else "may show"
    proof = f"{defect.program} {shown}"
    if defect.program == known_defects.KUBEADM:
        verb, proof = "has", f"kubelet {shown}"
    return Detection(
        f"{defect.program} {shown} {verb} a known defect: {defect.what}",
        (*proofs, EvidenceRef("api", cluster.api_host, object=f"Node {view.name}", text=proof)),
        f"{defect.advice}. See {', '.join(defect.links)}",
        host=wording.host_name(view),
        node=view.name,
        component=defect.program,
        severity=defect.severity,
    )
