# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of pods that are not in a scheduler's queue (KM218 to KM223).

They are gated, have their node already, or are not even created.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from ....module_utils.shared.text import counted
from ...evidence.answers.cluster.nodes import Condition
from ...evidence.answers.cluster.pending import BoundPods, GatedPods, Pending
from ...evidence.answers.cluster.unmade import DaemonSet, RefusedOwner, Unmade
from ...evidence.document import ends, one_line
from ...models import ages, refused_pods, taints
from ...models.api_node import SHOWN, NodeView, and_others, views
from ...models.cluster import Cluster
from ...models.pod_start import qualified
from ...models.result import EvidenceRef, Missing
from ...models.scheduling.excluded_nodes import PASSING
from ...parsers.known_message import EVENT
from ..base import (
    AnyClusterCheck,
    CheckResult,
    Detection,
    causes,
    cluster_check,
    without_kubernetes,
)
from ..known_causes import explained
from ..node import wording
from . import waiting_pods
from .unschedulable import WAITED_SECONDS

# A kubelet takes up what it is given within seconds. One that is not ready is waited for no longer:
# pods leave such a node after five minutes.
TAKEN_SECONDS = 60
# Controllers try again after 17 minutes at most: what was refused longer ago is over.
AGAIN_SECONDS = 1200
QUOTA = re.compile(r"exceeded quota|failed quota|insufficient quota|exceeds? the maximum .*quota")
ACCOUNT = re.compile(
    r"service ?account \S+ (?:was )?not found|serviceaccounts? \S+ not found|error looking up"
    r" service account"
    r"|no API token found for service account"
)
ENDS = re.compile(r"because it is being terminated")


def _missing(cluster: Cluster, collector: str, rows: Sequence[object] | None) -> list[Missing]:
    """Return what is missing to say that no pod waits.

    That is the answer, the rows, which an older release did not collect, or the end of a list.
    """
    missing = list(cluster.missing(collector))
    if missing:
        return missing
    if rows is None:
        return [cluster.missing_answer(collector, "not_asked")]
    return list(cluster.cut(collector))


def _pods(row: GatedPods | BoundPods) -> str:
    names = [one_line(name, 320) for name in row.names]
    text, more = ", ".join(names), waiting_pods.count(row) - len(names)
    if more > 0:
        text += f" and {more} more"
    return text


def creation_check(code: str, title: str) -> Callable[[AnyClusterCheck], AnyClusterCheck]:
    """Register a cluster check of pods that the API server refuses to create."""
    return cluster_check(
        code,
        title,
        severity="warning",
        applies="clusters whose API answers",
        cluster_needs=("unmade",),
        current_only=True,
        explained_by=causes("KM115"),
    )


@creation_check("KM221", "Pod creation is blocked by a quota")
def quota_exhausted(cluster: Cluster) -> Iterator[CheckResult]:
    """Report pods that a resource quota keeps from being created."""
    return _refused_results(cluster, "KM221")


@creation_check("KM222", "Pod creation is blocked by a service account")
def no_service_account(cluster: Cluster) -> Iterator[CheckResult]:
    """Report pods whose service account does not exist."""
    return _refused_results(cluster, "KM222")


@creation_check("KM223", "Pod creation is refused by the API server")
def creation_refused(cluster: Cluster) -> Iterator[CheckResult]:
    """Report pods that the API server refuses to create."""
    return _refused_results(cluster, "KM223")


