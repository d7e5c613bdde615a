# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the space of etcd: its alarm (KM140), its quota (KM141), and what defragmenting frees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...evidence.document import one_line
from ...models import etcd_members, etcd_sizes, writes
from ...models.api_node import and_others
from ...models.cluster import Cluster
from ...models.etcd_sizes import MEBIBYTE, Size
from ...models.result import EvidenceRef, Missing
from ..base import (
    CheckResult,
    Detection,
    cluster_check,
    not_applicable,
    present,
    unknown,
    without_kubernetes,
)
from . import etcd_commands

ETCD = "etcd"
NEEDS = ("manifests", "instances", "etcd")
APPLIES = "clusters whose etcd, or an API server of it, runs on a host of the inventory"
NO_ETCD = "no etcd was found on the hosts or by their API servers"
NEAR, FULL = 0.8, 0.95  # shares of the quota
WASTED, WASTED_BYTES = 0.5, 100 * MEBIBYTE  # in use, and what defragmenting frees


def without_etcd(cluster: Cluster) -> CheckResult | None:
    """Return the result where nothing is known of an etcd, None where something is."""
    if cluster.key is None:
        return without_kubernetes(ETCD)
    if etcd_members.is_known(cluster):
        return None
    missing = etcd_members.missing(cluster)
    if missing:
        return unknown(*missing, component=ETCD)
    return not_applicable(NO_ETCD, component=ETCD)


@cluster_check(
    "KM140",
    "etcd is at its quota and refuses every write",
    severity="critical",
    applies=APPLIES,
    risk=2,
    needs=NEEDS,
    component=ETCD,
)
def no_space(cluster: Cluster) -> Iterator[CheckResult]:
    """KM140: report the alarm NOSPACE, with the steps that free space and take it back."""
    without = without_etcd(cluster)
    if without is not None:
        yield without
        return
    alarm = writes.raised_alarm(cluster, writes.NOSPACE)
    if alarm is None:
        yield _without_alarm(cluster)
        return
    at = etcd_commands.tool(cluster)
    rows = etcd_sizes.sizes(cluster)
    remedy = etcd_commands.free_space(at)
    if any(row.used is not None and row.quota and row.used > NEAR * row.quota for row in rows):
        remedy += (
            ". Most of the database is in use: compacting and defragmenting free too little."
            " Raise --quota-backend-bytes of each member first (at most 8 GiB)"
        )
    summary = f"{alarm.told}; no object can be created or changed, and no lease renewed"
    remedy = f"{remedy}. Then {etcd_commands.filling()}{etcd_commands.most_objects(cluster)}"
    yield present(
        Detection(summary, (*alarm.proofs, *_proofs(rows)), remedy, component=ETCD), component=ETCD
    )


def _without_alarm(cluster: Cluster) -> CheckResult:
    """Return that no alarm is raised, as far as a member told."""
    if writes.alarms_are_known(cluster) or _is_healthy(cluster):
        return CheckResult(component=ETCD)
    return unknown(*unasked(cluster), component=ETCD)


def _is_healthy(cluster: Cluster) -> bool:
    """Tell whether a member's /health is well: it is not while an alarm is raised."""
    bodies = [host.etcd_said.health.body or "" for host in cluster.hosts if host.etcd_said.health]
    return any('"health":"true"' in body.replace(" ", "") for body in bodies)


def unasked(cluster: Cluster) -> tuple[Missing, ...]:
    """Return that no member told what a check needs, at the hosts that asked."""
    hosts = [host for host in cluster.hosts if host.statuses.get("etcd") in ("ok", "error")]
    older = all(
        host.etcd_said.status is None and host.etcd_said.local is None for host in hosts
    ) and all(host.statuses.get("etcd") == "ok" for host in hosts)
    status = "not_asked" if older else "error"
    return tuple(Missing(host.host, ETCD, status) for host in hosts)


@cluster_check(
    "KM141",
    "etcd's database is near its quota",
    severity="warning",
    applies=APPLIES,
    risk=3,
    needs=(*NEEDS, "space"),
    component=ETCD,
)
def near_quota(cluster: Cluster) -> Iterator[CheckResult]:
    """KM141: report databases that have more than 80 % of their quota; 95 % is critical."""
    without, rows = _rows(cluster)
    if without is not None:
        yield without
        return
    if writes.raised_alarm(cluster, writes.NOSPACE) is not None:
        yield not_applicable("the alarm is raised already: KM140", component=ETCD)
        return
    near = [row for row in rows if row.share >= NEAR]
    if not near:
        yield CheckResult(component=ETCD)
        return
    at = etcd_commands.tool(cluster, [row.host for row in near])
    texts = and_others([row.text for row in near], 3)
    yield present(
        Detection(
            f"etcd's database is near its quota: {texts}. At the quota etcd refuses every write",
            _proofs(near),
            _cure(at, near) + etcd_commands.most_objects(cluster),
            component=ETCD,
            severity="critical" if any(row.share >= FULL for row in near) else None,
        ),
        component=ETCD,
    )


