# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM120, KM121: check the dates of the certificates that components of a host use.

The dates of files decide, not messages. A kubelet's client certificate is KM507's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeGuard

from ....module_utils.shared.text import counted
from ...models import certificates as model_certificates
from ...models import installer
from ...models.api_node import and_others
from ...models.certificates import (
    API,
    COLLECTOR,
    ETCD,
    KUBELET,
    MANAGER,
    SCHEDULER,
    HostCertificates,
    Kubeconfig,
    Used,
)
from ...models.cluster import Host
from ...models.result import EvidenceRef, Missing
from ...parsers.x509_certificate import Certificate
from ..base import CheckResult, Detection, causes, node_check, not_applicable, present, unknown
from . import certificate_renewal

SOON = timedelta(days=30)
PART = 3  # a certificate of a shorter life is due in its last third
OVERDUE = 10  # and one that its kubelet renews itself, in the last tenth
ROTATED = "kubelet-server-current.pem"
SELF_SIGNED = "kubelet.crt"
SHOWN = 6
MAX_SUMMARY = 1500
NONE = "no component that uses a certificate"
APPLIES = "nodes with files of certificates, and control-plane nodes"
# What does not work when the certificate of a flag is refused, and the severity, if it is lower.
EFFECTS: dict[tuple[str, str], tuple[str, str | None]] = {
    (API, "tls-cert-file"): ("every client refuses this API server", None),
    (API, "kubelet-client-certificate"): ("logs, exec and port-forward fail", None),
    (API, "etcd-certfile"): ("etcd refuses this API server, which then ends", None),
    (API, "proxy-client-cert-file"): ("metrics and other aggregated APIs are refused", "warning"),
    (ETCD, "cert-file"): ("API servers refuse etcd and end", None),
    (ETCD, "peer-cert-file"): (
        "members refuse each other as soon as they connect again, and quorum is lost",
        None,
    ),
    (ETCD, "healthcheck-client"): ("only probes and backups use it", "warning"),
    (MANAGER, "kubeconfig"): ("the controller manager cannot lead", None),
    (SCHEDULER, "kubeconfig"): ("the scheduler cannot lead, and pods stay Pending", None),
    (MANAGER, "client-certificate"): ("the controller manager cannot lead", None),
    (SCHEDULER, "client-certificate"): ("the scheduler cannot lead, and pods stay Pending", None),
    (KUBELET, "tls-cert-file"): ("who verifies kubelets (metrics-server) is refused", "warning"),
}
IN_MEMORY = "who verifies that port (Rancher, Harvester, a scraper of metrics) is refused"
UNKNOWN_EFFECT = ("", "warning")
Finder = Callable[[Host, Mapping[str, Any], HostCertificates, datetime], Detection | None]


def judged(host: Host, document: Mapping[str, Any], find: Finder) -> CheckResult:
    """Return the result of a check of the certificates of a host."""
    missing = host.missing(COLLECTOR)
    if missing:
        return unknown(*missing, host=host.host)
    if host.statuses.get(COLLECTOR) == "absent":
        return not_applicable(NONE, host=host.host)
    certificates = model_certificates.extract(document)
    if certificates.now is None:
        return unknown(Missing(host.host, COLLECTOR, "error"), host=host.host)
    hit = find(host, document, certificates, certificates.now)
    if hit is not None:
        return present(hit, host=host.host)
    if certificates.unread:
        _component, _flag, path, error = certificates.unread[0]
        status = "error"
        if error == "denied":
            status = "denied"
        missing = (Missing(host.host, COLLECTOR, status),)
        return unknown(*missing, host=host.host, note=f"{path}: {error}")
    return CheckResult(host=host.host)