@cluster_check(
    "KM218",
    "A DaemonSet leaves tainted nodes out",
    severity="info",
    applies="clusters whose API answers",
    cluster_needs=("unmade", "nodes"),
    current_only=True,
)
def left_out(cluster: Cluster) -> Iterator[CheckResult]:
    """KM218: nodes that a DaemonSet is meant for, whose taints it does not tolerate."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    unmade = cluster.typed(Unmade)
    missing = _missing(cluster, "unmade", unmade.daemonsets)
    if not missing and unmade.unlooked:
        missing.append(cluster.missing_answer("unmade", "timeout"))
    by_name = {view.name: view for view in views(cluster)}
    excluded = []
    for row in unmade.daemonsets or ():
        nodes = _excluded_nodes(row, by_name)
        if nodes:
            excluded.append((row, nodes))
    hits: tuple[Detection, ...] = ()
    if excluded:
        hits = (_left_out(cluster, excluded),)
    yield CheckResult(hits, tuple(missing))


def _excluded_nodes(row: DaemonSet, by_name: Mapping[str, NodeView]) -> dict[str, list[str]]:
    """Return {taint: nodes} of the taints that keep a DaemonSet away from its nodes for long."""
    nodes: dict[str, list[str]] = {}
    for name in row.nodes:
        view = by_name.get(one_line(name, 253))
        if view is None:
            continue
        for taint in taints.keeps_away(view.taints, row.tolerations)[0]:
            if taint.key not in PASSING:
                nodes.setdefault(one_line(taint, 400), []).append(view.name)
    return nodes


def _left_out(
    cluster: Cluster, excluded: list[tuple[DaemonSet, dict[str, list[str]]]]
) -> Detection:
    described = []
    for row, nodes in excluded:
        names = sorted(set(itertools.chain.from_iterable(nodes.values())))
        described.append(f"{_full_name(row)} (none on {and_others(names)})")
    subject = "1 DaemonSet has no pod on nodes whose taints it does"
    if len(excluded) > 1:
        subject = f"{len(excluded)} DaemonSets have no pod on nodes whose taints they do"
    return Detection(
        f"{subject} not tolerate: {and_others(described)}",
        tuple(_left_out_proofs(cluster, excluded[:SHOWN])),
        "if it is to run there, give its template a toleration of the taint; if the taint is to"
        " keep it away, this is as it should be",
    )


def _left_out_proofs(
    cluster: Cluster, excluded: list[tuple[DaemonSet, dict[str, list[str]]]]
) -> Iterator[EvidenceRef]:
    for row, nodes in excluded:
        for taint, names in list(nodes.items())[:SHOWN]:
            yield EvidenceRef(
                "api",
                cluster.api_host,
                object=f"DaemonSet {_full_name(row)}",
                text=(
                    f"does not tolerate {taint} of {and_others(names)}, which it is meant for"
                    " otherwise"
                ),
            )


def _full_name(row: DaemonSet) -> str:
    return f"{one_line(row.namespace, 80)}/{one_line(row.name, 253)}"


@cluster_check(
    "KM219",
    "Pods are held by scheduling gates",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("pending",),
    current_only=True,
    explained_by=causes("KM115"),
)
def gated_pods(cluster: Cluster) -> Iterator[CheckResult]:
    """KM219: pods with scheduling gates, which no scheduler takes."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    gated = cluster.typed(Pending).gated
    missing, rows = _missing(cluster, "pending", gated), []
    for row in gated or ():
        waited = ages.age(cluster, row.since)
        if waited is None:
            missing.append(cluster.missing_answer("pending", "error"))
        elif waited >= WAITED_SECONDS or row.asked:
            rows.append(row)
    hits: tuple[Detection, ...] = ()
    if rows:
        hits = (_gated_hit(cluster, rows),)
    yield CheckResult(hits, tuple(missing))


def _gated_hit(cluster: Cluster, rows: list[GatedPods]) -> Detection:
    gates = sorted(set(itertools.chain.from_iterable(map(_gates, rows))))
    severity = None
    if not any(row.asked for row in rows):
        severity = "info"
    return Detection(
        f"{waiting_pods.wait(sum(map(waiting_pods.count, rows)))} because of scheduling gates"
        f" ({and_others(gates)}): {and_others([_pods(row) for row in rows])}",
        tuple(_gate_proof(cluster, row) for row in rows[:SHOWN]),
        "the controller that set a gate takes it away once the pod may be scheduled: see whether"
        " that controller runs (kubectl get pod -o yaml names the gates)",
        severity=severity,
    )


def _gates(row: GatedPods) -> list[str]:
    return [one_line(gate, 120) for gate in row.gates]


def _gate_proof(cluster: Cluster, row: GatedPods) -> EvidenceRef:
    text = "spec.schedulingGates has " + ", ".join(_gates(row))
    return EvidenceRef("api", cluster.api_host, object=f"Pod {_pods(row)}", text=text)


