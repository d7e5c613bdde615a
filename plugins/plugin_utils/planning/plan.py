# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan, a pure function of the evidence: what `--check --diff` prints is what is done.

One step is one bounded change of one component on one host, with its own proof and its own way
back. Steps come in the order in which they are done: cluster by cluster, control-plane hosts first
and each by its name, on a master stray files first, then the controller manager (it makes the
surplus pods), then the scheduler; what lies in the API last, and behind it the probe.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...module_utils.shared import step_kinds
from ...module_utils.shared.step_kinds import (
    ETCD_ALARM,
    LOAD_CERTIFICATES,
    PROBE,
    RENEW_CERTIFICATES,
    START_FORMER,
    kind_of,
)
from ..evidence.document import UNFORESEEN, unforeseen
from ..models import natural_order, writes
from ..models.cluster import Cluster
from ..models.natural_order import natural
from ..models.result import Finding

WAIT_SECONDS = 120
# Kinds of steps that all hosts of a cluster do before any of them goes on.
TOGETHER = (START_FORMER, RENEW_CERTIFICATES)
FULL = (
    "etcd refuses every write (KM140), and what is restarted now does not get ready: free its space"
    " first, then run again"
)


@dataclass(frozen=True)
class Consent:
    """What the operator allows: kubemend_max_risk and kubemend_allow.

    wishes: optional acts that were asked for, by name.

    drain_timeout in seconds, max_unavailable in nodes: what a drain may take. cpu_manager: settings
    that kubelets are to have, by host. limits: what kernel settings and limits of logins are raised
    to, by their names, where it is not the usual. profile: hosts on which all of them are, whether
    or not they are used up.
    """

    max_risk: int = 0
    allow: frozenset[str] = frozenset()
    wishes: frozenset[str] = frozenset()
    drain_timeout: int = 900
    max_unavailable: int = 1
    cpu_manager: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    profile: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Step:
    """One planned step. change, expect and guard are for the node.

    The rest is what the report shows.

    nodes: other Nodes that it helps, because they share its node's kernel.
    needs: faults of its host, or of its cluster where it only writes to the API, that must be
    repaired before it, each by an allowed step.
    also: other faults of the same place that asked for this very step.
    """

    id: str
    host: str
    code: str
    remedy: str
    risk: int
    target: str
    component: str | None = None
    node: str | None = None
    cluster: str | None = None
    allowed: bool = False
    blocked_by: str | None = None
    diff: str = ""
    note: str = ""
    change: Mapping[str, Any] | None = None
    expect: Mapping[str, Any] | None = None
    guard: Mapping[str, Any] | None = None
    limit: int = WAIT_SECONDS
    nodes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    @property
    def codes(self) -> tuple[str, ...]:
        """Return the faults that it repairs."""
        return (self.code, *self.also)

    def shown(self) -> dict[str, Any]:
        """Return the step as report.json and the journal show it."""
        return {
            "id": self.id,
            "host": self.host,
            "code": self.code,
            "remedy": self.remedy,
            "risk": self.risk,
            "allowed": self.allowed,
            "blocked_by": self.blocked_by,
            "target": self.target,
            "diff": self.diff,
            "note": self.note,
        }


@dataclass(frozen=True)
class RemedyContext:
    """What a remedy may look at.

    finding: the finding that the steps are for
    cluster: the cluster of the finding
    document: the evidence of the finding's host; an empty mapping without a host
    of: returns the evidence of another host
    """

    finding: Finding
    cluster: Cluster
    document: Mapping[str, Any]
    consent: Consent
    of: Callable[[str], Mapping[str, Any]] = field(default=lambda _host: {})


# Several steps of one remedy are done one after the other, or none of them.
Remedy = Callable[[RemedyContext], Step | Sequence[Step] | None]


