# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why pods stay Pending although no scheduler has anything to say, KM218 to KM223.

It is not its turn.

Pods that are held back, that have their node already, or that are not even there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...evidence.document import one_line
from ...models import ages, taints
from ...models.api_node import SHOWN, NodeView, and_others, views
from ...models.cluster import Cluster
from ...models.result import Missing, Proof
from ...models.scheduling.excluded_nodes import PASSING
from ..base import Hit, Outcome, causes, cluster_check
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
_Row = Mapping[str, Any]


def _missing(cluster: Cluster, collector: str, lists: tuple[str, ...]) -> list[Missing]:
    """What is missing to say that nobody waits.

    The answer, a list that an older release did not collect, or its end.
    """
    found = list(cluster.missing(collector))
    if not found and any(name not in (cluster.answer(collector) or {}) for name in lists):
        found.append(Missing(cluster.api_host or "cluster API", collector, "not_asked"))
    return found or list(cluster.cut(collector))


def _since(cluster: Cluster, began: Any) -> float | None:
    return ages.age(cluster, began)


def _nowhere() -> Outcome:
    return Outcome(applies=False, note="no Kubernetes found on these hosts")


def _broken(cluster: Cluster, collector: str) -> Missing:
    return Missing(cluster.api_host or "cluster API", collector, "error")


def _pods(row: _Row) -> str:
    names = [one_line(name, 320) for name in row.get("names") or ()]
    more = _count(row) - len(names)
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _count(row: _Row) -> int:
    pods = row.get("pods")
    return pods if isinstance(pods, int) and not isinstance(pods, bool) else 1


def _who(count: int) -> str:
    return f"{count} pod{' waits' if count == 1 else 's wait'}"


@cluster_check(
    "KM218",
    "A DaemonSet leaves tainted nodes out",
    severity="info",
    applies="clusters whose API answers",
    cluster_needs=("unmade", "nodes"),
    current_only=True,
)
def left_out(cluster: Cluster) -> Iterator[Outcome]:
    """KM218: nodes that a DaemonSet is meant for, whose taints it does not tolerate."""
    if cluster.key is None:
        yield _nowhere()
        return
    missing, by_name, found = (
        _missing(cluster, "unmade", ("daemonsets",)),
        {view.name: view for view in views(cluster)},
        [],
    )
    if not missing and (cluster.answer("unmade") or {}).get("unlooked"):
        missing.append(Missing(cluster.api_host or "cluster API", "unmade", "timeout"))
    for row in cluster.rows("unmade", "daemonsets"):
        kept: dict[str, list[str]] = {}
        for name in row.get("nodes") or ():
            view = by_name.get(one_line(name, 253))
            for taint in (
                taints.keeps_away(list(view.taints), row.get("tolerations"))[0] if view else ()
            ):
                if taint.key not in PASSING:
                    kept.setdefault(one_line(taint, 400), []).append(view.name if view else "?")
        if kept:
            found.append((row, kept))
    yield Outcome((_left_out(cluster, found),) if found else (), tuple(missing))


def _left_out(cluster: Cluster, found: list[tuple[_Row, dict[str, list[str]]]]) -> Hit:
    told = [
        f"{one_line(row.get('namespace'), 80)}/{one_line(row.get('name'), 253)} "
        f"(none on {and_others(sorted({name for names in kept.values() for name in names}))})"
        for row, kept in found
    ]
    proofs = [
        Proof(
            "api",
            cluster.api_host,
            object=(
                f"DaemonSet {one_line(row.get('namespace'), 80)}/{one_line(row.get('name'), 253)}"
            ),
            text=(
                f"does not tolerate {taint} of {and_others(names)}, which it is meant for otherwise"
            ),
        )
        for row, kept in found[:SHOWN]
        for taint, names in list(kept.items())[:SHOWN]
    ]
    return Hit(
        f"{len(found)} DaemonSet{'' if len(found) == 1 else 's'}"
        f" {'has' if len(found) == 1 else 'have'} no pod on nodes whose taints"
        f" {'it does' if len(found) == 1 else 'they do'} not tolerate: {and_others(told)}",
        tuple(proofs),
        "if it is to run there, give its template a toleration of the taint; if the taint is to"
        " keep it away, this is as it should be",
    )