@cluster_check(
    "KM220",
    "Scheduled pods are not started by their kubelet",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("pending", "nodes"),
    current_only=True,
    explained_by=causes("KM115", "KM512"),
)
def kubelets_turn(cluster: Cluster) -> Iterator[CheckResult]:
    """KM220: pods that have a node whose kubelet does not take them up."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    bound = cluster.typed(Pending).bound
    missing, hits = [*_missing(cluster, "pending", bound), *cluster.missing("nodes")], []
    by_name = {view.name: view for view in views(cluster)}
    for row in bound or ():
        waited = ages.age(cluster, row.since)
        if waited is None:
            missing.append(cluster.missing_answer("pending", "error"))
            continue
        view = by_name.get(one_line(row.node, 253))
        if not cluster.missing("nodes") and waited >= _patience(row, view):
            hits.append(_not_taken(cluster, row, view))
    yield CheckResult(tuple(hits), tuple(missing))


def _patience(row: BoundPods, view: NodeView | None) -> int:
    """Return for how many seconds a kubelet may not react.

    Nodes are listed before pods: one that is in no list may have joined in between. Where it was
    asked for by its name and is absent, the garbage collector of pods does not wait either.
    """
    if view is None:
        at_once = row.absent
    elif view.ready != "True":
        at_once = row.asked
    elif row.asked:
        return TAKEN_SECONDS
    else:
        return WAITED_SECONDS
    if at_once:
        return 0
    return TAKEN_SECONDS


def _not_taken(cluster: Cluster, row: BoundPods, view: NodeView | None) -> Detection:
    name = one_line(row.node, 253)
    proof = EvidenceRef(
        "api",
        cluster.api_host,
        object=f"Pod {_pods(row)}",
        text=f"spec.nodeName is {name}, and status.startTime is not set: no kubelet took it up",
    )
    waits = waiting_pods.wait(waiting_pods.count(row))
    if view is None:
        return Detection(
            f"{waits} for a node that does not exist in this cluster: {_pods(row)}",
            (proof,),
            "correct or remove nodeName in the workload, or join that node to the cluster. No"
            " scheduler checks a pod that has nodeName. The pod garbage collector soon deletes such"
            " pods",
            node=name,
        )
    return Detection(
        f"{waits} for the kubelet of this node, which {_kubelet_state(view)}: {_pods(row)}",
        (proof, _ready_proof(cluster, name, view)),
        "the pod has its node, and the kubelet there must start it. See the other findings of this"
        " node, then the journal of its kubelet",
        host=wording.host_name(view),
        node=name,
    )


def _kubelet_state(view: NodeView) -> str:
    """Return what the condition Ready of a node is, as a clause."""
    if view.ready == "True":
        return "is Ready but does not react"
    ready = view.condition("Ready") or Condition()
    return (
        f"is not ready (Ready is {one_line(view.ready, 20)} since"
        f" {one_line(ready.since, 40)}, {one_line(ready.reason, 80)})"
    )


def _ready_proof(cluster: Cluster, name: str, view: NodeView) -> EvidenceRef:
    text = f"Ready is {one_line(view.ready, 20)}"
    if view.leased:
        text += f", its lease was renewed at {view.leased.isoformat()}"
    return EvidenceRef("api", cluster.api_host, object=f"Node {name}", text=text)


def _refused_results(cluster: Cluster, code: str) -> Iterator[CheckResult]:
    """Yield the result for a reason for which pods cannot even be created (KM221 to KM223)."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    refused = cluster.typed(Unmade).refused
    missing, rows = _missing(cluster, "unmade", refused), []
    for row in refused or ():
        if _refusal(row) != code:
            continue
        waited, ago = ages.age(cluster, row.first), ages.age(cluster, row.last)
        if waited is None or ago is None:
            missing.append(cluster.missing_answer("unmade", "error"))
        elif waited >= WAITED_SECONDS and ago <= AGAIN_SECONDS:
            rows.append(row)
    hits: tuple[Detection, ...] = ()
    if rows:
        hits = (_unmade(cluster, code, rows),)
    yield CheckResult(hits, tuple(missing))


def _refusal(row: RefusedOwner) -> str:
    """Return the code of the fault for which the API server refused to create a pod."""
    text = row.message or ""
    if ENDS.search(text):
        return ""  # its namespace goes, and it with it
    if QUOTA.search(text):
        return "KM221"
    if ACCOUNT.search(text.replace('"', "")):
        return "KM222"
    return "KM223"


_REFUSED = {
    "KM221": (
        "a quota of the namespace refuses them",
        (
            "read the quota and its use (kubectl describe quota in that namespace). Raise the"
            " quota, delete what uses it, or set the requests and limits that it requires"
        ),
    ),
    "KM222": (
        "their service account does not exist",
        "create the service account, or correct serviceAccountName in the workload's template",
    ),
    "KM223": (
        "the API server refuses them",
        (
            "the message names what refuses the pods: a webhook that does not answer, a policy, a"
            " limit range or an invalid field. Correct that, or the workload's template"
        ),
    ),
}


def _unmade(cluster: Cluster, code: str, rows: list[RefusedOwner]) -> Detection:
    reason, advice = _REFUSED[code]
    owners = and_others([_owner(row) for row in rows])
    hit = Detection(
        f"pods cannot be created, because {reason}: {owners}",
        tuple(_refusal_proof(cluster, row) for row in rows[:SHOWN]),
        advice,
        because=_webhook(cluster, rows),
    )
    return explained(
        hit, (EVENT, "kube-apiserver"), [row.message or "" for row in rows], cluster.version
    )


def _webhook(cluster: Cluster, rows: list[RefusedOwner]) -> tuple[str, ...]:
    """Return the fault of webhooks without a server, where they refuse all of these."""
    if all(refused_pods.is_by_dead_webhook(cluster, row) for row in rows):
        return ("KM176",)
    return ()


def _owner(row: RefusedOwner) -> str:
    """Return the object that cannot create its pods, with the object that owns it."""
    owner = ""
    if row.owner:
        owner = f" of {one_line(row.owner, 300)}"
    name = f"{one_line(row.kind, 40)}/{one_line(row.name, 253)}"
    return qualified(name, one_line(row.namespace, 80)) + owner


def _refusal_proof(cluster: Cluster, row: RefusedOwner) -> EvidenceRef:
    return EvidenceRef(
        "api",
        cluster.api_host,
        object=_owner(row),
        text=(
            f"has {row.has} of {counted(row.wanted, 'pod')}; FailedCreate since"
            f" {one_line(row.first, 40)}, last {one_line(row.last, 40)}:"
            f" {ends(row.message, 300)}"
        ),
    )
