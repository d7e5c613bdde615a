# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what the API server asks other servers for: webhooks (KM176), API groups (KM177)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ....module_utils.shared.text import counted
from ...evidence.answers.cluster.api_services import ApiService, ApiServices
from ...evidence.answers.cluster.unmade import RefusedOwner
from ...evidence.answers.cluster.webhooks import Rule, Webhook, Webhooks
from ...evidence.document import ends, one_line, shell_name
from ...models import ages, refused_pods
from ...models.api_node import and_others
from ...models.cluster import Cluster
from ...models.pod_start import qualified
from ...models.result import EvidenceRef, Missing
from ..base import CheckResult, Detection, causes, cluster_check, unknown, without_kubernetes
from ..known_causes import explained
from ..node import rancher_tunnels
from . import metrics_group, webhook_clients
from .webhook_clients import Client

# What has just been installed gets its pods in a moment.
SETTLE_SECONDS = 300.0
SERVICE_SECONDS = 120.0
ANY = "*"
_AT_LOOPBACK = re.compile(r"dial tcp (?:127\.|\[::1\])")
# (group, resource, operation) that a cluster needs to come back.
PODS = ("", "pods", "CREATE")
NODES = (("", "nodes", "UPDATE"), ("", "nodes/status", "UPDATE"))
LEASES = ("coordination.k8s.io", "leases", "UPDATE")


@cluster_check(
    "KM176",
    "Webhook refuses requests, because no server answers it",
    severity="warning",
    applies="webhooks of admission that fail closed and whose service is in the cluster",
    needs=("system_pods",),
    cluster_needs=("webhooks",),
    current_only=True,
)
def unanswered_webhook(cluster: Cluster) -> Iterator[CheckResult]:
    """KM176: report a webhook that fails closed and whose service has no ready address."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    answer = cluster.typed(Webhooks)
    dead: dict[tuple[str, str], list[Webhook]] = {}
    young = False
    for item in answer.items:
        if item.ready != 0:
            continue
        if _is_young(cluster, item):
            young = True
            continue
        dead.setdefault((item.namespace, item.service), []).append(item)
    hits = tuple(_webhook_hit(cluster, items) for items in dead.values())
    missing = [*cluster.missing("webhooks"), *cluster.cut("webhooks")]
    if young:
        missing.append(cluster.missing_answer("webhooks", "timeout"))
    yield CheckResult(hits, tuple(missing))


def _is_young(cluster: Cluster, item: Webhook) -> bool:
    age = ages.age(cluster, item.created, "webhooks")
    return age is not None and age < SETTLE_SECONDS


def _asked(rule: Rule, group: str, resource: str, operation: str) -> bool:
    """Tell whether a rule takes an operation on a resource."""
    return (
        _takes(rule.groups, group)
        and _takes(rule.operations, operation)
        and any(_is_resource(name, resource) for name in rule.resources)
    )


def _takes(values: Iterable[str], value: str) -> bool:
    return any(item in (ANY, value) for item in values)


def _is_resource(name: str, resource: str) -> bool:
    """Tell whether a name of a rule covers a resource, or a subresource such as nodes/status."""
    whole, _slash, part = name.partition("/")
    kind, _slash, below = resource.partition("/")
    if whole not in (ANY, kind):
        return False
    if not part:
        return not below
    return part in (ANY, below) and bool(below or whole == ANY == part)


def _takes_any(items: Iterable[Webhook], *operations: tuple[str, str, str]) -> list[Webhook]:
    """Return the webhooks that are asked about one of these."""
    return [
        item
        for item in items
        if any(_asked(rule, *operation) for rule in item.rules for operation in operations)
    ]


def _blocked(items: list[Webhook]) -> list[str]:
    """Return what of a cluster's recovery these webhooks refuse, in words."""
    sure = [item for item in items if not item.objects]
    words = []
    if any(item.own for item in _takes_any(sure, PODS)):
        words.append("the pods of its own namespace, so that it cannot come back by itself")
    if any(item.system for item in _takes_any(sure, PODS)):
        words.append("pods of kube-system")
    if _takes_any(sure, *NODES):
        words.append("Nodes")
    if any(item.system for item in _takes_any(sure, LEASES)):
        words.append("the leases of schedulers and controller managers")
    return words