@cluster_check(
    "KM219",
    "Pods are held by scheduling gates",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("pending",),
    current_only=True,
    explained_by=causes("KM115"),
)
def held(cluster: Cluster) -> Iterator[Outcome]:
    """KM219: pods with scheduling gates, which no scheduler looks at."""
    if cluster.key is None:
        yield _nowhere()
        return
    missing, rows = _missing(cluster, "pending", ("gated",)), []
    for row in cluster.rows("pending", "gated"):
        waited = _since(cluster, row.get("since"))
        if waited is None:
            missing.append(_broken(cluster, "pending"))
        elif waited >= WAITED_SECONDS or row.get("asked"):
            rows.append(row)
    gates = sorted({one_line(gate, 120) for row in rows for gate in row.get("gates") or ()})
    proofs = tuple(
        Proof(
            "api",
            cluster.api_host,
            object=f"Pod {_pods(row)}",
            text="spec.schedulingGates has "
            + ", ".join(one_line(gate, 120) for gate in row.get("gates") or ()),
        )
        for row in rows[:SHOWN]
    )
    yield Outcome(
        (
            (
                Hit(
                    f"{_who(sum(map(_count, rows)))} because of scheduling gates"
                    f" ({and_others(gates)}): {and_others([_pods(row) for row in rows])}",
                    proofs,
                    "whoever set a gate takes it away once the pod may be scheduled: see whether"
                    " that controller runs (kubectl get pod -o yaml names the gates)",
                    severity=None if any(row.get("asked") for row in rows) else "info",
                ),
            )
            if rows
            else ()
        ),
        tuple(missing),
    )


@cluster_check(
    "KM220",
    "Pods have a node whose kubelet does not take them up",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("pending", "nodes"),
    current_only=True,
    explained_by=causes("KM115", "KM512"),
)
def kubelets_turn(cluster: Cluster) -> Iterator[Outcome]:
    """KM220: pods that have a node whose kubelet does not take them up."""
    if cluster.key is None:
        yield _nowhere()
        return
    missing, hits = [*_missing(cluster, "pending", ("bound",)), *cluster.missing("nodes")], []
    by_name = {view.name: view for view in views(cluster)}
    for row in cluster.rows("pending", "bound"):
        waited, view = (
            _since(cluster, row.get("since")),
            by_name.get(one_line(row.get("node"), 253)),
        )
        if cluster.missing("nodes") or waited is None:
            missing += [_broken(cluster, "pending")] if waited is None else []
            continue
        if waited >= _patience(row, view):
            hits.append(_not_taken(cluster, row, view))
    yield Outcome(tuple(hits), tuple(missing))


def _patience(row: _Row, view: NodeView | None) -> int:
    """For how many seconds a kubelet may say nothing. Nodes are listed before pods.

    One that is in no list may have joined in between.

    Where it was asked for by its name and is not there, nobody waits: the garbage collector of pods
    does not either.
    """
    if view is None:
        return 0 if row.get("absent") else TAKEN_SECONDS
    if view.ready != "True":
        return 0 if row.get("asked") else TAKEN_SECONDS
    return TAKEN_SECONDS if row.get("asked") else WAITED_SECONDS


def _not_taken(cluster: Cluster, row: _Row, view: NodeView | None) -> Hit:
    name = one_line(row.get("node"), 253)
    proof = Proof(
        "api",
        cluster.api_host,
        object=f"Pod {_pods(row)}",
        text=f"spec.nodeName is {name}, and status.startTime is not set: no kubelet took it up",
    )
    if view is None:
        return Hit(
            f"{_who(_count(row))} for the kubelet of {name}, which is no node of this cluster:"
            f" {_pods(row)}",
            (proof,),
            "no scheduler looks at a pod that names its node: correct nodeName in the workload, or"
            " leave it to the scheduler; or let that node join. Such pods are soon removed by the"
            " pod garbage collector",
            node=name,
        )
    ready = view.condition("Ready") or {}
    why = (
        f"is not ready (Ready is {one_line(view.ready, 20)} since"
        f" {one_line(ready.get('since'), 40)}, {one_line(ready.get('reason'), 80)})"
        if view.ready != "True"
        else "is Ready, but does not take it up"
    )
    leased = f", its lease was renewed at {view.leased.isoformat()}" if view.leased else ""
    return Hit(
        f"{_who(_count(row))} for the kubelet of {name}, which {why}: {_pods(row)}",
        (
            proof,
            Proof(
                "api",
                cluster.api_host,
                object=f"Node {name}",
                text=f"Ready is {one_line(view.ready, 20)}{leased}",
            ),
        ),
        "it is the kubelet's turn, not the scheduler's: what is found of that node says why it is"
        " silent, its journal says the rest",
        host=view.host.host if view.host else None,
        node=name,
    )


