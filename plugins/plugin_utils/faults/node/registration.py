# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find kubelets that run and have no Node, and what keeps each of them from it: a part of KM525."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...evidence.answers.cluster.nodes import CertificateRequest, Nodes
from ...evidence.answers.node.repeated_errors import ComponentErrors
from ...evidence.document import one_line, shell_name
from ...models import ages, node_identity, repeated_errors
from ...models.api_node import views
from ...models.cluster import Cluster, Host
from ...models.moments import timestamp
from ...models.registration import ASKS, MISSING, REGISTERS
from ...models.repeated_errors import Repeated
from ...models.result import EvidenceRef, Missing
from ...parsers import component_log, no_proxy
from ..base import Detection
from . import agent_balancer, heartbeat_cause

APART_SECONDS = 60.0  # between the readings of a host and of the Nodes: one may go meanwhile
PASSES = ("conflict", "busy")
RESTART = "restart the kubelet (systemctl restart kubelet)"
JOIN = (
    "make a new token on a control-plane node (kubeadm token create --print-join-command), and let"
    " the machine join again with it; the bootstrap kubeconfig has the token, the group of which"
    " (system:bootstrappers:kubeadm:default-node-token) may create requests by the"
    " ClusterRoleBinding kubeadm:kubelet-bootstrap"
)

NO_CERTIFICATE = "it has no kubeconfig yet, and waits for its first client certificate"
APPROVE = (
    "see whether the request is of this machine (kubectl get csr), then kubectl certificate approve"
    " {name}; with kubeadm the controller manager approves it by itself, as long as its controller"
    " csrapproving runs and the ClusterRoleBinding kubeadm:node-autoapprove-bootstrap is there"
)
# What became of a request, and the advice.
REQUEST_STATES = {
    "waiting": ("was not approved", APPROVE),
    "denied": (
        "was denied",
        "ask who denied it; kubectl delete csr {name}, and restart the kubelet's unit, which makes"
        " another one",
    ),
    "failed": (
        "could not be signed",
        "see its condition (kubectl get csr {name} -o yaml), and the log of the controller manager",
    ),
    "approved": (
        "is approved and not signed",
        "see whether the controller manager that leads runs its controller csrsigning, and can read"
        " --cluster-signing-cert-file and --cluster-signing-key-file",
    ),
}


class Cause(NamedTuple):
    """Why a kubelet has no Node: a clause, the advice, and its evidence."""

    clause: str
    advice: str
    proofs: tuple[EvidenceRef, ...] = ()


def without_node(
    cluster: Cluster, renamed: set[str | None]
) -> tuple[list[Detection], list[Missing]]:
    """Return the kubelets that run and have no Node, and what is missing to tell of others."""
    hits: list[Detection] = []
    missing: list[Missing] = []
    for host in _lone(cluster):
        if host.host in renamed:
            continue
        cause = _cause(cluster, host)
        lack = _lack(cluster, host) or _lack_of_time(cluster, host, cause)
        if lack is None:
            hits.append(_hit(cluster, host, cause))
        else:
            missing.append(lack)
    return hits, missing


def _lone(cluster: Cluster) -> Iterator[Host]:
    """Yield the hosts whose kubelets are to have a Node, and of which the API lists none."""
    if cluster.missing("nodes") or cluster.cut("nodes"):
        return
    names = {view.name for view in views(cluster)}
    hosted = {view.host.host for view in views(cluster) if view.host is not None}
    for host in cluster.hosts:
        is_listed = host.host in hosted or names & {host.node, host.identity.name}
        if not is_listed and _is_of_api(host):
            yield host


def _is_of_api(host: Host) -> bool:
    """Tell whether a kubelet runs that is to have a Node; one without a kubeconfig has none."""
    if host.status != "ok" or host.kubelet_started is None or host.identity.inside:
        return False
    return host.registration.kubeconfig is not None


def _lack(cluster: Cluster, host: Host) -> Missing | None:
    """Return what is missing to tell whether a kubelet has a Node, or None."""
    if ages.has_just_started(cluster, host) or ages.clocks(cluster).doubt:
        return Missing(host.host, "kubelet", "error")
    if not _is_name_known(host):
        return Missing(host.host, "kubelet", "denied")
    if host.key is None and host.registration.kubeconfig != MISSING:
        return Missing(host.host, "kubelet", "error")  # it may be of another cluster
    return None


def _lack_of_time(cluster: Cluster, host: Host, cause: Cause) -> Missing | None:
    """Return that a Node may have been deleted after its host was read, or None."""
    if host.registration.kubeconfig == MISSING or any(item.kind == "log" for item in cause.proofs):
        return None
    collected = timestamp(host.registration.collected_at)
    bounds = ages.age_of(cluster, collected, host, "nodes")
    if bounds is None or bounds[0] <= APART_SECONDS:
        return None
    return Missing(host.host, "kubelet", "error")


