# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The space of etcd freed as steps: its alarm (KM140), its quota (KM141), empty pages (KM143).

One member after another, the leader last. Where etcd refuses every write, its history is dropped
first, and its alarm is taken back last; where it serves, members are only defragmented.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ....module_utils.shared import etcd_releases
from ....module_utils.shared.consent import ETCD_DEFRAGMENT as WORD
from ....module_utils.shared.consent import SINGLE_CONTROL_PLANE
from ....module_utils.shared.step_kinds import (
    ETCD_ALARM,
    ETCD_COMPACT,
    ETCD_DEFRAGMENT,
    ETCD_SNAPSHOT,
    kind_of,
)
from ....module_utils.shared.text import counted
from ...evidence import contract
from ...evidence.answers.node.etcd import MemberStatus, Metrics
from ...evidence.answers.node.kubelet import Kubelet
from ...evidence.document import one_line
from ...faults.control_plane import etcd_commands, etcd_space
from ...models import certificates as model_certificates
from ...models import etcd_members, etcd_sizes, installer, writes
from ...models.api_node import and_others
from ...models.certificates import Used
from ...models.cluster import Cluster, Host
from ...models.etcd_members import DOWN, MemberView
from ...models.etcd_sizes import MEBIBYTE, Size
from ...models.natural_order import natural
from .. import fencing
from ..plan import Remedy, RemedyContext, Step, all_of, label, left_out

ETCD = "etcd"
EXPIRED = "KM120"
LIVENESS = "livenessProbe"
# etcd answers these with an error while an alarm is raised.
_FAILS_BY_ALARM = re.compile(r"/health(?:$|\?(?!.{0,200}exclude=NOSPACE))")
REFUSES, SERVES = 2, 3  # the risk where etcd refuses every write, and where it serves
MEMBER_FLAGS = ("cert-file", "peer-cert-file")
CLIENT_OF_ETCD = (model_certificates.API, "etcd-certfile")
NO_WAY_BACK = (
    "a compaction cannot be undone: the history of all objects is lost, and no object. The"
    " snapshot, on {host} in /var/lib/kubemend/etcd-snapshots, holds Secrets; copy it away and"
    " remove it. A later repair removes it after 7 days"
)


@dataclass(frozen=True)
class Target:
    """One member of etcd that is changed, on its host.

    size: of its database, None where it is not known. leads: whether it is the leader.
    """

    view: MemberView
    host: Host
    size: Size | None
    leads: bool


def free(scene: RemedyContext) -> Sequence[Step]:
    """KM140: free the space of an etcd that refuses every write, and take its alarm back."""
    cluster = scene.cluster
    targets = _targets(cluster)
    if not targets:
        return [_unknown(scene, REFUSES)]
    full = [item for item in targets if _is_full(item)]
    blocked_by = all_of(_forbidden(scene, targets), *_fenced(scene, targets))
    steps = []
    if full:
        begin = full[0]
        steps = [
            _step(scene, ETCD_SNAPSHOT, begin, REFUSES, _of_snapshot(begin), alarm=True),
            _step(scene, ETCD_COMPACT, begin, REFUSES, HISTORY, alarm=True),
            *(
                _step(scene, ETCD_DEFRAGMENT, item, REFUSES, _of_member(item), alarm=True)
                for item in full
            ),
        ]
        note = NO_WAY_BACK.format(host=begin.host.host)
        steps = [replace(step, note=note) for step in steps[:2]] + steps[2:]
    steps.append(_alarm(scene, full[0] if full else targets[0], targets))
    return [
        replace(step, blocked_by=blocked_by, change={**(step.change or {}), "waits": True})
        for step in steps
    ]


def _is_full(target: Target) -> bool:
    """Tell whether a database has to be made smaller before the alarm goes, or may have to."""
    if target.size is None or not target.size.quota:
        return target.size is None
    return target.size.share >= etcd_space.NEAR


def near_quota(scene: RemedyContext) -> Sequence[Step]:
    """KM141: defragment the members near their quota, where that brings them below it."""
    rows = {
        row.host.host
        for row in etcd_sizes.sizes(scene.cluster)
        if row.quota and row.share >= etcd_space.NEAR and _helps(row, row.quota)
    }
    return _defragment(scene, rows)