def unmade(code: str) -> Callable[[Cluster], Iterator[Outcome]]:
    """The predicate of a reason for which pods cannot even be made (KM221 to KM223)."""

    def predicate(cluster: Cluster) -> Iterator[Outcome]:
        if cluster.key is None:
            yield _nowhere()
            return
        missing, rows = _missing(cluster, "unmade", ("refused",)), []
        for row in cluster.rows("unmade", "refused"):
            if _refusal(row) != code:
                continue
            waited, ago = _since(cluster, row.get("first")), _since(cluster, row.get("last"))
            if waited is None or ago is None:
                missing.append(_broken(cluster, "unmade"))
            elif waited >= WAITED_SECONDS and ago <= AGAIN_SECONDS:
                rows.append(row)
        yield Outcome((_unmade(cluster, code, rows),) if rows else (), tuple(missing))

    return predicate


def _refusal(row: _Row) -> str:
    text = str(row.get("message") or "")
    if ENDS.search(text):
        return ""  # its namespace goes, and it with it
    return (
        "KM221"
        if QUOTA.search(text)
        else "KM222"
        if ACCOUNT.search(text.replace('"', ""))
        else "KM223"
    )


_REFUSED = {
    "KM221": (
        "a quota is used up",
        (
            "raise the quota, remove what uses it, or set the requests and limits that it asks for"
            " (kubectl describe quota in that namespace)"
        ),
    ),
    "KM222": (
        "their service account does not exist",
        "make the service account, or correct serviceAccountName in the workload's template",
    ),
    "KM223": (
        "the API server refuses them",
        (
            "the words of the refusal name what refuses: a webhook that is down, a policy, a limit"
            " range, a field that is wrong; mend that, or the workload's template"
        ),
    ),
}


def _unmade(cluster: Cluster, code: str, rows: list[_Row]) -> Hit:
    def called(row: _Row) -> str:
        owner = f" of {one_line(row.get('owner'), 300)}" if row.get("owner") else ""
        return (
            f"{one_line(row.get('kind'), 40)}/{one_line(row.get('name'), 253)}{owner} (namespace"
            f" {one_line(row.get('namespace'), 80)})"
        )

    why, advice = _REFUSED[code]
    proofs = tuple(
        Proof(
            "api",
            cluster.api_host,
            object=called(row),
            text=(
                f"has {row.get('has')} of {row.get('wanted')} pods; FailedCreate since"
                f" {one_line(row.get('first'), 40)}, last {one_line(row.get('last'), 40)}:"
                f" {one_line(row.get('message'), 300)}"
            ),
        )
        for row in rows[:SHOWN]
    )
    return Hit(
        f"pods are not even made, because {why}: {and_others([called(row) for row in rows])}",
        proofs,
        advice,
    )


@cluster_check(
    "KM221",
    "Pods are not made because of a quota",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("unmade",),
    current_only=True,
    explained_by=causes("KM115"),
)
def quota_exhausted(cluster: Cluster) -> Iterator[Outcome]:
    """Report pods that a resource quota keeps from being created."""
    return unmade("KM221")(cluster)


@cluster_check(
    "KM222",
    "Pods are not made because of their service account",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("unmade",),
    current_only=True,
    explained_by=causes("KM115"),
)
def no_service_account(cluster: Cluster) -> Iterator[Outcome]:
    """Report pods whose service account does not exist."""
    return unmade("KM222")(cluster)


@cluster_check(
    "KM223",
    "Pods are not made because the API server refuses them",
    severity="warning",
    applies="clusters whose API answers",
    cluster_needs=("unmade",),
    current_only=True,
    explained_by=causes("KM115"),
)
def creation_refused(cluster: Cluster) -> Iterator[Outcome]:
    """Report pods that the API server refuses to create."""
    return unmade("KM223")(cluster)