def _rows(cluster: Cluster) -> tuple[CheckResult | None, list[Size]]:
    """Return (the result where no size is known, the sizes of databases)."""
    rows = etcd_sizes.sizes(cluster)
    if rows and cluster.key is not None:  # also where no etcd answers
        return None, rows
    without = without_etcd(cluster)
    if without is None:
        without = unknown(*unasked(cluster), component=ETCD)
    return without, rows


def _cure(at: etcd_commands.Tool, near: Sequence[Size]) -> str:
    """Return what helps: what is not in use is freed by defragmenting."""
    if all(row.path for row in near):
        return _cure_of_stopped(near)
    if all(row.used is not None and row.used < NEAR * row.size for row in near):
        return (
            f"defragment: {at.begin}; {etcd_commands.snapshot(at)}; {etcd_commands.defragment()}."
            f" Then {etcd_commands.filling()}"
        )
    return (
        f"{at.begin}; {etcd_commands.filling()}, and delete what is not needed; then"
        f" {etcd_commands.snapshot(at)}; {etcd_commands.compact()}; {etcd_commands.defragment()}."
        " Or raise --quota-backend-bytes of one member after another (at most 8 GiB)"
    )


def _cure_of_stopped(near: Sequence[Size]) -> str:
    """Return what comes first where etcd does not run: its space is freed while it runs."""
    hosts = and_others([row.host.host for row in near], 3)
    return (
        f"etcd of {hosts} has to run first: repair what stops it (the other findings about"
        " etcd). Where only the kubelet restarts it, because its livenessProbe asks /health,"
        " which fails at the quota: on each of these hosts take livenessProbe out of"
        " /etc/kubernetes/manifests/etcd.yaml and run systemctl restart kubelet. Once etcd answers,"
        " run this audit again, and put livenessProbe back after the repair of KM140"
    )


@cluster_check(
    "KM143",
    "etcd's database is mostly empty pages",
    severity="info",
    applies=APPLIES,
    risk=3,
    needs=NEEDS,
    component=ETCD,
)
def fragmented(cluster: Cluster) -> Iterator[CheckResult]:
    """KM143: report databases of which less than half is in use, and 100 MiB or more are free."""
    without, rows = _rows(cluster)
    if without is not None:
        yield without
        return
    if writes.raised_alarm(cluster, writes.NOSPACE) is not None:
        yield not_applicable("defragmenting is a part of KM140", component=ETCD)
        return
    empty = wasted(rows)
    if not empty:
        if all(row.used is None for row in rows):
            yield without_etcd(cluster) or unknown(*unasked(cluster), component=ETCD)
        else:
            yield CheckResult(component=ETCD)
        return
    at = etcd_commands.tool(cluster, [row.host for row in empty])
    texts = and_others([row.text for row in empty], 3)
    yield present(
        Detection(
            f"most of etcd's database holds nothing: {texts}. etcd uses these pages again, and"
            " only defragmenting gives them back to the disk",
            _proofs(empty),
            "nothing has to be done at once. In a quiet hour, as each member stands still"
            f" meanwhile: {at.begin}; {etcd_commands.snapshot(at)}; {etcd_commands.defragment()}",
            component=ETCD,
        ),
        component=ETCD,
    )


def wasted(rows: Sequence[Size]) -> list[Size]:
    """Return the databases of which more than half, and more than 100 MiB, hold nothing."""
    return [row for row in rows if row.free > WASTED_BYTES and row.free > WASTED * row.size]


def _proofs(rows: Sequence[Size]) -> tuple[EvidenceRef, ...]:
    return tuple(_proof(row) for row in rows[:3])


def _proof(row: Size) -> EvidenceRef:
    if row.path:
        path = one_line(row.path, 200)
        return EvidenceRef("file", row.host.host, path=path, text=row.text)
    return EvidenceRef("http", row.host.host, object=_source(row), text=row.text)


def _source(row: Size) -> str | None:
    """Return the address that told a size."""
    local = row.host.etcd_said.local
    if local is not None and local.metrics_url is not None:
        return local.metrics_url
    return row.host.etcd_said.endpoint