@node_check(
    "KM120",
    "Certificate of a component has expired",
    severity="critical",
    applies=APPLIES,
    risk=3,
    needs=(COLLECTOR,),
    explained_by=causes("KM526"),
    same_node=True,
)
def expired(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM120: report certificates of components that have expired, or are not valid yet."""
    yield judged(host, document, _expired)


@node_check(
    "KM121",
    "Certificate of a component expires within 30 days",
    severity="warning",
    applies=APPLIES,
    risk=3,
    needs=(COLLECTOR,),
    explained_by=causes("KM526"),
    same_node=True,
)
def expiring(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM121: report certificates of components that expire soon."""
    yield judged(host, document, _expiring)


def ended(certificate: Certificate, now: datetime) -> str:
    """Return the clause that a certificate is not valid, or ""."""
    if certificate.ends <= now:
        return f"expired at {certificate.ends:%Y-%m-%d %H:%M:%S} UTC"
    if certificate.begins > now:
        return f"not valid before {certificate.begins:%Y-%m-%d %H:%M:%S} UTC"
    return ""


def _expired(
    host: Host, document: Mapping[str, Any], certificates: HostCertificates, now: datetime
) -> Detection | None:
    uses = [use for use in certificates.files if ended(use.leaf, now) and not _is_self_signed(use)]
    if not uses:
        return _expired_in_memory(host, document, certificates, now)
    severe = [use for use in uses if effect_of(use)[1] is None]
    severity = "critical"
    if not severe:
        severity = "warning"
    effects = dict.fromkeys(effect_of(use)[0] for use in severe or uses)
    return hit(
        host,
        f"{counted(len(uses), 'certificate is', 'certificates are')} not valid:"
        f" {_by_date(uses, now)}:"
        f" {listed(list(filter(None, effects)))}",
        uses,
        remedy(host, document, certificates, uses),
        severity,
    )


def _expired_in_memory(
    host: Host, document: Mapping[str, Any], certificates: HostCertificates, now: datetime
) -> Detection | None:
    """Return the hit of certificates that components made for themselves when they started.

    They end a year later, and no component makes another one while it runs.
    """
    named = {(use.component, use.flag) for use in certificates.files}
    named.update((component, flag) for component, flag, *_rest in certificates.unread)
    uses = [
        use
        for use in certificates.served
        if use.component in (MANAGER, SCHEDULER)
        and (use.component, use.flag) not in named
        and ended(use.leaf, now)
    ]
    if not uses:
        return None
    severity, names = "info", and_others([use.component for use in uses])
    if installer.owner_of(document) in certificate_renewal.RANCHER:
        severity = "warning"  # Rancher and Harvester verify them, and wait
    return hit(
        host,
        f"the serving certificate that {names} made at its start is not valid:"
        f" {_by_date(uses, now)}: {IN_MEMORY}",
        uses,
        f"{certificate_renewal.restart(uses)}. A component makes another one at its start",
        severity,
    )


def _by_date(uses: list[Used], now: datetime) -> str:
    """Return the paths of certificates, those that ended together with one date."""
    places: dict[str, list[str]] = {}
    for use in uses:
        places.setdefault(ended(use.leaf, now), []).append(use.place)
    return listed([f"{', '.join(paths)} {clause}" for clause, paths in places.items()])


def _is_self_signed(use: Used) -> bool:
    """Tell whether a kubelet signed its serving certificate itself, which no client verifies."""
    return use.component == KUBELET and use.place.endswith(SELF_SIGNED)


def effect_of(use: Used) -> tuple[str, str | None]:
    """Return what does not work without a certificate, and how severe that is."""
    return EFFECTS.get((use.component, use.flag), UNKNOWN_EFFECT)


def remedy(
    host: Host, document: Mapping[str, Any], certificates: HostCertificates, uses: list[Used]
) -> str:
    """Return how certificates are renewed; a clock that is wrong comes first."""
    renewal = certificate_renewal.advice(host, document, certificates, uses)
    doubts = [doubt for doubt in (certificates.doubt(use.leaf) for use in uses) if doubt]
    if doubts:
        return (
            f"{doubts[0]}: set the clock first (timedatectl, chronyc tracking), and audit"
            f" again, before anything is renewed; if they are over then: {renewal}"
        )
    return renewal


def _expiring(
    host: Host, document: Mapping[str, Any], certificates: HostCertificates, now: datetime
) -> Detection | None:
    if installer.owner_of(document) == "OpenShift":
        return None  # its operators renew each of them in time
    candidates = [use for use in certificates.files if not _is_self_signed(use)]
    candidates += filter(is_of_installer, map(of_kubeconfig, certificates.kubeconfigs))
    uses = [use for use in candidates if is_due(use, now)]
    if not uses:
        return None
    clauses = [f"{use.place} {use.leaf.ends:%Y-%m-%d}" for use in uses]
    first = min(use.leaf.ends for use in uses)
    return hit(
        host,
        f"{counted(len(uses), 'certificate ends', 'certificates end')} within 30 days, the first"
        f" one in {_span(first - now)}:"
        f" {listed(clauses)}",
        uses,
        remedy(host, document, certificates, uses),
    )


def is_of_installer(use: Used | None) -> TypeGuard[Used]:
    """Tell whether a kubeconfig has a certificate, and is no copy of a person."""
    return use is not None and (bool(use.component) or use.place.startswith("/etc/"))


def is_due(use: Used, now: datetime) -> bool:
    """Tell whether a certificate that is valid should be renewed by now."""
    remaining, life = use.leaf.ends - now, use.leaf.ends - use.leaf.begins
    if remaining <= timedelta(0):
        return False
    if use.place.endswith(ROTATED):
        return remaining * OVERDUE < life
    return remaining <= SOON and remaining * PART < life


def of_kubeconfig(row: Kubeconfig) -> Used | None:
    """Return the client certificate of a kubeconfig, if it has one."""
    if not row.client:
        return None
    return Used(row.component, "kubeconfig", row.path, row.client, mtime=row.mtime)


def hit(
    host: Host, summary: str, uses: list[Used], advice: str, severity: str | None = None
) -> Detection:
    """Return what is reported of certificates of a host."""
    return Detection(
        summary[:MAX_SUMMARY],
        tuple(_proof(host, use) for use in uses),
        advice,
        host=host.host,
        node=host.node,
        severity=severity,
    )


def _proof(host: Host, use: Used) -> EvidenceRef:
    leaf = use.leaf
    text = (
        f"subject {leaf.subject}, issuer {leaf.issuer}, serial {leaf.serial:x}, valid from"
        f" {leaf.begins:%Y-%m-%dT%H:%M:%SZ} to {leaf.ends:%Y-%m-%dT%H:%M:%SZ}"
    )
    if not use.place.startswith("/"):
        return EvidenceRef("http", host.host, object=use.place, text=text)
    return EvidenceRef("file", host.host, path=use.place, text=text)


def listed(clauses: list[str]) -> str:
    """Return the first clauses of a list, and how many more there are."""
    rest = len(clauses) - SHOWN
    if rest > 0:
        return "; ".join(clauses[:SHOWN]) + f"; and {rest} more"
    return "; ".join(clauses)


def _span(remaining: timedelta) -> str:
    hours = int(remaining.total_seconds()) // 3600
    if hours >= 48:
        return f"{hours // 24} days"
    return f"{hours} h"