def _is_name_known(host: Host) -> bool:
    """Tell whether the name of a kubelet's Node is known: its certificate's, or its own."""
    identity = host.identity
    if host.node is not None:
        return True
    is_unread = identity.certificate in (node_identity.DENIED, node_identity.ERROR)
    return identity.name is not None and not identity.clouded and not is_unread


def _hit(cluster: Cluster, host: Host, cause: Cause) -> Detection:
    name = host.identity.name or host.node or host.host
    started = f"the kubelet has been running since {host.kubelet_started:%Y-%m-%dT%H:%M:%SZ}"
    return Detection(
        one_line(f"the kubelet runs, and the API has no Node {name}: {cause.clause}", 700),
        (
            EvidenceRef("api", cluster.api_host, object="Nodes", text=f"no Node {name}"),
            EvidenceRef("process", host.host, text=started),
            *cause.proofs,
        ),
        cause.advice,
        host=host.host,
        node=name,
        component="kubelet",
    )


def _cause(cluster: Cluster, host: Host) -> Cause:
    """Return what keeps a kubelet from its Node; what it says itself comes before what follows."""
    candidates = (
        _frozen,
        _told_not_to,
        _refused,
        _proxied,
        _unanswered,
        _waiting,
        _unreached,
        _deleted,
    )
    for candidate in candidates:
        cause = candidate(cluster, host)
        if cause is not None:
            return cause
    return _unknown(host)


def _frozen(cluster: Cluster, _host: Host) -> Cause | None:
    reason = heartbeat_cause.frozen(cluster)
    return Cause(*reason) if reason else None


def _told_not_to(_cluster: Cluster, host: Host) -> Cause | None:
    text = host.registration.unregistered
    if not text:
        return None
    return Cause(
        f"it is configured not to register ({text})",
        f"take that away and {RESTART}, or create the Node by hand, as this setting is meant",
        (EvidenceRef("process", host.host, object="kubelet", text=text),),
    )


def _refused(_cluster: Cluster, host: Host) -> Cause | None:
    """Return what the API server answers to a registration or to a certificate's request."""
    return _of_log(host, is_network=False)


def _unanswered(_cluster: Cluster, host: Host) -> Cause | None:
    """Return why the kubelet gets no answer to them."""
    return _of_log(host, is_network=True)


def _of_log(host: Host, *, is_network: bool) -> Cause | None:
    row = host.registration.errors
    if row is None:
        return None
    errors = [error for error in _errors(host, row) if REGISTERS.search(error.entry.line)]
    for error in sorted(errors, key=lambda error: -error.entry.count):
        kind = "" if error.answer is None else error.answer.kind
        if kind not in PASSES and (kind in repeated_errors.NETWORK) is is_network:
            return _said(host, row, error)
    return None


def _errors(host: Host, row: ComponentErrors) -> list[Repeated]:
    return repeated_errors.current(row, host.registration.read_at, host.releases)


def _said(host: Host, row: ComponentErrors, error: Repeated) -> Cause:
    advice = "correct what its line names; it tries again by itself"
    clause = error.message
    if error.known is not None:
        clause, advice = f"{error.known.clause}: {error.message}", error.known.advice
    elif error.answer is not None:
        clause, advice = f"{error.answer.clause}: {error.message}", error.answer.advice
        is_refused = error.answer.kind in ("unauthorized", "forbidden")
        if is_refused and ASKS.search(error.entry.line):
            advice = JOIN
    return Cause(clause, advice, (_line(host, row, error),))


def _line(host: Host, row: ComponentErrors, error: Repeated) -> EvidenceRef:
    text = one_line(component_log.text(error.entry.line), 600)
    return EvidenceRef("log", host.host, object=one_line(row.source, 300), text=text)


def _proxied(_cluster: Cluster, host: Host) -> Cause | None:
    """Return that requests go to a proxy, unless an API server answers them."""
    row = host.registration.errors
    if row is not None and any(map(repeated_errors.is_answered, _errors(host, row))):
        return None
    return proxied(host)


def proxied(host: Host) -> Cause | None:
    """Return that requests to the API server go to a proxy, as far as its address is known."""
    registration, server = host.registration, _server(host)
    if not registration.proxy or not server or no_proxy.is_cut(registration.no_proxy):
        return None
    if no_proxy.bypasses(server, registration.no_proxy):
        return None
    name = no_proxy.split(server)[0]
    return Cause(
        f"it sends its requests for the API server to the proxy {registration.proxy} (HTTPS_PROXY),"
        f" because NO_PROXY does not contain {name}",
        f"add {name} to NO_PROXY in the environment of the kubelet's unit, and the"
        f" networks of nodes, pods and services; then systemctl daemon-reload, and {RESTART}."
        " Where the proxy is meant, see its log for what it answers",
        (_proxy_proof(host),),
    )


