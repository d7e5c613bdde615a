# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The certificates that the components of a host use, read from its evidence. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ..evidence import contract, memoize
from ..evidence.answers.node import certificates as answers
from ..evidence.document import one_line
from ..parsers import x509_certificate
from ..parsers.x509_certificate import Certificate
from .moments import moment, timestamp

COLLECTOR = "certificates"
API, MANAGER, SCHEDULER = "kube-apiserver", "kube-controller-manager", "kube-scheduler"
ETCD, KUBELET = "etcd", "kubelet"
AUTHORITY_FLAGS = frozenset(
    (
        "client-ca-file",
        "cluster-signing-cert-file",
        "etcd-cafile",
        "kubelet-certificate-authority",
        "peer-trusted-ca-file",
        "requestheader-client-ca-file",
        "root-ca-file",
        "server-ca",
        "trusted-ca-file",
    )
)
# The flag of the key that belongs to the certificate of a flag.
KEY_FLAGS = {
    "cert-file": "key-file",
    "cluster-signing-cert-file": "cluster-signing-key-file",
    "etcd-certfile": "etcd-keyfile",
    "kubelet-client-certificate": "kubelet-client-key",
    "peer-cert-file": "peer-key-file",
    "proxy-client-cert-file": "proxy-client-key-file",
    "tls-cert-file": "tls-private-key-file",
}


@dataclass(frozen=True)
class Used:
    """The certificates that a component has from one place: a file, a kubeconfig or a port.

    chain: the certificates there, the component's own first. key_beside: whether the key of an
    authority is there too.
    """

    component: str
    flag: str
    place: str
    chain: tuple[Certificate, ...]
    pid: int | None = None
    mtime: float | None = None
    key_beside: bool = False

    @property
    def leaf(self) -> Certificate:
        """Return the component's own certificate."""
        return self.chain[0]


@dataclass(frozen=True)
class Kubeconfig:
    """The certificates of a kubeconfig; component is empty for one of administrators.

    host_client: what the host has where a process has another file
    """

    component: str
    path: str
    server: str
    client: tuple[Certificate, ...]
    authority: tuple[Certificate, ...]
    digests: tuple[str, ...]
    is_embedded: bool
    users: int
    mtime: float | None
    host_client: tuple[Certificate, ...] = ()


@dataclass(frozen=True)
class HostCertificates:
    """What the collector knows of a host's certificates.

    unread: (component, flag, path, error) of what could not be read. now: the host's clock, and
    ahead: by how much it differs from the controller's, as far as that is known.
    """

    files: tuple[Used, ...] = ()
    authorities: tuple[Used, ...] = ()
    served: tuple[Used, ...] = ()
    kubeconfigs: tuple[Kubeconfig, ...] = ()
    keys: tuple[answers.KeyUse, ...] = ()
    unread: tuple[tuple[str, str, str, str], ...] = ()
    now: datetime | None = None
    ahead: timedelta = field(default=timedelta(0))

    def file(self, component: str, flag: str) -> Used | None:
        """Return the certificate that a flag of a component names."""
        return next(
            (use for use in self.files if (use.component, use.flag) == (component, flag)), None
        )

    def trusted(self, component: str, flag: str) -> tuple[Certificate, ...]:
        """Return the authorities that a flag of a component names."""
        chains = [
            use.chain for use in self.authorities if (use.component, use.flag) == (component, flag)
        ]
        return tuple(certificate for chain in chains for certificate in chain)

    def authority(self, component: str, flag: str) -> Used | None:
        """Return the first file of authorities that a flag of a component names."""
        uses = (use for use in self.authorities if (use.component, use.flag) == (component, flag))
        return next(uses, None)

    def key(self, component: str, flag: str) -> answers.KeyUse | None:
        """Return the key that a flag of a component names, if its public part is known."""
        return next(
            (
                key
                for key in self.keys
                if (key.component, key.flag) == (component, flag) and key.digests
            ),
            None,
        )

    @property
    def is_control_plane(self) -> bool:
        """Tell whether components of the control plane use certificates here."""
        return any(use.component != KUBELET for use in self.files)

    def doubt(self, certificate: Certificate) -> str:
        """Return the clause that the host's clock, not the certificate, is what is wrong, or ""."""
        if self.now is None or _is_valid(certificate, self.now):
            return ""
        if not _is_valid(certificate, self.now - self.ahead):
            return ""
        minutes = round(abs(self.ahead).total_seconds() / 60)
        direction = "behind"
        if self.ahead > timedelta(0):
            direction = "ahead of"
        return f"the clock of this host is {minutes} min {direction} the controller's"


