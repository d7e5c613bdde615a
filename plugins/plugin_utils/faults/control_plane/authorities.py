# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM123: report authorities of a cluster that end within a year."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

from ....module_utils.shared.text import counted
from ...models.certificates import COLLECTOR, HostCertificates, Used
from ...models.cluster import Cluster, Host
from ...models.result import EvidenceRef
from ...parsers.x509_certificate import Certificate
from ..base import CheckResult, Detection, causes, cluster_check, without_kubernetes

YEAR = timedelta(days=365)
NEAR = timedelta(days=30)
ROTATING = "/etc/machine-config-daemon"  # OpenShift's operators replace their authorities in time
SHOWN = 6


class _Ending(NamedTuple):
    """An authority that ends, where it is, and how long it is valid still."""

    certificate: Certificate
    places: list[tuple[Host, Used]]
    remaining: timedelta


@cluster_check(
    "KM123",
    "Certificate authority ends within a year",
    severity="warning",
    applies="clusters with an audited control-plane node",
    needs=(COLLECTOR,),
    explained_by=causes("KM526"),
)
def ending(cluster: Cluster) -> Iterator[CheckResult]:
    """KM123: report authorities that have ended, or end within a year."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    rows = list(_endings(cluster))
    hits = (_hit(cluster, rows),) if rows else ()
    missing = tuple(lack for host in cluster.members for lack in host.missing(COLLECTOR))
    yield CheckResult(hits, missing)


def _endings(cluster: Cluster) -> Iterator[_Ending]:
    rows: dict[str, _Ending] = {}
    for host in cluster.hosts:
        certificates = host.certificates
        if certificates is None or certificates.now is None or ROTATING in host.installer:
            continue
        for use in certificates.authorities:
            newest = max(use.chain, key=lambda certificate: certificate.ends)
            remaining = newest.ends - certificates.now
            if remaining <= YEAR and _lives_long(newest):
                row = rows.setdefault(newest.digest, _Ending(newest, [], remaining))
                row.places.append((host, use))
    yield from sorted(rows.values(), key=lambda row: row.remaining)


def _lives_long(authority: Certificate) -> bool:
    """Tell whether an authority was made for more than two years, so that nothing renews it."""
    return authority.ends - authority.begins > 2 * YEAR


def _hit(cluster: Cluster, rows: list[_Ending]) -> Detection:
    clauses = [f"{_name(row)} {_state(row)}" for row in rows[:SHOWN]]
    severity = "critical" if rows[0].remaining <= NEAR else None
    return Detection(
        "; ".join(clauses),
        tuple(_proof(host, use, row) for row in rows for host, use in _one_each(row)),
        "plan it now, because kubeadm never renews an authority and signs certificates that outlive"
        " it: make another certificate of the same authority with the same key and name, which"
        " keeps all that it signed valid, or a new authority next to the old one (manual rotation"
        " of CA certificates in Kubernetes' documentation; k3s certificate rotate-ca with k3s and"
        " RKE2). Every control-plane node, kubelet, kubeconfig, the ConfigMaps cluster-info and"
        " kube-root-ca.crt, and each webhook have a copy",
        component="certificates",
        severity=severity,
        host=_host(cluster, rows[0]),
    )


def _host(cluster: Cluster, row: _Ending) -> str | None:
    """Return the host of an authority that one host of several alone has."""
    hosts = {host.host for host, _use in row.places}
    if len(hosts) == 1 and len(cluster.members) > 1:
        return hosts.pop()
    return None


def _name(row: _Ending) -> str:
    return f"the authority {row.certificate.subject} ({row.places[0][1].place})"


def _state(row: _Ending) -> str:
    day = f"{row.certificate.ends:%Y-%m-%d}"
    if row.remaining <= timedelta(0):
        return f"has ended at {day}: nothing that it signed is valid any more"
    return f"ends in {counted(row.remaining.days, 'day')}, at {day}"


def _one_each(row: _Ending) -> Iterator[tuple[Host, Used]]:
    """Yield one place of each host."""
    hosts: set[str] = set()
    for host, use in row.places:
        if host.host not in hosts:
            hosts.add(host.host)
            yield host, use


def _proof(host: Host, use: Used, row: _Ending) -> EvidenceRef:
    certificate = row.certificate
    text = (
        f"subject {certificate.subject}, serial {certificate.serial:x}, valid from"
        f" {certificate.begins:%Y-%m-%d} to {certificate.ends:%Y-%m-%d}"
    )
    return EvidenceRef(
        "file", host.host, path=use.place, object=f"--{use.flag} of {use.component}", text=text
    )


def control_plane(cluster: Cluster) -> Iterator[tuple[Host, HostCertificates]]:
    """Yield the control-plane nodes whose certificates are known."""
    for host in cluster.hosts:
        if host.certificates is not None:
            yield host, host.certificates