def _helps(row: Size, quota: float) -> bool:
    return row.used is not None and row.used < etcd_space.NEAR * quota


def fragmented(scene: RemedyContext) -> Sequence[Step]:
    """KM143: defragment the members whose database is mostly empty pages."""
    rows = {row.host.host for row in etcd_space.wasted(etcd_sizes.sizes(scene.cluster))}
    return _defragment(scene, rows)


def _defragment(scene: RemedyContext, hosts: Iterable[str]) -> Sequence[Step]:
    """Return a snapshot and the members of these hosts, each defragmented, the leader last."""
    targets = _targets(scene.cluster)
    chosen = [item for item in targets if item.host.host in hosts]
    if not chosen:
        return []
    unwanted = None
    if WORD not in scene.consent.allow:
        unwanted = (
            "each member stands still while it is defragmented, and this etcd serves;"
            f" {fencing.lifted(scene, WORD)}, in a quiet hour"
        )
    blocked_by = all_of(_forbidden(scene, targets), *_fenced(scene, targets), unwanted)
    begin = chosen[0]
    note = (
        f"nothing can be undone, and no data is lost; the snapshot on {begin.host.host} holds"
        " Secrets"
    )
    steps = [
        replace(_step(scene, ETCD_SNAPSHOT, begin, SERVES, _of_snapshot(begin)), note=note),
        *(_step(scene, ETCD_DEFRAGMENT, item, SERVES, _of_member(item)) for item in chosen),
    ]
    return [replace(step, blocked_by=blocked_by) for step in steps]


# What the plan knows of the members; the steps look at all of them again.


def _targets(cluster: Cluster) -> list[Target]:
    """Return the members on hosts of this run, the leader last."""
    sizes = {row.host.host: row for row in etcd_sizes.sizes(cluster)}
    leader = _leader(cluster)
    targets = [
        Target(view, view.host, sizes.get(view.host.host), view.id == leader)
        for view in etcd_members.view(cluster).voters
        if view.host is not None
    ]
    return sorted(targets, key=lambda item: (item.leads, natural(item.host.host)))


def _leader(cluster: Cluster) -> str | None:
    """Return the id of the leader, as its own metrics or the members tell."""
    for host in cluster.hosts:
        metrics = etcd_members.metrics_of(host) or Metrics()
        if metrics.is_leader and metrics.member_id:
            return metrics.member_id
    statuses = [host.etcd_said.status or MemberStatus() for host in cluster.hosts]
    return next((item.leader for item in statuses if item.leader not in (None, "0")), None)


def _forbidden(scene: RemedyContext, targets: Sequence[Target]) -> str | None:
    """Return what forbids a change of any member, the first reason that there is.

    Members that expired certificates keep apart find each other again once these are renewed, which
    is done first. Each step asks all members again, and waits for those that start again.
    """
    cluster = scene.cluster
    views = etcd_members.view(cluster)
    is_parted = _is_parted(scene, targets)
    restarted = {view.id for view in views.members if _is_restarted(scene, view)}
    for refusal in (
        _foreign(scene, targets),
        _corrupt(cluster),
        None if is_parted else _without_quorum(cluster, restarted),
        *(_unfit(view, is_parted or view.id in restarted) for view in views.members),
        *(left_out(scene, item.host.host) for item in targets),
        _releases(targets),
        _alone(scene, targets),
    ):
        if refusal:
            return refusal
    return None


def _foreign(scene: RemedyContext, targets: Sequence[Target]) -> str | None:
    """Return that another tool runs this etcd, with what its user does instead."""
    for item in targets:
        owner = installer.owner_of(scene.of(item.host.host))
        layout = etcd_commands.tool_of(item.host).layout
        if layout in (etcd_commands.RKE2, etcd_commands.K3S):
            owner = layout
        if owner:
            place = etcd_commands.QUOTA_PLACES.get(owner, "the place where its user sets etcd up")
            at = etcd_commands.tool(scene.cluster)
            return (
                f"{owner} runs this etcd, and kubemend changes none of its: free the space by hand"
                f" ({etcd_commands.free_space(at)}); a higher quota is set in {place}"
            )
    return None