@dataclass(frozen=True)
class KubeletServing:
    """What the port of a kubelet shows, or else its file has; error: why it shows nothing.

    is_judged: whether the host itself has the authority that is to have signed it (KM124).
    """

    chain: tuple[Certificate, ...] = ()
    place: str = ""
    error: str = ""
    is_judged: bool = False


def kubelet_serving(document: Mapping[str, Any]) -> KubeletServing | None:
    """Return the serving certificate of a host's kubelet, None where nothing is known of it."""
    certificates = extract(document)
    is_judged = certificates.authority(KUBELET, "server-ca") is not None
    use = next((row for row in certificates.served if row.component == KUBELET), None)
    if use is not None:
        return KubeletServing(use.chain, use.place, is_judged=is_judged)
    for row in contract.answer(document, answers.Certificates).served:
        if row.component == KUBELET and row.error:
            place = one_line(f"{row.address}:{row.port}", 100)
            return KubeletServing((), place, one_line(row.error, 200), is_judged)
    use = certificates.file(KUBELET, "tls-cert-file")
    if use is not None:
        return KubeletServing(use.chain, use.place, is_judged=is_judged)
    return None


def _is_valid(certificate: Certificate, now: datetime) -> bool:
    return certificate.begins <= now < certificate.ends


@memoize.last
def extract(document: Mapping[str, Any]) -> HostCertificates:
    """Return the certificates of a host's evidence."""
    answer = contract.answer(document, answers.Certificates)
    files, unread = _files(answer)
    now = timestamp(str(document.get("collected_at") or ""))
    return HostCertificates(
        tuple(use for use in files if use.flag not in AUTHORITY_FLAGS),
        tuple(use for use in files if use.flag in AUTHORITY_FLAGS),
        tuple(_served(answer)),
        tuple(map(_kubeconfig, answer.kubeconfigs)),
        answer.keys,
        (*unread, *_unread_kubeconfigs(answer)),
        now,
        _ahead(document, now),
    )


def _ahead(document: Mapping[str, Any], now: datetime | None) -> timedelta:
    """Return by how much a host's clock is ahead of the controller's; 0 where not known."""
    received = document.get("received_at")
    if now is None or isinstance(received, bool) or not isinstance(received, (int, float)):
        return timedelta(0)
    arrived = moment(float(received))
    if arrived is None:
        return timedelta(0)
    return now - arrived


def _files(
    answer: answers.Certificates,
) -> tuple[list[Used], list[tuple[str, str, str, str]]]:
    chains = [x509_certificate.read(file.pem) for file in answer.files]
    used, unread = [], []
    for use in answer.uses:
        path = one_line(use.path, 300)
        if use.file is None or not 0 <= use.file < len(chains):
            continue
        file, chain = answer.files[use.file], chains[use.file]
        if chain:
            used.append(
                Used(use.component, use.flag, path, chain, use.pid, file.mtime, file.key_beside)
            )
        else:
            error = one_line(file.error or "no certificate that can be read", 100)
            unread.append((use.component, use.flag, path, error))
    return used, unread


def _unread_kubeconfigs(answer: answers.Certificates) -> list[tuple[str, str, str, str]]:
    return [
        (row.component, "kubeconfig", one_line(row.path, 300), one_line(row.error, 100))
        for row in answer.kubeconfigs
        if row.error and (row.component or row.error == "denied")
    ]


def _served(answer: answers.Certificates) -> Iterable[Used]:
    for row in answer.served:
        chain = x509_certificate.read(row.pem)
        if chain:
            place = one_line(f"{row.address}:{row.port}", 100)
            yield Used(row.component, row.flag, place, chain, row.pid)


def _kubeconfig(row: answers.KubeconfigUse) -> Kubeconfig:
    return Kubeconfig(
        row.component,
        one_line(row.path, 300),
        one_line(row.server or "", 200),
        x509_certificate.read(row.client),
        x509_certificate.read(row.authority),
        row.digests,
        row.client_path is None,
        row.users,
        row.mtime,
        x509_certificate.read(row.host_client),
    )
