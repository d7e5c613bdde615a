# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find serving certificates of kubelets that API servers refuse, or that are missing.

A part of KM125. Without --kubelet-certificate-authority an API server verifies no kubelet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...evidence.answers.cluster.nodes import CertificateRequest, Node, Nodes
from ...evidence.document import ends, one_line, shell_name
from ...models import ages
from ...models.certificates import API, COLLECTOR, KUBELET, KubeletServing
from ...models.cluster import Cluster, Host
from ...models.result import EvidenceRef, Missing
from ...parsers import pflag, x509_certificate
from ...parsers.x509_certificate import Certificate
from ..base import CheckResult, Detection
from .authorities import control_plane

VERIFIES, PREFERS = "kubelet-certificate-authority", "kubelet-preferred-address-types"
USUAL_TYPES = "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP"
# How a server without a certificate ends a handshake.
WITHOUT = "INTERNAL_ERROR"
PATIENCE_SECONDS = 300.0  # within which an approver signs a request
SHOWN = 6
EFFECT = "logs, exec and port-forward fail there, and metrics-server has no numbers of it"
_STATES = {
    "waiting": "waits for approval",
    "approved": "is approved and not signed",
    "denied": "was denied",
    "failed": "could not be signed",
}
APPROVE = (
    "nothing in Kubernetes approves requests of kubernetes.io/kubelet-serving: compare the names of"
    " each with the addresses of its node (kubectl get csr {name} -o jsonpath='{{.spec.request}}' |"
    " base64 -d | openssl req -noout -text), then kubectl certificate approve {name}, or run an"
    " approver (kubelet-csr-approver); a request that was denied is made again when its kubelet"
    " restarts. Where one is approved and not signed, see whether the controller manager has"
    " --cluster-signing-cert-file and --cluster-signing-key-file"
)
TRUST = (
    "let the kubelet ask the cluster for its serving certificate (serverTLSBootstrap: true in its"
    " configuration, restart it, approve its request: kubectl get csr), or give it one of the"
    " authority of --kubelet-certificate-authority by tlsCertFile and tlsPrivateKeyFile. Without"
    " that flag API servers verify no kubelet"
)
RENEW = (
    "have a certificate made with this address: restart the kubelet, which asks again with the"
    " addresses of its Node, and approve the request (kubectl get csr); or correct"
    " --node-ip of the kubelet, or --kubelet-preferred-address-types of the API servers"
)


class _Refusal(NamedTuple):
    """What is wrong with the certificate of one node's kubelet, what to do, and what shows it."""

    clause: str
    advice: str
    proofs: tuple[EvidenceRef, ...]


def result(cluster: Cluster) -> CheckResult:
    """Return what API servers and other clients refuse of the cluster's kubelets."""
    refusals = [*_refused(cluster), *_unsigned(cluster)]
    hits = (_hit(refusals),) if refusals else ()
    return CheckResult(hits, tuple(_missing(cluster)), component=KUBELET)


def _hit(refusals: list[_Refusal]) -> Detection:
    clauses = [row.clause for row in refusals[:SHOWN]]
    if len(refusals) > SHOWN:
        clauses.append(f"and {len(refusals) - SHOWN} more")
    return Detection(
        f"{'; '.join(clauses)}: {EFFECT}",
        tuple(dict.fromkeys(proof for row in refusals for proof in row.proofs)),
        "; ".join(dict.fromkeys(row.advice for row in refusals)),
        component=KUBELET,
        severity="warning",
    )


def _missing(cluster: Cluster) -> Iterator[Missing]:
    """Yield what is missing to tell that no kubelet is refused."""
    is_verified = bool(_verifying(cluster))
    for host in cluster.members:
        yield from host.missing("instances")
    for host in cluster.hosts if is_verified else cluster.members:
        yield from host.missing(COLLECTOR)
    if is_verified or any(map(_has_none, cluster.hosts)):
        yield from cluster.missing("nodes")


def _argvs(cluster: Cluster) -> Iterator[tuple[Host, tuple[str, ...]]]:
    for host in cluster.hosts:
        if host.control_plane is not None:
            for process in host.control_plane.processes_of(API):
                yield host, process.argv


def _verifying(cluster: Cluster) -> list[tuple[Host, tuple[str, ...]]]:
    """Return the hosts and the words of the API servers that verify kubelets."""
    return [row for row in _argvs(cluster) if pflag.string_flag(row[1], VERIFIES)]


def _refused(cluster: Cluster) -> Iterator[_Refusal]:
    """Yield the certificates that an API server refuses that verifies kubelets."""
    verifying = _verifying(cluster)
    if not verifying:
        return
    trusted = _trusted(cluster, {host.host for host, _argv in verifying})
    nodes = {node.name: node for node in cluster.typed(Nodes).items if node.name}
    for host in cluster.hosts:
        serving = host.kubelet_serving
        if serving is not None and serving.chain and not serving.is_judged:
            yield from _of_host(verifying[0], host, serving, trusted, nodes.get(host.node or ""))


