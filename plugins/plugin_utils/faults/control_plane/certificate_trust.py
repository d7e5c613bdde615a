# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM122, KM124: check that components loaded their certificates, and that peers trust them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ...evidence import contract
from ...evidence.answers.node.instances import ComponentProcess, Instances
from ...models.certificates import (
    API,
    COLLECTOR,
    ETCD,
    KEY_FLAGS,
    KUBELET,
    MANAGER,
    HostCertificates,
    Kubeconfig,
    Used,
)
from ...models.cluster import Host
from ...parsers import x509_certificate
from ..base import CheckResult, Detection, node_check
from . import certificate_renewal
from .certificates import APPLIES, ended, hit, judged, listed, of_kubeconfig

RELOADED_SECONDS = 180  # within which a server loads a file that was written
# (component, flag) of a certificate, and what must trust it: (component, flag, the effect)
TRUST = (
    (API, "tls-cert-file", MANAGER, "root-ca-file", "pods refuse the API server"),
    (
        API,
        "kubelet-client-certificate",
        KUBELET,
        "client-ca-file",
        "kubelets refuse the API server",
    ),
    (API, "etcd-certfile", ETCD, "trusted-ca-file", "etcd refuses the API server"),
    (ETCD, "cert-file", API, "etcd-cafile", "the API server refuses etcd"),
    (ETCD, "peer-cert-file", ETCD, "peer-trusted-ca-file", "members of etcd refuse this one"),
    (
        API,
        "proxy-client-cert-file",
        API,
        "requestheader-client-ca-file",
        "aggregated APIs refuse the API server",
    ),
    (
        KUBELET,
        "tls-cert-file",
        KUBELET,
        "server-ca",
        "the API server refuses the kubelet, and logs and exec fail",
    ),
)
BY_HAND = (
    "find out which of the two was changed (ls -l --full-time, openssl x509 -noout -subject -issuer"
    " -dates -in FILE): copy the authority of another control-plane node of the same cluster, or"
    " have a certificate signed by the authority in use; a key and its certificate come from the"
    " same backup. Then restart the component"
)
BY_RANCHER = (
    "k3s before 1.20.8 signs certificates of kubelets with the authority of clients: update the"
    " servers, then restart k3s or RKE2 on this node, which asks for another certificate. With"
    " other releases move the certificate and its key away before the restart"
)


