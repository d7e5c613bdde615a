# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM127: check that control-plane nodes have the same authorities, token keys and issuers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

from ...evidence.answers.cluster.cluster_info import ClusterInfo
from ...evidence.document import one_line
from ...models.certificates import API, COLLECTOR, ETCD, MANAGER, HostCertificates
from ...models.cluster import Cluster, Host
from ...models.control_plane import ControlPlane
from ...models.result import EvidenceRef, Missing
from ...parsers import pflag, x509_certificate
from ...parsers.x509_certificate import Certificate
from ..base import CheckResult, Detection, cluster_check, without_kubernetes
from .authorities import control_plane

ISSUER = "service-account-issuer"
VERIFYING, SIGNING = "service-account-key-file", "service-account-signing-key-file"
PRIVATE, TLS_KEY = "service-account-private-key-file", "tls-private-key-file"
INFO = "ConfigMap kube-public/cluster-info"
# The authorities that all control-plane nodes share, and what fails where they do not.
SHARED = (
    (API, "client-ca-file", "a client is accepted by one API server and refused by another"),
    (MANAGER, "root-ca-file", "pods do not trust each API server"),
    (MANAGER, "cluster-signing-cert-file", "certificates that are signed now are refused"),
    (API, "etcd-cafile", "an API server does not trust each member of etcd"),
    (ETCD, "trusted-ca-file", "a member of etcd refuses API servers"),
    (ETCD, "peer-trusted-ca-file", "members of etcd refuse each other"),
    (
        API,
        "requestheader-client-ca-file",
        "metrics-server and other aggregated APIs, and webhooks, accept one API server alone",
    ),
)
SHOWN = 6


class _Difference(NamedTuple):
    """What differs, what to do, and what shows it."""

    clause: str
    advice: str
    proofs: tuple[EvidenceRef, ...]