def _trusted(cluster: Cluster, names: set[str]) -> list[Certificate]:
    """Return the authorities by which the API servers of these hosts verify kubelets."""
    rows = [each for host, each in control_plane(cluster) if host.host in names]
    return [certificate for row in rows for certificate in row.trusted(API, VERIFIES)]


def _of_host(
    verifying: tuple[Host, tuple[str, ...]],
    host: Host,
    serving: KubeletServing,
    trusted: list[Certificate],
    node: Node | None,
) -> Iterator[_Refusal]:
    """Yield why API servers refuse the certificate of a kubelet."""
    server, argv = verifying
    leaf = serving.chain[0]
    flag = EvidenceRef(
        "process",
        server.host,
        object=API,
        text=one_line(f"--{VERIFIES}={pflag.string_flag(argv, VERIFIES)}", 300),
    )
    if trusted and x509_certificate.is_signed(serving.chain, trusted) is False:
        signer = one_line(leaf.issuer, 120)
        clause = f"the kubelet of {host.host} shows a certificate that {signer} signed"
        if leaf.is_self_signed:
            clause = f"the kubelet of {host.host} shows a certificate that it signed itself"
        proofs = (_proof(host, serving, f"subject {leaf.subject}, issuer {leaf.issuer}"), flag)
        yield _Refusal(f"{clause}, which API servers do not trust (--{VERIFIES})", TRUST, proofs)
        return
    address = "" if node is None else _address(node, argv)
    if address and not x509_certificate.covers(leaf, address):
        names = ", ".join(sorted(leaf.names)) or "no name"
        yield _Refusal(
            f"the certificate of the kubelet of {host.host} lacks {address}, by which API servers"
            " ask it",
            RENEW,
            (_proof(host, serving, f"valid for {names}"), flag),
        )


def _proof(host: Host, serving: KubeletServing, text: str) -> EvidenceRef:
    if serving.place.startswith("/"):
        return EvidenceRef("file", host.host, path=serving.place, text=one_line(text, 600))
    return EvidenceRef("http", host.host, object=serving.place, text=one_line(text, 600))


def _address(node: Node, argv: tuple[str, ...]) -> str:
    """Return the address of a Node by which an API server asks its kubelet, or ""."""
    by_type = {row.type: row.address for row in reversed(node.addresses) if row.address}
    types = (pflag.string_flag(argv, PREFERS) or USUAL_TYPES).split(",")
    return one_line(next((by_type[kind] for kind in types if kind in by_type), ""), 253)


def _has_none(host: Host) -> bool:
    """Tell whether the port of a kubelet answers that it has no certificate."""
    serving = host.kubelet_serving
    return serving is not None and not serving.chain and WITHOUT in serving.error.upper()


def _unsigned(cluster: Cluster) -> Iterator[_Refusal]:
    """Yield the kubelets without a certificate, and what became of their requests."""
    requests = cluster.typed(Nodes).serving_requests or ()
    by_node = {row.node: row for row in requests if row.node}
    audited = {host.node for host in cluster.hosts if host.kubelet_serving is not None}
    for host in cluster.hosts:
        if _has_none(host):
            yield _without(cluster, host, by_node.get(host.node or ""))
    for request in requests:
        # of a node that was not audited, the request is all that is known
        if request.node not in audited and _is_late(cluster, request):
            clause = f"the kubelet of {one_line(request.node, 253)} has no certificate"
            yield _requested(cluster, clause, request, ())


def _is_late(cluster: Cluster, request: CertificateRequest) -> bool:
    age = ages.age(cluster, request.created, "nodes")
    return age is not None and age > PATIENCE_SECONDS


def _without(cluster: Cluster, host: Host, request: CertificateRequest | None) -> _Refusal:
    serving = host.kubelet_serving or KubeletServing()
    proof = EvidenceRef("http", host.host, object=serving.place, text=ends(serving.error, 200))
    clause = f"the kubelet of {host.host} has no certificate to show"
    if request is not None:
        return _requested(cluster, clause, request, (proof,))
    advice = (
        "see whether its request waits (kubectl get csr), and its log (journalctl -u kubelet | grep"
        " -i certificate); serverTLSBootstrap: true makes it ask the cluster for one"
    )
    return _Refusal(clause, advice, (proof,))


def _requested(
    cluster: Cluster, clause: str, request: CertificateRequest, proofs: tuple[EvidenceRef, ...]
) -> _Refusal:
    name, state = one_line(request.name, 253), one_line(request.state, 40)
    proof = EvidenceRef(
        "api",
        cluster.api_host,
        object=f"CertificateSigningRequest {name}",
        text=f"{state}; made at {one_line(request.created, 40)}",
    )
    return _Refusal(
        f"{clause}: its request {name} {_STATES.get(state, _STATES['waiting'])}",
        APPROVE.format(name=shell_name(request.name or "", "NAME")),
        (*proofs, proof),
    )