@node_check(
    "KM122",
    "Component has not loaded its renewed certificate",
    severity="warning",
    applies="control-plane components and kubelets that run",
    risk=3,
    needs=(COLLECTOR, "instances"),
)
def unloaded(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM122: report a component that has another certificate than its file, which is newer."""
    yield judged(host, document, _unloaded)


@node_check(
    "KM124",
    "Certificate does not match the authority or key in use",
    severity="critical",
    applies=APPLIES,
    needs=(COLLECTOR,),
)
def mismatched(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM124: report certificates that their peers do not trust, or whose key is another one."""
    yield judged(host, document, _mismatched)


class _Stale(NamedTuple):
    """A certificate on disk that its component has not loaded, and the one that its port shows."""

    use: Used
    shown: Used | None

    @property
    def clause(self) -> str:
        if self.shown is None:
            return (
                f"{self.use.component} has not read {self.use.place}, which was written after the"
                " process started: it reads the file once"
            )
        return (
            f"{self.use.component} still shows its former certificate at {self.shown.place}, which"
            f" ends at {self.shown.leaf.ends:%Y-%m-%d}; the one in {self.use.place} ends at"
            f" {self.use.leaf.ends:%Y-%m-%d}"
        )


def stale_components(
    document: Mapping[str, Any], certificates: HostCertificates, now: datetime
) -> list[str]:
    """Return the components that have not loaded a certificate of theirs."""
    rows = [*_shown_before(certificates, now), *_read_before(document, certificates)]
    return sorted({row.use.component for row in rows})


def _unloaded(
    host: Host, document: Mapping[str, Any], certificates: HostCertificates, now: datetime
) -> Detection | None:
    rows = [*_shown_before(certificates, now), *_read_before(document, certificates)]
    if not rows:
        return None
    uses = [row.use for row in rows]
    ports = [row.shown for row in rows if row.shown is not None]
    severity = None
    if any(ended(shown.leaf, now) for shown in ports):
        severity = "critical"
    return hit(
        host,
        listed([row.clause for row in rows]),
        uses + ports,
        _restart(uses, ports),
        severity,
    )


def _restart(uses: list[Used], ports: list[Used]) -> str:
    advice = certificate_renewal.restart(uses)
    if all(use.component == KUBELET for use in uses):
        advice = "restart the kubelet"
    if ports:
        advice += (
            "; a port then shows the new one (openssl s_client -connect ADDRESS:PORT | openssl x509"
            " -noout -serial -enddate)"
        )
    return advice


def _shown_before(certificates: HostCertificates, now: datetime) -> Iterator[_Stale]:
    """Yield each port that shows another certificate than that of its file."""
    for shown in certificates.served:
        use = certificates.file(shown.component, shown.flag)
        if use is None or use.leaf.digest == shown.leaf.digest or use.mtime is None:
            continue
        if now.timestamp() - use.mtime > RELOADED_SECONDS:
            yield _Stale(use, shown)


def _read_before(document: Mapping[str, Any], certificates: HostCertificates) -> Iterator[_Stale]:
    """Yield each kubeconfig that a component read before it was written the last time."""
    processes = contract.answer(document, Instances).processes
    for row in certificates.kubeconfigs:
        use = of_kubeconfig(row)
        if use is None or not row.is_embedded:
            continue
        if any(_is_older(process, row) for process in processes):
            yield _Stale(use, None)


def _is_older(process: ComponentProcess, row: Kubeconfig) -> bool:
    """Tell whether a process started before its kubeconfig was written."""
    if process.component != row.component or process.started_at is None:
        return False
    files = [file for file in process.given or () if file.path == row.path]
    if row.host_client and row.host_client[0].digest == row.client[0].digest:
        return False  # another file of the same certificate took its place
    return any(file.replaced or (file.mtime or 0) > process.started_at + 1 for file in files)


class _Mismatch(NamedTuple):
    """A certificate that does not fit, why, and what proves it."""

    clause: str
    proofs: list[Used]
    advice: str = BY_HAND


def _mismatched(
    host: Host, _document: Mapping[str, Any], certificates: HostCertificates, _now: datetime
) -> Detection | None:
    rows = [*_untrusted(certificates), *_wrong_keys(certificates)]
    if not rows:
        return None
    return hit(
        host,
        listed([row.clause for row in rows]),
        [use for row in rows for use in row.proofs],
        "; ".join(dict.fromkeys(row.advice for row in rows)),
        _severity(rows),
    )


def _severity(rows: list[_Mismatch]) -> str | None:
    """Return a lower severity where only those who ask the kubelet are refused."""
    if all(row.advice == BY_RANCHER for row in rows):
        return "warning"
    return None


def _untrusted(certificates: HostCertificates) -> Iterator[_Mismatch]:
    for component, flag, peer, authority_flag, effect in TRUST:
        use = certificates.file(component, flag)
        authority = certificates.authority(peer, authority_flag)
        if use is None or authority is None:
            continue
        trusted = certificates.trusted(peer, authority_flag)
        if x509_certificate.is_signed(use.chain, trusted) is not False:
            continue
        title, place, advice = f"{use.place} (--{flag} of {component})", authority.place, BY_HAND
        if component == KUBELET:
            title, advice = f"the kubelet's serving certificate ({use.place})", BY_RANCHER
        else:
            place = f"{place} (--{authority_flag} of {peer})"
        yield _Mismatch(
            f"{title} is signed by {use.leaf.issuer}, which is not the authority in {place}:"
            f" {effect}",
            [use, authority],
            advice,
        )


def _wrong_keys(certificates: HostCertificates) -> Iterator[_Mismatch]:
    for use in (*certificates.files, *certificates.authorities):
        key = certificates.key(use.component, KEY_FLAGS.get(use.flag, ""))
        if key is not None and use.leaf.key not in key.digests:
            clause = f"{key.path} is not the key of {use.place}: {use.component} cannot use it"
            yield _Mismatch(clause, [use])
    for row in certificates.kubeconfigs:
        use_of_row = of_kubeconfig(row)
        if use_of_row is None or not row.digests or row.users > 1:
            continue
        if use_of_row.leaf.key not in row.digests:
            yield _Mismatch(f"the key in {row.path} is not that of its certificate", [use_of_row])
