# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM126: check kubeconfigs of components and administrators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from ...models.certificates import API, COLLECTOR, HostCertificates, Kubeconfig, Used
from ...models.cluster import Host
from ...parsers import x509_certificate
from ..base import CheckResult, Detection, causes, node_check
from .certificates import EFFECTS, ended, hit, judged, listed, remedy

OF_ADMINISTRATORS = ""
SYSTEM = "/etc/"  # where components and installers have theirs; elsewhere are people's copies


@node_check(
    "KM126",
    "Kubeconfig has an expired certificate or another authority",
    severity="warning",
    applies="control-plane nodes with kubeconfigs of components or administrators",
    risk=2,
    needs=(COLLECTOR,),
    explained_by=causes("KM526"),
    same_node=True,
)
def refused(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM126: report kubeconfigs that the API server refuses, or that do not trust it."""
    yield judged(host, document, _refused)


def _refused(
    host: Host, document: Mapping[str, Any], certificates: HostCertificates, now: datetime
) -> Detection | None:
    refusals = {
        row: refusal
        for row in certificates.kubeconfigs
        if (refusal := _refusal(row, certificates, now))
    }
    if not refusals:
        return None
    uses = [
        Used(row.component, "kubeconfig", row.path, row.client or row.authority) for row in refusals
    ]
    clauses = [f"{row.path} {refusal}" for row, refusal in refusals.items()]
    return hit(
        host,
        f"{listed(clauses)}: {'; '.join(_effects(uses))}",
        uses,
        _remedy(host, document, certificates, uses),
        _severity(uses),
    )


def _effects(uses: list[Used]) -> list[str]:
    components = sorted({use.component for use in uses})
    effects = [EFFECTS[component, "kubeconfig"][0] for component in components if component]
    if OF_ADMINISTRATORS in components:
        effects.append("kubectl with such a file is refused")
    return effects


def _severity(uses: list[Used]) -> str:
    if any(use.component for use in uses):
        return "critical"
    if any(_is_system(use.component, use.place) for use in uses):
        return "warning"
    return "info"


def _remedy(
    host: Host, document: Mapping[str, Any], certificates: HostCertificates, uses: list[Used]
) -> str:
    copies = [use.place for use in uses if not _is_system(use.component, use.place)]
    system = [use for use in uses if _is_system(use.component, use.place)]
    parts = []
    if system:
        parts.append(remedy(host, document, certificates, system))
    if copies:
        paths = ", ".join(copies)
        parts.append(f"replace {paths} by a copy of a kubeconfig of administrators that is valid")
    return "; ".join(parts)


def _refusal(row: Kubeconfig, certificates: HostCertificates, now: datetime) -> str:
    """Return why a kubeconfig of this cluster does not work, or ""."""
    if not _is_of_cluster(row, certificates):
        return ""
    if row.client:
        clause = ended(row.client[0], now)
        if clause:
            return f"has a client certificate that is {clause}".replace("is expired", "expired")
    return _foreign_client(row, certificates) or _foreign_authority(row, certificates)


def _foreign_client(row: Kubeconfig, certificates: HostCertificates) -> str:
    trusted = certificates.trusted(API, "client-ca-file")
    if not row.client or not trusted:
        return ""
    if x509_certificate.is_signed(row.client, trusted) is not False:
        return ""
    return (
        f"has a client certificate that {row.client[0].issuer} signed, which the API server does"
        " not trust (--client-ca-file)"
    )


def _foreign_authority(row: Kubeconfig, certificates: HostCertificates) -> str:
    server = certificates.file(API, "tls-cert-file")
    if server is None or not row.authority:
        return ""
    # A name that the certificate lacks may lead to another program, such as a balancer.
    if not x509_certificate.covers(server.leaf, server_name(row.server)):
        return ""
    if x509_certificate.is_signed(server.chain, row.authority) is not False:
        return ""
    return f"trusts another authority than the one that signed {server.place}"


def server_name(server: str) -> str:
    """Return the host of the address of a server, without its port."""
    rest = server.rpartition("://")[2].partition("/")[0]
    if rest.startswith("["):
        return rest[1:].partition("]")[0]
    return rest.partition(":")[0]


def _is_of_cluster(row: Kubeconfig, certificates: HostCertificates) -> bool:
    """Tell whether a kubeconfig is of this cluster: a copy has one user, and a known server."""
    if _is_system(row.component, row.path):
        return True
    rows = certificates.kubeconfigs
    system = [each for each in rows if _is_system(each.component, each.path)]
    return row.users == 1 and row.server in {each.server for each in system}


def _is_system(component: str, path: str) -> bool:
    """Tell whether a kubeconfig is a component's or an installer's, and no copy of a person."""
    return bool(component) or path.startswith(SYSTEM)