def _webhook_hit(cluster: Cluster, items: list[Webhook]) -> Detection:
    first = items[0]
    service = f"{one_line(first.namespace, 63)}/{one_line(first.service, 63)}"
    names = list(dict.fromkeys(one_line(item.configuration, 120) for item in items))
    severity, effect = _effect(items)
    webhooks = list(dict.fromkeys(item.name for item in items))
    clients = webhook_clients.of_webhooks(cluster, webhooks)
    lacking = refused_pods.by_webhooks(cluster, webhooks)
    effect += _followers(clients, lacking)
    return Detection(
        f"nothing answers the webhooks of {and_others(names)}"
        f" ({and_others([one_line(name, 253) for name in webhooks])}), which fail closed:"
        f" {_state(first, service)}{effect}",
        (
            *(_webhook_proof(cluster, item) for item in items[:4]),
            *(row.proof for row in clients[:2]),
            *(_refusal_proof(cluster, row) for row in lacking[:2]),
        ),
        _webhook_advice(items, waits_for_network=any(row.is_of_network for row in clients)),
        severity=severity,
        component="kube-apiserver",
    )


def _followers(clients: Sequence[Client], lacking: Sequence[RefusedOwner]) -> str:
    """Return which pods say that it refuses them, and which are not made, as sentences."""
    text = ""
    if clients:
        text += f". {and_others([row.clause for row in clients])}"
    if lacking:
        owners = and_others([_owner(row) for row in lacking])
        text += f". Pods that could not be made: those of {owners}"
    return text


def _effect(items: list[Webhook]) -> tuple[str | None, str]:
    """Return the severity, where it is not the fault's own, and what is refused, as a sentence."""
    blocked = _blocked(items)
    if blocked:
        return "critical", f". They refuse {', '.join(blocked)}"
    return None, f". Each request for {_resources(items)} that they match is refused"


def _owner(row: RefusedOwner) -> str:
    """Return the object that cannot create its pods."""
    name = f"{one_line(row.kind, 40)}/{one_line(row.name, 253)}"
    return qualified(name, one_line(row.namespace, 63))


def _refusal_proof(cluster: Cluster, row: RefusedOwner) -> EvidenceRef:
    text = f"FailedCreate, last {one_line(row.last, 40)}: {ends(row.message, 300)}"
    return EvidenceRef("api", cluster.api_host, object=_owner(row), text=text)


def _state(item: Webhook, service: str) -> str:
    if item.found is False:
        return f"their Service {service} does not exist"
    if item.other:
        return f"no pod of their Service {service} is ready ({item.other} are not)"
    return f"their Service {service} has no address"


def _resources(items: list[Webhook]) -> str:
    rules = [rule for item in items for rule in item.rules]
    names = [one_line(name, 60) for rule in rules for name in rule.resources]
    return and_others(list(dict.fromkeys(names)) or ["nothing"])


def _webhook_proof(cluster: Cluster, item: Webhook) -> EvidenceRef:
    rules = "; ".join(
        f"{','.join(rule.operations)} {','.join(rule.resources)}" for rule in item.rules[:3]
    )
    return EvidenceRef(
        "api",
        cluster.api_host,
        object=one_line(f"{item.kind} {item.configuration}", 200),
        text=one_line(
            f"{item.name}: failurePolicy Fail, service {item.namespace}/{item.service},"
            f" {counted(item.ready, 'address', 'addresses')} ready; {rules}",
            300,
        ),
    )


def _webhook_advice(items: list[Webhook], *, waits_for_network: bool) -> str:
    first = items[0]
    kind = f"{first.kind.lower()}s" if first.kind else "validatingwebhookconfigurations"
    kind = shell_name(kind, "KIND")
    name = shell_name(first.configuration, "NAME")
    namespace = shell_name(first.namespace, "NAMESPACE")
    service = shell_name(first.service, "SERVICE")
    circle = "its own webhook refuses its pods"
    if waits_for_network:
        circle = "its pods need the network whose agent it refuses"
    return (
        f"bring its server back: kubectl -n {namespace} get endpointslices,pods -o wide, and"
        f" kubectl -n {namespace} describe service {service}. If it cannot come back because"
        f" {circle}, let it pass for that time, which is your decision, as it"
        f" switches its policy off: kubectl get {kind} {name} -o yaml > {name}.yaml, then kubectl"
        f" patch {kind} {name} --type=json -p"
        f' \'[{{"op":"replace","path":"/webhooks/{first.index}/failurePolicy","value":"Ignore"}}]\''
        f" for each of them, or kubectl delete {kind} {name}; put it back when its pods are ready."
        f" For good: {_lasting(items)}"
    )


