# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what API servers answer at their own address: KM170, KM171, KM172, KM173 and KM175."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ....module_utils.shared.text import counted, times
from ...evidence import contract
from ...evidence.answers.node.api_load import ApiLoad, Client, Level, ServerLoad
from ...evidence.answers.node.api_server import ApiServerAnswers, ServerAnswer
from ...evidence.answers.node.pressure import Pressure
from ...evidence.document import one_line, shell_name
from ...models import api_server, audit_webhook, etcd_client
from ...models.api_node import and_others
from ...models.api_server import SERVER, EtcdFailure, PortTaken
from ...models.audit_webhook import AuditWebhook
from ...models.cluster import Host
from ...models.component_restart import End
from ...models.control_plane import ControlPlane
from ...models.pressure import size
from ...models.result import EvidenceRef, Missing
from ..base import CheckResult, Detection, causes, node_check
from . import restart_wording

# What keeps an API server from its etcd. A fault of etcd, or of a certificate between the two,
# is to be named here.
ETCD_CAUSES = causes("KM114", "KM116", component="etcd") | causes(
    "KM120", "KM124", "KM125", "KM146", "KM150", "KM521", "KM526", "KM527"
)
TOO_MANY = 429  # of HTTP
OFTEN = 2  # kills within the hour
SMALL_BYTES = 4 * 1024**3
APPLIES = "hosts with an API server"
# "reason": what is done about it
_ETCD_ADVICE = {
    api_server.REFUSED: (
        "no etcd listens there: see why it does not run (crictl ps -a --name etcd, then crictl logs"
        " of the newest; systemctl status etcd), and whether --etcd-servers names the right address"
    ),
    api_server.CERTIFICATE: (
        "look at the certificates between the two: openssl x509 -noout -subject -issuer -dates -in"
        " the file of --etcd-certfile, of --etcd-cafile, and of etcd's --cert-file; with kubeadm:"
        " kubeadm certs check-expiration. Compare the clocks too (timedatectl)"
    ),
    api_server.TIMEOUT: (
        "see whether that address is reached (nc -vz ADDRESS 2379, ip route get ADDRESS, the"
        " firewall), and whether etcd answers in time (its log: took too long, slow fdatasync, no"
        " leader)"
    ),
    api_server.NAME: ("let the node find that name (getent hosts NAME), or correct --etcd-servers"),
    api_server.OTHER: (
        "see etcd's own log (crictl ps -a --name etcd, then crictl logs): whether it has a leader"
        " and answers in time, and how many of its members run"
    ),
}
# (begin of a check's name, what it means, what is done about it)
_CHECKS = (
    (
        "shutdown",
        "the server is shutting down",
        "see who stops it: journalctl -u kubelet | grep kube-apiserver",
    ),
    (
        "kms-provider",
        "the plugin that encrypts Secrets does not answer",
        "see the KMS plugin and the socket that the file of --encryption-provider-config names",
    ),
    (
        "poststarthook/rbac/bootstrap-roles",
        "it cannot write the roles that every cluster has",
        "see why it cannot write: etcd's alarms and its leader, and webhooks that fail closed",
    ),
    (
        "poststarthook/scheduling/bootstrap-system-priority-classes",
        "it cannot write the priority classes of the system",
        "see why it cannot write: etcd's alarms and its leader, and webhooks that fail closed",
    ),
    (
        "poststarthook/priority-and-fairness",
        "it cannot read or write the objects that limit requests",
        "see its log for flowschemas and prioritylevelconfigurations, and etcd",
    ),
    (
        "poststarthook/start-apiextensions",
        "it does not serve custom resources yet",
        "see its log for the CustomResourceDefinition that it cannot read",
    ),
    (
        "poststarthook/crd-informer",
        "it does not have the list of custom resources yet",
        "see its log for what it cannot list, and whether etcd answers in time",
    ),
    (
        "poststarthook/apiservice",
        "it does not know yet which API groups other servers serve",
        "see its log for APIServices, and kubectl get apiservices",
    ),
    (
        "autoregister-completion",
        "not every API group of its own is registered yet",
        "see its log for APIServices, and kubectl get apiservices",
    ),
    (
        "informer-sync",
        "it does not have its own lists yet",
        "see its log for what it cannot list; a large cluster or a slow etcd takes minutes",
    ),
    (
        "poststarthook/bootstrap-controller",
        "it cannot write the Service kubernetes or its addresses",
        "see its log for endpoints and services, and whether etcd accepts writes",
    ),
    (
        "poststarthook/start-service-ip-repair",
        "it cannot check which addresses Services have",
        "see its log for the Service whose address it cannot repair",
    ),
)
_OF_HOOK = (
    "a step that follows its start did not end",
    "see its log for the words of that check (crictl ps --name kube-apiserver, then crictl logs)",
)
_OF_CHECK = (
    "one of its own checks fails",
    "see its log for the words of that check (crictl ps --name kube-apiserver, then crictl logs)",
)