def plan(  # noqa: PLR0913, PLR0917 - the parts of one step
    findings: Iterable[Finding],
    clusters: Iterable[Cluster],
    document_of: Callable[[str], Mapping[str, Any]],
    consent: Consent,
    remedies: Mapping[str, Remedy],
    key_digits: int,
    probe: Callable[[Cluster], Step] | None = None,
) -> tuple[Step, ...]:
    """Return the steps that repair these findings, in order, each with whether it is allowed.

    document_of: the evidence of a host by its name. probe: makes the step that verifies a repaired
    cluster, where that is asked for. A fault without a remedy has no step: its finding says what to
    do.
    """
    by_key = {cluster.key[:key_digits] if cluster.key else None: cluster for cluster in clusters}
    masters = frozenset(host.host for cluster in by_key.values() for host in cluster.members)
    groups = _groups(findings, by_key, document_of, consent, remedies)
    if probe:
        keys = dict.fromkeys(group[0].cluster for _number, group in groups)
        groups += [
            (-1, _in_cluster(key, _written(by_key[key], (probe(by_key[key]),)))) for key in keys
        ]
    groups.sort(key=lambda row: (_order(row[1], masters), row[0]))
    steps: list[Step] = []
    for step, blocked_by in _rows(group for _number, group in groups):
        numbered = replace(step, id=f"{len(steps) + 1:02}-{step.id}", blocked_by=blocked_by)
        steps.append(_needed(_consented(numbered, consent), steps))
    return _proofs(steps)