def _lasting(items: list[Webhook]) -> str:
    """Return what keeps a webhook from standing in the way of a cluster that comes back."""
    selector = "let its namespaceSelector leave out its own namespace and kube-system"
    if not _takes_any(items, *NODES):
        return selector
    return (
        f"{selector}; Nodes have no namespace, so that a webhook for them has failurePolicy Ignore"
        " or does without them"
    )


@cluster_check(
    "KM177",
    "API group of another server is not available",
    severity="warning",
    applies="API groups that another server than the API server serves",
    cluster_needs=("api_services",),
    current_only=True,
    needs=("kubelet",),
    explained_by=causes("KM115", "KM519") | causes("KM181", component="kube-apiserver"),
)
def unavailable_group(cluster: Cluster) -> Iterator[CheckResult]:
    """KM177: report an API group that the API server cannot get from its server."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    answer = cluster.typed(ApiServices)
    missing: list[Missing] = [*cluster.missing("api_services"), *cluster.cut("api_services")]
    failing: dict[tuple[str, str], list[ApiService]] = {}
    for item in answer.items:
        age = ages.age(cluster, item.since, "api_services")
        if age is not None and age < SERVICE_SECONDS:
            missing.append(cluster.missing_answer("api_services", "timeout"))
            continue
        failing.setdefault((item.namespace, item.service), []).append(item)
    hits = tuple(_group_hit(cluster, items) for items in failing.values())
    if not hits:
        yield unknown(*missing)
        return
    yield CheckResult(hits, tuple(missing))


def _group_hit(cluster: Cluster, items: list[ApiService]) -> Detection:
    first = items[0]
    names = and_others([one_line(item.name, 120) for item in items])
    since = ""
    if first.since:
        since = f" since {one_line(first.since, 40)}"
    service = f"{one_line(first.namespace, 63)}/{one_line(first.service, 63)}"
    hit = Detection(
        f"{names} is not available{since}: {one_line(first.reason, 80)} of Service {service}"
        f"{metrics_group.clause(cluster, first)}; until it is, namespaces that are deleted stay"
        " Terminating, and garbage collection and quotas may stand still",
        (
            *(_group_proof(cluster, item) for item in items[:3]),
            *metrics_group.proofs(cluster, first),
        ),
        _group_advice(first) + metrics_group.advice(cluster, first),
        component="kube-apiserver",
    )
    messages = [item.message or "" for item in items]
    hit = explained(hit, ("kube-apiserver",), messages, cluster.version)
    return _with_tunnel(cluster, hit, messages)


def _with_tunnel(cluster: Cluster, hit: Detection, messages: list[str]) -> Detection:
    """Return a hit with the setting by which servers of k3s do not find their own tunnel."""
    if not any(_AT_LOOPBACK.search(message) for message in messages):
        return hit
    rows = rancher_tunnels.servers_elsewhere(cluster)
    if not rows:
        return hit
    return replace(
        hit,
        summary=f"{hit.summary}. {rancher_tunnels.clause(rows)}",
        evidence=(*hit.evidence, *rancher_tunnels.proofs(rows)),
        remedy=f"{rancher_tunnels.advice(rows)}; {hit.remedy}",
    )


def _group_proof(cluster: Cluster, item: ApiService) -> EvidenceRef:
    return EvidenceRef(
        "api",
        cluster.api_host,
        object=one_line(f"APIService {item.name}", 200),
        text=one_line(f"Available False, {item.reason}: {item.message}", 300),
    )


def _group_advice(item: ApiService) -> str:
    namespace = shell_name(item.namespace, "NAMESPACE")
    service = shell_name(item.service, "SERVICE")
    name = shell_name(item.name, "NAME")
    if item.reason in ("ServiceNotFound", "ServicePortError"):
        return (
            f"install that server again, or, if it is gone for good and you decide so, delete the"
            f" APIService: kubectl get apiservice {name} -o yaml > {name}.yaml, then kubectl delete"
            f" apiservice {name}. Remove no finalizer of a namespace"
        )
    if item.reason in ("MissingEndpoints", "EndpointsNotFound"):
        return (
            f"see why its pods are not ready: kubectl -n {namespace} get pods -o wide, kubectl -n"
            f" {namespace} describe service {service}"
        )
    return (
        f"see what answers: kubectl get apiservice {name} -o yaml, kubectl -n {namespace} get pods"
        " -o wide. If a part of the API servers reaches it, the path from the others to pods is"
        " broken; 401 means that the certificate of --proxy-client-cert-file is not accepted"
    )