def _server(host: Host) -> str:
    """Return the server of a kubelet's kubeconfig, or "" where it is not known."""
    way = host.api_way
    if way is None or host.registration.kubeconfig == MISSING:
        return ""
    return one_line(way.server or "", 200)


def _waiting(cluster: Cluster, host: Host) -> Cause | None:
    """Return what became of a kubelet's request for its first certificate."""
    if host.registration.kubeconfig != MISSING:
        return None
    file = EvidenceRef("file", host.host, object="kubeconfig of the kubelet", text=MISSING)
    requests = cluster.typed(Nodes).requests
    if requests is None:
        advice = f"{APPROVE.format(name='NAME')}. Else {JOIN}"
        return _by_proxy(host, Cause(NO_CERTIFICATE, advice, (file,)))
    name = host.identity.name or host.node
    request = next((row for row in requests if row.node == name), None)
    if request is None:
        clause = f"{NO_CERTIFICATE}, and the API has no request of it that waits"
        advice = f"see whether it reaches the server of its bootstrap kubeconfig; if so, {JOIN}"
        return _by_proxy(host, Cause(clause, advice, (file,)))
    return _requested(cluster, request, file)


def _by_proxy(host: Host, cause: Cause) -> Cause:
    """Return a cause with the proxy of a kubelet whose server is not known."""
    proxy = host.registration.proxy
    if not proxy:
        return cause
    return Cause(
        cause.clause,
        "check first that NO_PROXY of the kubelet's process contains the server of its bootstrap"
        f" kubeconfig: if not, the kubelet uses the proxy {proxy} (HTTPS_PROXY). Then"
        f" {cause.advice}",
        (*cause.proofs, _proxy_proof(host)),
    )


def _proxy_proof(host: Host) -> EvidenceRef:
    proof = f"HTTPS_PROXY={host.registration.proxy} NO_PROXY={host.registration.no_proxy}"
    return EvidenceRef("process", host.host, object="kubelet", text=one_line(proof, 600))


def _requested(cluster: Cluster, request: CertificateRequest, file: EvidenceRef) -> Cause:
    name, state = one_line(request.name, 253), one_line(request.state, 40)
    clause, advice = REQUEST_STATES.get(state, REQUEST_STATES["waiting"])
    text = f"{state}; made at {one_line(request.created, 40)} by {one_line(request.user, 120)}"
    proof = EvidenceRef(
        "api", cluster.api_host, object=f"CertificateSigningRequest {name}", text=text
    )
    return Cause(
        f"{NO_CERTIFICATE}: its request {name} {clause}",
        advice.format(name=shell_name(request.name or "", "NAME")),
        (file, proof),
    )


def _unreached(cluster: Cluster, host: Host) -> Cause | None:
    way = host.api_way
    if way is None or not way.failed:
        return None
    clause, advice = heartbeat_cause.LOST.get(way.failed, heartbeat_cause.REACHED)
    text = one_line(way.error or way.failed, 300)
    proof = EvidenceRef("http", host.host, object=one_line(way.server, 200), text=text)
    balancer = agent_balancer.find(cluster, host)
    if balancer is not None:
        return Cause(balancer.clause, balancer.advice, (proof, *balancer.proofs))
    return Cause(clause, advice, (proof,))


def _deleted(_cluster: Cluster, host: Host) -> Cause | None:
    """Return that the Node was deleted: a kubelet that asks for it is told that it is not there."""
    row = host.registration.errors
    if row is None:
        return None
    absent = [error for error in _errors(host, row) if _is_of_absent_node(error)]
    if not absent:
        return None
    return Cause(
        "it was most likely deleted while the kubelet ran, which registers at its start only",
        f"where the machine belongs to the cluster, {RESTART}, and it registers again, without the"
        " labels and taints that were set by hand; where it was taken out, stop the kubelet and"
        " reset the machine (kubeadm reset)",
        (_line(host, row, absent[0]),),
    )


def _is_of_absent_node(error: Repeated) -> bool:
    return error.answer is not None and error.answer.kind == "not_found"


def _unknown(host: Host) -> Cause:
    """Return that nothing that was read names the reason."""
    clause, row = "its log was not read", host.registration.errors
    if row is not None:
        clause = "its log of the last ten minutes does not name the reason"
        gap = repeated_errors.gap(row, host.registration.read_at)
        if gap:
            clause = f"what was read of its log does not name the reason: {gap}"
    return Cause(
        clause,
        "read its log from its start on (journalctl -u kubelet | grep -i -e regist -e certificate)."
        f" A kubelet registers only at its start: if its Node was deleted, {RESTART}",
    )