def _proofs(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps, each with the proof that the others leave to it."""
    return tuple(_proven_by_leases(step, steps) for step in steps)


def _proven_by_leases(step: Step, steps: Iterable[Step]) -> Step:
    """Return the step; the end of an alarm is proven by leases if no allowed load proves them."""
    change = dict(step.change or {})
    if step.remedy != ETCD_ALARM or not change.pop("loads_follow", False):
        return step
    loads = [other for other in steps if other.remedy == LOAD_CERTIFICATES and other.allowed]
    if any(other.cluster == step.cluster for other in loads):
        return step
    return replace(step, change=change)


def _groups(
    findings: Iterable[Finding],
    by_key: Mapping[str | None, Cluster],
    document_of: Callable[[str], Mapping[str, Any]],
    consent: Consent,
    remedies: Mapping[str, Remedy],
) -> list[tuple[int, tuple[Step, ...]]]:
    """Return the steps of each finding, with the finding's place.

    Host by host, so that its file is read once, and so that what is read from it is made once:
    findings come in the order of their severity.
    """
    # The least recent of two is forgotten: the other is of the host that does the steps for it.
    document_of = functools.lru_cache(2)(document_of)
    groups: list[tuple[int, tuple[Step, ...]]] = []
    for number, finding in sorted(enumerate(findings), key=lambda row: natural(row[1].host)):
        remedy = remedies.get(finding.code)
        if remedy is None or finding.cluster not in by_key:
            continue
        cluster = by_key[finding.cluster]
        document = document_of(finding.host) if finding.host else {}
        scene = RemedyContext(finding, cluster, document, consent, document_of)
        group = _written(cluster, _group(remedy, scene))
        if group:
            groups.append((number, _in_cluster(finding.cluster, group)))
    return groups


def _in_cluster(key: str | None, group: Iterable[Step]) -> tuple[Step, ...]:
    return tuple(replace(step, cluster=key) for step in group)


def _needed(step: Step, earlier: Iterable[Step]) -> Step:
    """Return the step, blocked where no allowed repair precedes it that it needs."""
    if not step.allowed:
        return step
    if step.remedy == LOAD_CERTIFICATES and _stays_full(step.cluster, earlier):
        return replace(step, allowed=False, blocked_by=FULL)
    if step.remedy != PROBE:
        return _behind_repairs(step, earlier)
    if any(other.allowed and other.cluster == step.cluster for other in earlier):
        return step
    return replace(
        step,
        allowed=False,
        blocked_by="no repair before it is allowed: there is nothing to prove",
    )


def _stays_full(cluster: str | None, earlier: Iterable[Step]) -> bool:
    """Tell whether the plan has an end of etcd's alarm, and it is not allowed."""
    alarms = [other for other in earlier if other.remedy == ETCD_ALARM]
    return any(other.cluster == cluster and not other.allowed for other in alarms)


def _behind_repairs(step: Step, earlier: Iterable[Step]) -> Step:
    """Return the step, blocked where a fault is still there that would undo it."""
    near = [other for other in earlier if _is_near(step, other)]
    # A repair of one host is none where the same fault of another host stays.
    stopped = {other.code for other in near if not other.allowed}
    repaired = {
        other.code
        for other in near
        if other.allowed and kind_of(other.remedy).check_mode != step_kinds.NEXT_BOOT
    }
    remaining = [code for code in step.needs if code not in repaired - stopped]
    if not remaining:
        return step
    lead = "its last start ended, or the next one would,"
    if step.remedy == step_kinds.CLEAN_UP:
        lead = "these pods were rejected"
    if step.remedy in step_kinds.ETCD_KINDS:
        lead = "etcd accepts no client"
    reason = (
        f"{lead} because of {' and '.join(remaining)}, which is still there, and no"
        " step before this one repairs it: see to that first, then run again"
    )
    return replace(step, allowed=False, blocked_by=reason)


def _is_near(step: Step, other: Step) -> bool:
    """Tell whether the other step may repair what this one needs."""
    if kind_of(step.remedy).through_api:
        return other.cluster == step.cluster
    return other.host == step.host


def _group(remedy: Remedy, scene: RemedyContext) -> tuple[Step, ...]:
    """Return the steps of one finding.

    Unforeseen evidence costs this remedy, not the plan and the report of all the other hosts.
    """
    finding = scene.finding
    try:
        steps = remedy(scene)
        return (steps,) if isinstance(steps, Step) else tuple(steps or ())
    except UNFORESEEN as error:
        return (
            Step(
                label(finding.host or "cluster", finding.code),
                finding.host or "",
                finding.code,
                "none",
                finding.risk,
                finding.component or "its remedy",
                finding.component,
                finding.node,
                blocked_by=unforeseen(error),
            ),
        )


def _written(cluster: Cluster, group: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps of one finding, blocked where the cluster accepts no write that they need.

    A step that needs no write does not go alone.
    """
    reason = writes.refusal_text(cluster)
    if not reason or all(_is_local(step) for step in group):
        return group
    return tuple(replace(step, blocked_by=all_of(reason, step.blocked_by)) for step in group)


def _is_local(step: Step) -> bool:
    """Return whether it needs no write to the API.

    It restores what is down on its host, or what it raises or restores ends nothing.
    """
    if step.remedy == step_kinds.RECOVER:
        return step.component in BELOW or bool((step.expect or {}).get("local"))
    if step.remedy == step_kinds.RESET_STATE:  # of a kubelet that its state keeps down
        return bool((step.expect or {}).get("down"))
    return bool(kind_of(step.remedy).is_local(step.risk))


def _rows(groups: Iterable[Sequence[Step]]) -> list[tuple[Step, str | None]]:
    """Return their steps in order, each with what blocks its group.

    Kubelets that are down are started before any of them is drained. The certificates of all
    control-plane nodes are renewed before any of them is loaded: a member of etcd finds no quorum
    again before the certificate of another one is valid.
    """
    rows = [
        (step, next(filter(None, (other.blocked_by for other in group)), None))
        for group in _distinct(groups)
        for step in group
    ]
    together: dict[tuple[str | None, str], list[tuple[Step, str | None]]] = {}
    for row in rows:
        if row[0].remedy in TOGETHER:
            together.setdefault((row[0].cluster, row[0].remedy), []).append(row)
    ordered: list[tuple[Step, str | None]] = []
    for row in rows:
        if row[0].remedy not in TOGETHER:
            ordered.append(row)
        else:
            ordered += together.pop((row[0].cluster, row[0].remedy), [])
    return _loaded_last(ordered)


def _loaded_last(rows: Sequence[tuple[Step, str | None]]) -> list[tuple[Step, str | None]]:
    """Return the rows with each load of certificates behind the steps that free its etcd.

    A component that starts while etcd refuses every write does not get ready. The end of the alarm
    is proven without leases then: the loads prove them.
    """
    full = {step.cluster for step, _blocked_by in rows if step.remedy == ETCD_ALARM}
    loads = [row for row in rows if row[0].remedy == LOAD_CERTIFICATES and row[0].cluster in full]
    ordered = []
    for row in rows:
        step, blocked_by = row
        behind = [other for other in loads if other[0].cluster == step.cluster]
        if step.remedy == ETCD_ALARM and behind:
            change = {**(step.change or {}), "loads_follow": True}
            ordered += [(replace(step, change=change), blocked_by), *behind]
        elif row not in loads:
            ordered.append(row)
    return ordered


def _distinct(groups: Iterable[Sequence[Step]]) -> list[Sequence[Step]]:
    """Return the groups without those that have a step of an earlier one.

    Such a group is that one again, which another fault of the same place asked for. The steps that
    stay name that fault too.
    """
    distinct: list[Sequence[Step]] = []
    codes_by_change: dict[tuple[str, str, str], list[str]] = {}
    for group in groups:
        changes = {_change_key(step): step.code for step in group}
        is_new = codes_by_change.keys().isdisjoint(changes)
        if is_new:
            distinct.append(group)
        for key, code in changes.items():
            if is_new or key in codes_by_change:
                codes_by_change.setdefault(key, []).append(code)
    return [
        [replace(step, also=_others(step, codes_by_change[_change_key(step)])) for step in group]
        for group in distinct
    ]


def _change_key(step: Step) -> tuple[str, str, str]:
    return step.host, step.target, json.dumps(step.change, sort_keys=True, default=str)


def _others(step: Step, codes: Iterable[str]) -> tuple[str, ...]:
    return tuple(code for code in dict.fromkeys(codes) if code != step.code)


BELOW = frozenset(("kubelet", "containerd", "crio", "docker", "cri-docker", "cri-dockerd"))
# Optional acts that are asked for with a variable of their own.
CLEAN_UP, PATCH, PINNED = step_kinds.CLEAN_UP, "patch", "pinned"


_Order = tuple[str, int, bool, natural_order.Key, int, str]


def _order(group: Sequence[Step], masters: frozenset[str]) -> _Order:
    step = group[0]
    rank = kind_of(step.remedy).order
    # What was interrupted is ended before anything is begun: another host's step may rest on it.
    # Control-plane hosts come before workers, whose
    # way back may need an API server.
    return (
        step.cluster or "",
        max(rank, 8) if rank else 0,
        step.host not in masters,
        natural(step.host),
        rank,
        step.component or "",
    )


def label(*parts: str | None) -> str:
    """Return the name of a step, of which its id and its files on the node are made.

    Host and API may call things what they like.
    """
    return re.sub(r"[^A-Za-z0-9.-]+", "-", "-".join(filter(None, parts)))


def all_of(*reasons: str | None) -> str | None:
    """Everything that stands in a step's way, in one sentence.

    Who takes the first away should not meet the second at the next try.
    """
    return "; besides, ".join(dict.fromkeys(filter(None, reasons))) or None


def left_out(scene: RemedyContext, host: str) -> str | None:
    """Return what forbids a step on a host that this run did not ask."""
    is_asked = all(
        member.status != "not_asked" for member in scene.cluster.hosts if member.host == host
    )
    return None if is_asked else f"it is done on {host}, which --limit leaves out"


def _consented(step: Step, consent: Consent) -> Step:
    """Return allowed: nothing stands in its way and its risk is covered.

    A risk that is not covered says what would cover it.
    """
    if step.blocked_by:
        return step
    if step.risk > 3:
        return replace(step, blocked_by=f"risk {step.risk} is never automatic: do this by hand")
    if step.risk > consent.max_risk:
        return replace(step, blocked_by=f"risk {step.risk} needs -e kubemend_max_risk={step.risk}")
    return replace(step, allowed=True)


def only_risk(step: Step) -> bool:
    """Return whether nothing but the operator's consent is missing."""
    return not step.allowed and (step.blocked_by or "").startswith(f"risk {step.risk} needs")