def _corrupt(cluster: Cluster) -> str | None:
    if writes.raised_alarm(cluster, writes.CORRUPT) is None:
        return None
    return (
        "etcd raised the alarm CORRUPT (KM142): the data of its members differ, and nothing is"
        " compacted, defragmented or disarmed before that is settled"
    )


def _is_restarted(scene: RemedyContext, view: MemberView) -> bool:
    """Tell whether a kubelet restarts a member whose liveness probe the alarm fails.

    The manifests of kubeadm ask so up to Kubernetes 1.20.
    """
    host = view.host
    if host is None or host.control_plane is None or _is_settled(host):
        return False
    if contract.answer(scene.of(host.host), Kubelet).process is None:
        return False
    uses = [use for use in host.control_plane.files if use.component == ETCD]
    urls = [dict(use.probes).get(LIVENESS, "") for use in uses]
    is_raised = writes.raised_alarm(scene.cluster, writes.NOSPACE) is not None
    return is_raised and any(map(_FAILS_BY_ALARM.search, urls))


def _is_settled(host: Host) -> bool:
    """Tell whether the member of a host runs for long enough to have found the others.

    What keeps it apart is then no restart: the network, or the member itself.
    """
    local = etcd_members.local_member(host)
    return local is not None and (local.uptime_s or 0.0) >= etcd_members.SETTLED_SECONDS


def _without_quorum(cluster: Cluster, restarted: Collection[str]) -> str | None:
    """Return that etcd has no quorum, unless only members that a kubelet restarts are missing."""
    if writes.state(cluster).cause != writes.NO_QUORUM:
        return None
    views = etcd_members.view(cluster)
    down = {view.id for view in views.voters if view.state == DOWN}
    if views.margin < 0 and down.issubset(restarted):
        return None
    return (
        "etcd has no quorum (KM146): start the members that are down first; it is never automatic"
    )


def _unfit(view: MemberView, is_returning: bool) -> str | None:
    """Return why no member is changed while this one is as it is, or None.

    is_returning: whether it is back by itself once certificates are renewed, or started again.
    """
    name = one_line(view.name, 80)
    if view.member.learner:
        return f"member {name} is a learner (KM148): promote it, or remove it, then run again"
    if not view.is_started:
        return f"member {name} never started (KM147): start it, or remove it, then run again"
    if view.state == DOWN and not is_returning:
        return (
            f"member {name} is down (KM145), and no member is changed before all answer: bring it"
            " back first"
        )
    if view.host is None or view.host.status != "ok":
        return (
            f"member {name} runs on no host that this run could ask: add its host to the"
            " inventory, or see to it first; by hand, the commands of KM140 are enough"
        )
    return None


def _releases(targets: Sequence[Target]) -> str | None:
    versions = {one_line(item.view.name, 80): _version(item.host) for item in targets}
    unsafe = [etcd_releases.unsafe(text, name) for name, text in versions.items() if text]
    reason: str | None = next(filter(None, unsafe), None)
    return reason or etcd_releases.mixed(versions.values())


def _version(host: Host) -> str | None:
    metrics = etcd_members.metrics_of(host) or Metrics()
    status = host.etcd_said.status or MemberStatus()
    return metrics.version or status.version


def _alone(scene: RemedyContext, targets: Sequence[Target]) -> str | None:
    count = len(targets)
    if count - 1 >= count // 2 + 1 or SINGLE_CONTROL_PLANE in scene.consent.allow:
        return None
    return (
        f"etcd has {counted(count, 'member')}, and no quorum while one stands still;"
        f" {fencing.lifted(scene, SINGLE_CONTROL_PLANE)}"
    )


def _fenced(scene: RemedyContext, targets: Sequence[Target]) -> list[str | None]:
    """Return what forbids changes on the hosts of the members, each reason once."""
    return [fencing.refusal(_there(scene, item.host)) for item in targets]


def _there(scene: RemedyContext, host: Host) -> RemedyContext:
    """Return the scene on the host of a member."""
    finding = replace(scene.finding, host=host.host, node=host.node)
    return replace(scene, finding=finding, document=scene.of(host.host))


# The steps.


