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
from ..base import Fault, Hit, Outcome
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


def _fault(
    code: str,
    title: str,
    explanation: str,
    remedy: str,
    cluster: Callable[[Cluster], Iterator[Outcome]],
    severity: str = "warning",
    needs: tuple[str, ...] = ("unmade",),
    because: tuple[str, ...] = (),
) -> Fault:
    return Fault(
        code=code,
        title=title,
        severity=severity,
        applies="clusters whose API answers",
        explanation=explanation,
        remedy=remedy,
        risk=0,
        cluster_needs=needs,
        cluster=cluster,
        explained_by=frozenset((one, None) for one in because),
    )


FAULTS = (
    _fault(
        "KM218",
        "A DaemonSet leaves tainted nodes out",
        "A DaemonSet makes no pod for a node whose taint it does not tolerate: nothing is Pending,"
        " and nothing says so. Only its author knows whether it is meant to be there: information."
        " A taint that was set later leaves its pods where they are. Taints of the control plane"
        " count where it has no pod at all.",
        "Give the DaemonSet a toleration, where it is to run on those nodes.",
        left_out,
        "info",
        ("unmade", "nodes"),
    ),
    _fault(
        "KM219",
        "Pods are held by scheduling gates",
        "No scheduler looks at a pod with spec.schedulingGates (1.26 and newer) before whoever set"
        " them took all of them away. Queues of batch jobs hold pods so for as long as it takes:"
        " information, but for a pod that was asked for.",
        "See to the controller that owns the gates.",
        held,
        needs=("pending",),
    ),
    _fault(
        "KM220",
        "Pods have a node whose kubelet does not take them up",
        "The pod has its node, by a scheduler or because its author named it, and its kubelet has"
        " not begun with it: that node does not exist, is not ready, or its kubelet is silent. What"
        " a kubelet has begun with (images, volumes) is not meant.",
        "Bring the kubelet back, or correct nodeName.",
        kubelets_turn,
        needs=("pending", "nodes"),
        because=("KM512",),
    ),
    _fault(
        "KM221",
        "Pods are not made because of a quota",
        "A controller cannot make the pods that it lacks, for five minutes and more: a"
        " ResourceQuota of the namespace refuses them. There is no pod that could be Pending.",
        "Raise the quota, or lower what is asked for.",
        unmade("KM221"),
    ),
    _fault(
        "KM222",
        "Pods are not made because of their service account",
        "A controller cannot make the pods that it lacks, for five minutes and more: the service"
        " account that they name does not exist.",
        "Make the service account, or correct its name.",
        unmade("KM222"),
    ),
    _fault(
        "KM223",
        "Pods are not made because the API server refuses them",
        "A controller cannot make the pods that it lacks, for five minutes and more: admission (a"
        " webhook, a policy, a limit range) refuses them, or they are not valid. What nobody"
        " refused for 20 minutes is over.",
        "Mend what refuses them, or the workload.",
        unmade("KM223"),
    ),
)