def _plane(host: Host) -> ControlPlane | None:
    """Return the host's part of the control plane where it has an API server, or should."""
    plane = host.control_plane
    if plane is None:
        return None
    named = any(use.component == SERVER for use in plane.files)
    return plane if named or api_server.runs(plane) else None


def _without_server(host: Host) -> CheckResult:
    """Return the result of a host that has no API server, as far as that is known."""
    missing = host.missing("instances") + host.missing("manifests")
    return CheckResult((), missing, bool(missing), SERVER, host.host)


def _result(
    host: Host, hits: tuple[Detection, ...], missing: tuple[Missing, ...], note: str = ""
) -> CheckResult:
    return CheckResult(hits, missing, True, SERVER, host.host, note)


def _servers(document: Mapping[str, Any]) -> tuple[ServerAnswer, ...]:
    return (api_server.answers(document) or ApiServerAnswers()).servers


@node_check(
    "KM170",
    "API server does not reach etcd",
    severity="critical",
    applies=APPLIES,
    needs=("system", "kubelet", "manifests", "instances", "component_end", "etcd", "api_server"),
    explained_by=ETCD_CAUSES | causes("KM115"),
)
def without_etcd(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM170: report an API server that has no etcd, with the endpoint and why it fails."""
    plane = _plane(host)
    if plane is None:
        yield _without_server(host)
        return
    failures = api_server.etcd_failures(host, document, plane)
    if failures:
        yield _result(host, (_etcd_hit(host, document, plane, failures),), ())
        return
    missing = host.missing("api_server")
    if not api_server.runs(plane):
        missing = host.missing("component_end")
    yield _result(host, (), missing + _unsure(host, document, plane))


def _unsure(host: Host, document: Mapping[str, Any], plane: ControlPlane) -> tuple[Missing, ...]:
    """Return that the checks of a server are not known: it is young, silent or refuses them."""
    servers = _servers(document)
    if any(map(api_server.is_refused, servers)):
        return (Missing(host.host, "api_server", "denied"),)
    if any(map(api_server.is_silent, servers)):
        return (Missing(host.host, "api_server", "timeout"),)
    if any(_is_starting(plane, row) for row in servers):
        return (Missing(host.host, "api_server", "starting"),)
    return ()


def _is_starting(plane: ControlPlane, server: ServerAnswer) -> bool:
    return bool(api_server.failed_checks(server)) and api_server.is_young(plane, server)


def _etcd_hit(
    host: Host,
    document: Mapping[str, Any],
    plane: ControlPlane,
    failures: list[EtcdFailure],
) -> Detection:
    checks = [name for server in _servers(document) for name in api_server.etcd_checks(server)]
    state = "it ended because it got no answer from etcd"
    if checks:
        state = f"the API server is not ready: its check {checks[0]} fails"
    elif api_server.runs(plane):
        state = "it answers nothing, and no endpoint of its etcd answers"
    places = [
        f"{failure.endpoint} ({failure.text})"
        for failure in failures
        if failure.endpoint and failure.text
    ]
    reason = ""
    if places:
        reason = f": {and_others(places)}"
    texts = [text for failure in failures for text in (failure.text, failure.line)]
    flags = etcd_client.lacking(SERVER, _arguments(plane), texts)
    return Detection(
        f"{state}{reason}{etcd_client.clause(flags)}",
        tuple(_etcd_proofs(host, failures, checks)),
        f"{etcd_client.advice(flags)}{_ETCD_ADVICE[failures[0].kind]}",
        host.host,
        host.node,
        SERVER,
    )


def _arguments(plane: ControlPlane) -> tuple[str, ...]:
    """Return the arguments of the API server that runs here, else those of its manifest."""
    running = [process.argv for process in plane.processes_of(SERVER)]
    uses = [use.words for use in plane.files if use.component == SERVER and use.usual]
    return next(iter((*running, *uses)), ())


def _etcd_proofs(
    host: Host, failures: list[EtcdFailure], checks: list[str]
) -> Iterator[EvidenceRef]:
    if checks:
        yield EvidenceRef("http", host.host, object="/readyz?verbose", text=f"[-]{checks[0]}")
    for failure in failures[:3]:
        if failure.line:
            yield EvidenceRef("log", host.host, object=SERVER, text=failure.line)
        elif failure.text:
            yield EvidenceRef("http", host.host, object=failure.endpoint, text=failure.text)


@node_check(
    "KM171",
    "API server is overloaded",
    severity="warning",
    applies=APPLIES,
    needs=("system", "manifests", "instances", "api_server", "api_load"),
    explained_by=causes("KM115") | causes("KM170", component=SERVER),
)
def overloaded(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM171: report an API server that refuses requests or lets them wait, and whose they are."""
    plane = _plane(host)
    if plane is None:
        yield _without_server(host)
        return
    loads = {row.pid: row for row in contract.answer(document, ApiLoad).servers}
    hits = [
        _load_hit(host, server, load)
        for server in _servers(document)
        if _is_overloaded(server, load := loads.get(server.pid, ServerLoad()))
    ]
    missing = host.missing("api_server")
    if not missing and (api_server.answers(document) or ApiServerAnswers()).used_up:
        missing = host.missing("api_load", absent_is_answer=False)
    yield _result(host, tuple(hits), missing)


def _is_overloaded(server: ServerAnswer, load: ServerLoad) -> bool:
    return server.version.status == TOO_MANY or any(map(_is_busy, load.levels))


def _is_busy(level: Level) -> bool:
    return level.rejected > 0 or level.waiting > 0


def _load_hit(host: Host, server: ServerAnswer, load: ServerLoad) -> Detection:
    busy = [level for level in load.levels if _is_busy(level)]
    parts = [_level(level) for level in busy]
    if server.version.status == TOO_MANY:
        parts.insert(0, "GET /version is answered with 429")
    if load.terminated:
        parts.append(f"it ended {counted(load.terminated, 'request')} itself")
    client = ""
    if load.clients:
        client = f"; most requests that wait are from {_client(load.clients[0])}"
    return Detection(
        f"it gets more requests than it can answer: {and_others(parts)}{client}",
        tuple(_load_proofs(host, server, busy, load.clients)),
        _load_advice(load.clients),
        host.host,
        host.node,
        SERVER,
    )


def _level(level: Level) -> str:
    parts = [f"{level.waiting} wait"]
    if level.rejected:
        reasons = ", ".join(one_line(reason, 40) for reason in level.reasons)
        parts.append(f"{level.rejected} refused within seconds")
        if reasons:
            parts[-1] += f" ({reasons})"
    return f"priority level {one_line(level.name, 60)}: {', '.join(parts)}"


def _client(client: Client) -> str:
    operation = " ".join(filter(None, (one_line(client.verb, 20), one_line(client.resource, 60))))
    requests = counted(client.requests, "request")
    if operation:
        requests += f" {operation}"
    return f"{one_line(client.user, 120)} ({requests})"


def _load_proofs(
    host: Host, server: ServerAnswer, busy: list[Level], clients: tuple[Client, ...]
) -> Iterator[EvidenceRef]:
    yield EvidenceRef(
        "http",
        host.host,
        object="/version",
        text=_timed(server),
    )
    for level in busy[:3]:
        yield EvidenceRef(
            "http",
            host.host,
            object="/metrics",
            text=f"{_level(level)}; {level.running} run of {level.limit or 'an unknown number'}",
        )
    for client in clients[:3]:
        yield EvidenceRef(
            "http",
            host.host,
            object="/debug/api_priority_and_fairness/dump_requests",
            text=_client(client),
        )


def _timed(server: ServerAnswer) -> str:
    if server.version.status is None:
        return one_line(server.version.error or "no answer", 200)
    return f"HTTP {server.version.status} in {server.version.seconds} s"


def _load_advice(clients: tuple[Client, ...]) -> str:
    search = "find who asks: the audit log by user and userAgent, and"
    if clients:
        user = shell_name(clients[0].user, "USER")
        search = (
            f"see what {user} asks for, and slow it down or stop it (a service account is that of"
            " its Deployment or DaemonSet: kubectl scale, kubectl rollout restart with a pause);"
            " else"
        )
    return (
        f"{search} kubectl get --raw"
        " '/debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1'. A FlowSchema"
        " with a low priority level keeps such a client from the others; --max-requests-inflight"
        " raises what the server takes where it has CPU and memory left"
    )


@node_check(
    "KM172",
    "API server is killed for lack of memory",
    severity="warning",
    applies=APPLIES,
    needs=(
        "system",
        "kubelet",
        "manifests",
        "instances",
        "component_end",
        "component_restart",
        "pressure",
    ),
    explained_by=causes("KM171", component=SERVER),
)
def out_of_memory(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM172: report an API server that the kernel killed, and which memory was used up."""
    plane = _plane(host)
    if plane is None:
        yield _without_server(host)
        return
    ends = api_server.memory_ends(document, plane)
    hits: tuple[Detection, ...] = ()
    if ends:
        webhook = audit_webhook.find(document, plane, host.host)
        hits = (_with_webhook(_memory_hit(host, document, ends), webhook),)
    yield _result(host, hits, host.missing("component_restart"))


def _memory_hit(host: Host, document: Mapping[str, Any], ends: list[End]) -> Detection:
    last = ends[-1]
    memory = contract.answer(document, Pressure).memory
    total = None if memory is None else memory.total
    severity = None
    if len(ends) >= OFTEN:
        severity = "critical"
    count = times(len(ends))
    return Detection(
        f"the kernel killed the API server {count} within the last hour"
        f"{restart_wording.at(last)}, out of memory: {_whose_memory(last, total)}",
        tuple(restart_wording.proofs(host, last)),
        _memory_advice(host, last, total),
        host.host,
        host.node,
        SERVER,
        severity=severity,
    )


def _with_webhook(hit: Detection, webhook: AuditWebhook | None) -> Detection:
    """Return a hit with the audit webhook of the API server, first where it does not keep up."""
    if webhook is None:
        return hit
    remedy = f"{hit.remedy}; {webhook.advice}"
    if webhook.reason:
        remedy = f"{webhook.advice}; else {hit.remedy}"
    return replace(
        hit,
        summary=f"{hit.summary}{webhook.clause}",
        evidence=(*hit.evidence, *webhook.proofs),
        remedy=remedy,
    )


def _whose_memory(end: End, total: int | None) -> str:
    if end.of_group:
        limit = ""
        if end.limit:
            limit = f" of {size(end.limit)}"
        return f"its container reached its limit{limit}"
    if end.of_group is None and end.limit:
        return "nothing shows whether of its container or of the machine"
    if not total:
        return "that of the machine was used up"
    machine = f"the {size(total)} of the machine were used up"
    if total < SMALL_BYTES:
        return f"{machine}, too little for a control plane and its pods"
    return machine


def _memory_advice(host: Host, end: End, total: int | None) -> str:
    load = (
        "An API server needs memory for each object that clients list at once: find who lists most"
        " (apiserver_longrunning_requests and apiserver_request_total of /metrics, the audit log by"
        " userAgent), such as a DaemonSet whose pods all start together, and count the objects"
        " (kubectl get --raw /metrics | grep apiserver_storage_objects)"
    )
    if end.of_group:
        return (
            "raise or remove resources.limits.memory in the manifest of kube-apiserver"
            f" (/etc/kubernetes/manifests/kube-apiserver.yaml). {load}"
        )
    more = "see what uses the memory: ps -eo rss,args --sort=-rss | head, free -m"
    if total is not None and total < SMALL_BYTES:
        more = f"give the machine more memory, or move workloads away; {more}"
    return f"{more}. {load}"


@node_check(
    "KM173",
    "Another process has a port of the control plane",
    severity="critical",
    applies="manifests of control-plane components in the folder of a kubelet",
    needs=("kubelet", "manifests", "instances", "component_end", "api_server"),
)
def port_taken(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM173: report a component that cannot listen, because another process has its port."""
    plane = host.control_plane
    if plane is None or not plane.files:
        missing = host.missing("manifests") + host.missing("instances")
        yield CheckResult((), missing, bool(missing), host=host.host)
        return
    hits = tuple(_port_hit(host, port) for port in api_server.ports_taken(document, plane))
    missing = host.missing("api_server") + host.missing("instances")
    if (api_server.answers(document) or ApiServerAnswers()).unseen:
        missing += (Missing(host.host, "api_server", "denied"),)
    yield CheckResult(hits, missing, host=host.host)


def _port_hit(host: Host, port: PortTaken) -> Detection:
    proofs = []
    if port.line:
        proofs.append(EvidenceRef("log", host.host, object=port.component, text=port.line))
    holder = port.holder
    if holder is None:
        summary = f"{port.component} cannot listen: another process has its address"
        advice = "see who listens there: ss -ltnp, lsof -nP -iTCP -sTCP:LISTEN"
    else:
        place = holder.unit or (holder.pod_uid and f"pod {holder.pod_uid}") or "no unit"
        name = f"{one_line(holder.comm, 60)} (pid {holder.pid}, {one_line(place, 80)})"
        summary = f"{port.component} cannot listen on port {holder.port}: {name} uses that port"
        proofs.append(
            EvidenceRef("process", host.host, pid=holder.pid, text=f"port {holder.port}: {name}")
        )
        advice = (
            f"see what that process is (ps -fp {holder.pid}; ss -ltnp 'sport = :{holder.port}')."
            " Stop a second copy of the component, or one that runs outside of its pod;"
            " a load balancer on this machine needs another port than the API server"
        )
    return Detection(summary, tuple(proofs), advice, host.host, host.node, port.component)


@node_check(
    "KM175",
    "A check of the API server fails",
    severity="warning",
    applies=APPLIES,
    needs=("system", "manifests", "instances", "api_server"),
    explained_by=causes("KM115", "KM170", "KM176"),
)
def not_ready(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM175: report the checks of livez and readyz that fail, and what they mean."""
    plane = _plane(host)
    if plane is None:
        yield _without_server(host)
        return
    settled = [row for row in _servers(document) if not api_server.is_young(plane, row)]
    hits = tuple(_check_hit(host, row) for row in settled if api_server.other_checks(row))
    missing = host.missing("api_server")
    yield _result(host, hits, missing or _unsure(host, document, plane))


def _check_hit(host: Host, server: ServerAnswer) -> Detection:
    names = api_server.other_checks(server)
    meaning, advice = _meaning(names[0])
    severity = None
    if set(names) & set(server.livez.failed):
        severity = "critical"
    state = "it is not ready"
    if severity:
        state = "it is not well, and its kubelet restarts it for that"
    return Detection(
        f"{state}: {and_others(names)} fails, which means that {meaning}",
        tuple(
            EvidenceRef("http", host.host, object="/readyz?verbose", text=f"[-]{name}")
            for name in names[:5]
        ),
        advice,
        host.host,
        host.node,
        SERVER,
        severity=severity,
    )


def _meaning(name: str) -> tuple[str, str]:
    for begin, meaning, advice in _CHECKS:
        if name.startswith(begin):
            return meaning, advice
    return _OF_HOOK if name.startswith("poststarthook/") else _OF_CHECK


def causes_of_end(
    host: Host, document: Mapping[str, Any], plane: ControlPlane, component: str
) -> Iterator[str]:
    """Yield the faults of this host that keep one of its components from staying up."""
    if any(port.component == component for port in api_server.ports_taken(document, plane)):
        yield "KM173"
    if component != SERVER:
        return
    if api_server.etcd_failures(host, document, plane):
        yield "KM170"
    if api_server.memory_ends(document, plane):
        yield "KM172"