def _step(
    scene: RemedyContext, remedy: str, target: Target, risk: int, diff: str, **change: Any
) -> Step:
    host = target.host
    return Step(
        label(host.host, remedy.replace("_", "-")),
        host.host,
        scene.finding.code,
        remedy,
        risk,
        f"{one_line(target.view.name, 80)} of etcd",
        ETCD,
        host.node,
        diff=diff,
        limit=kind_of(remedy).seconds,
        change={
            "kind": remedy,
            "member_id": target.view.id or None,
            "members": _ids(scene.cluster),
            **change,
        },
        expect={"component": ETCD},
        guard={"allow": sorted(scene.consent.allow)},
        needs=_expired(scene, host),
    )


def _ids(cluster: Cluster) -> list[str]:
    """Return the ids of all members where etcd listed them, else nothing."""
    views = etcd_members.view(cluster).members
    if all(view.listed and view.id for view in views):
        return sorted(view.id for view in views)
    return []


def _expired(scene: RemedyContext, host: Host) -> tuple[str, ...]:
    """Return the fault of a certificate of this host's etcd that has expired.

    Its step comes first: etcd accepts no client until then.
    """
    if _ended(scene, host):
        return (EXPIRED,)
    return ()


def _ended(scene: RemedyContext, host: Host) -> list[Used]:
    """Return the certificates of this host's etcd and of its client that have expired."""
    certificates = model_certificates.extract(scene.of(host.host))
    now = certificates.now
    if now is None:
        return []
    return [use for use in certificates.files if _is_of_etcd(use) and use.leaf.ends <= now]


def _is_of_etcd(use: Used) -> bool:
    return _is_of_member(use) or (use.component, use.flag) == CLIENT_OF_ETCD


def _is_of_member(use: Used) -> bool:
    return use.component == model_certificates.ETCD and use.flag in MEMBER_FLAGS


def _is_parted(scene: RemedyContext, targets: Sequence[Target]) -> bool:
    """Tell whether a member has no valid certificate for the others."""
    over = [use for item in targets for use in _ended(scene, item.host)]
    return any(map(_is_of_member, over))


HISTORY = (
    "- the history of all objects in etcd, up to the present revision (clients that watch list"
    " again)\n"
)


def _of_snapshot(target: Target) -> str:
    size = "" if target.size is None else f", {target.size.size / MEBIBYTE:.1f} MiB"
    return f"+ a snapshot of etcd on {target.host.host} that only root can read{size}\n"


def _of_member(target: Target) -> str:
    text = one_line(target.view.name, 80)
    if target.size is not None:
        text = target.size.text
    leads = "; it gives the leadership to another member before" if target.leads else ""
    return f"{text}: defragmented, and it stands still meanwhile{leads}\n"


def _alarm(scene: RemedyContext, begin: Target, targets: Sequence[Target]) -> Step:
    quotas = {
        item.view.id: int(item.size.quota or 0)
        for item in targets
        if item.view.id and item.size is not None and _quota_is_known(item)
    }
    servers = [item.host.etcd_said.api_server for item in targets]
    prefixes = [server.etcd_prefix for server in servers if server is not None]
    return _step(
        scene,
        ETCD_ALARM,
        begin,
        REFUSES,
        "- the alarm NOSPACE, once each database is below 80 % of its quota\n",
        quotas=quotas,
        prefix=next(filter(None, prefixes), "/registry"),
    )


def _quota_is_known(target: Target) -> bool:
    """Tell whether the quota of a member is known, or that it keeps none."""
    local = target.host.etcd_said.local
    return bool(target.size and target.size.quota) or (
        local is not None and local.quota_source == "flag"
    )


def _unknown(scene: RemedyContext, risk: int) -> Step:
    """Return the step that no plan can have, with the reason."""
    cluster = scene.cluster
    names = and_others([host.host for host in cluster.members], 3) or "no host"
    return Step(
        label("cluster", ETCD_SNAPSHOT.replace("_", "-")),
        cluster.api_host or "",
        scene.finding.code,
        ETCD_SNAPSHOT,
        risk,
        ETCD,
        ETCD,
        blocked_by=(
            f"no member of this etcd runs on a host that this run asked ({names}): it is an etcd"
            " elsewhere; free its space on its own hosts, with the commands of KM140"
        ),
    )


REMEDIES: dict[str, Remedy] = {"KM140": free, "KM141": near_quota, "KM143": fragmented}