@cluster_check(
    "KM127",
    "Authorities, token keys or issuers differ within the control plane",
    severity="critical",
    applies="clusters with an audited control-plane node",
    needs=(COLLECTOR, "instances"),
    cluster_needs=("cluster_info",),
)
def differing(cluster: Cluster) -> Iterator[CheckResult]:
    """KM127: report what control-plane nodes must share and do not, and another cluster-info."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    differences = [
        *_authorities(cluster),
        *_token_keys(cluster),
        *_issuers(cluster),
    ]
    info = list(_of_cluster_info(cluster))
    hits = []
    if differences:
        hits.append(_hit(differences, None))
    elif info:
        hits.append(_hit(info, "warning"))
    yield CheckResult(tuple(hits), _missing(cluster))


def _missing(cluster: Cluster) -> tuple[Missing, ...]:
    lacks = [lack for host in cluster.members for lack in host.missing(COLLECTOR)]
    return (*lacks, *cluster.missing("cluster_info", absent_is_answer=True))


def _hit(differences: list[_Difference], severity: str | None) -> Detection:
    rest = len(differences) - SHOWN
    clauses = [difference.clause for difference in differences[:SHOWN]]
    if rest > 0:
        clauses.append(f"and {rest} more")
    return Detection(
        "; ".join(clauses),
        tuple(dict.fromkeys(proof for row in differences for proof in row.proofs)),
        "; ".join(dict.fromkeys(row.advice for row in differences)),
        component="certificates",
        severity=severity,
    )


def _authorities(cluster: Cluster) -> Iterator[_Difference]:
    hosts = list(control_plane(cluster))
    for component, flag, effect in SHARED:
        apart = _apart([(host, each.trusted(component, flag)) for host, each in hosts])
        if not apart:
            continue
        path = _path(hosts, component, flag)
        names = ", ".join(host.host for host, _certificates in apart)
        yield _Difference(
            f"{path} (--{flag} of {component}) differs between {names}: {effect}",
            f"copy {path} and its key from the control-plane node whose authority the cluster has"
            " (that of most kubeconfigs and nodes) to the others, renew there what the other one"
            f" signed, and restart {component}, one node after the other",
            tuple(
                _certificate_proof(host, path, certificate)
                for host, certificates in apart
                for certificate in certificates[:1]
            ),
        )


def _apart(
    trusted: list[tuple[Host, tuple[Certificate, ...]]],
) -> list[tuple[Host, tuple[Certificate, ...]]]:
    """Return the hosts that share no authority with another one.

    An authority that was renewed with the same key and name is the same.
    """
    marks = [({(each.subject, each.key) for each in row[1]}, row) for row in trusted if row[1]]
    apart: dict[str, tuple[Host, tuple[Certificate, ...]]] = {}
    for (first, row), (second, other_row) in combinations(marks, 2):
        if first.isdisjoint(second):
            apart[row[0].host] = row
            apart[other_row[0].host] = other_row
    return list(apart.values())


def _path(hosts: Iterable[tuple[Host, HostCertificates]], component: str, flag: str) -> str:
    uses = [certificates.authority(component, flag) for _host, certificates in hosts]
    return next(use.place for use in uses if use is not None)


def _certificate_proof(host: Host, path: str, certificate: Certificate) -> EvidenceRef:
    text = (
        f"subject {certificate.subject}, serial {certificate.serial:x}, sha256 {certificate.digest}"
    )
    return EvidenceRef("file", host.host, path=path, text=text)


class _Key(NamedTuple):
    """The public keys of a flag of a host."""

    host: Host
    flag: str
    path: str
    digests: frozenset[str]


def _keys(cluster: Cluster, component: str, flags: Iterable[str]) -> Iterator[_Key]:
    """Yield the keys of the first of these flags that a component of a host has."""
    for host, certificates in control_plane(cluster):
        for flag in flags:
            rows = [
                key for key in certificates.keys if (key.component, key.flag) == (component, flag)
            ]
            if rows:
                digests = frozenset(digest for row in rows for digest in row.digests)
                if not any(row.error for row in rows) and digests:
                    yield _Key(host, flag, one_line(rows[0].path, 200), digests)
                break


def _token_keys(cluster: Cluster) -> Iterator[_Difference]:
    """Yield each key that signs tokens which an API server does not verify with its own keys."""
    verifying = list(_keys(cluster, API, (VERIFYING, TLS_KEY)))
    for component, flag in ((MANAGER, PRIVATE), (API, SIGNING)):
        for signer in _keys(cluster, component, (flag,)):
            deaf = [key for key in verifying if key.digests.isdisjoint(signer.digests)]
            if deaf:
                yield _unverified(component, signer, deaf)
                break


def _unverified(component: str, signer: _Key, deaf: list[_Key]) -> _Difference:
    names = ", ".join(key.host.host for key in deaf)
    by_tls = ""
    if deaf[0].flag == TLS_KEY:
        by_tls = f", which have no --{VERIFYING} and take the key of their own TLS certificate"
    return _Difference(
        f"{component} of {signer.host.host} signs tokens of service accounts with {signer.path}"
        f" (--{signer.flag}), and the API servers of {names} refuse them{by_tls}: their key"
        f" ({deaf[0].path}, --{deaf[0].flag}) is another one",
        f"give all control-plane nodes one pair of keys for tokens: --{SIGNING} of every API server"
        f" and --{PRIVATE} of every controller manager with the private key, --{VERIFYING} of every"
        " API server with the public one (with kubeadm copy sa.key and sa.pub from one to the"
        " others), and restart both, one node after the other. Tokens of the other keys are refused"
        " then: name their public keys too, until pods have new ones",
        tuple(_key_proof(key) for key in (signer, *deaf)),
    )


def _key_proof(key: _Key) -> EvidenceRef:
    text = f"sha256 of its public key {', '.join(sorted(key.digests)[:2])}"
    return EvidenceRef("file", key.host.host, path=key.path, object=f"--{key.flag}", text=text)


def _issuers(cluster: Cluster) -> Iterator[_Difference]:
    """Yield the issuers of API servers that others do not accept; the first one issues."""
    planes = [(host, host.control_plane or ControlPlane()) for host in cluster.hosts]
    servers = [
        (host, tuple(pflag.string_flags(process.argv, ISSUER)), process.pid)
        for host, plane in planes
        for process in plane.processes_of(API)
    ]
    for (first, issuers, _pid), (second, accepted, _other_pid) in combinations(servers, 2):
        if set(issuers[:1]) <= set(accepted) and set(accepted[:1]) <= set(issuers):
            continue
        proofs = tuple(
            EvidenceRef(
                "process", host.host, pid=pid, object=API, text=f"--{ISSUER}={_listed(values)}"
            )
            for host, values, pid in servers
        )
        yield _Difference(
            f"--{ISSUER} of the API servers differs ({first.host} has {_listed(issuers)},"
            f" {second.host} has {_listed(accepted)}): each refuses tokens of another one",
            f"give every API server the same --{ISSUER} (apiServer.extraArgs of kubeadm's"
            " ClusterConfiguration, so that an upgrade keeps it); from 1.22 on it may be given"
            " again with the former issuers, whose tokens stay valid then. Afterwards restart pods"
            " whose tokens are refused",
            proofs,
        )
        return


def _listed(values: tuple[str, ...]) -> str:
    return one_line(", ".join(values), 200) or "none"


def _of_cluster_info(cluster: Cluster) -> Iterator[_Difference]:
    """Yield that cluster-info has another authority than the cluster."""
    info = cluster.typed(ClusterInfo)
    stated = x509_certificate.read(info.pem)
    if not stated:
        return
    certificates = [
        certificate
        for _host, certificates in control_plane(cluster)
        for certificate in certificates.trusted(MANAGER, "root-ca-file")
    ]
    marks = {(each.subject, each.key) for each in stated}
    if certificates:
        is_same = not marks.isdisjoint({(each.subject, each.key) for each in certificates})
    else:
        is_same = info.key is None or info.key == cluster.key
    if is_same:
        return
    yield _Difference(
        "cluster-info, by which new nodes find the cluster, has another authority"
        f" ({stated[0].subject}, serial {stated[0].serial:x}) than the cluster: no node can join",
        "write the authority of a control-plane node into it: kubectl -n kube-public edit configmap"
        " cluster-info, certificate-authority-data = base64 -w0 /etc/kubernetes/pki/ca.crt; then"
        " the controller bootstrapsigner signs it again within seconds. Join with a new"
        " command (kubeadm token create --print-join-command)",
        (
            EvidenceRef(
                "api",
                cluster.api_host,
                object=INFO,
                text=f"certificate-authority-data sha256 {stated[0].digest}",
            ),
        ),
    )
