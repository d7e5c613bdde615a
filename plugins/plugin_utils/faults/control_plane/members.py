# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Predicates about a cluster as its API, its etcd and its members tell it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from ....module_utils.shared.text import counted
from ...evidence.answers.cluster.api_pod import Event, PodLife
from ...evidence.answers.cluster.jobs import Job, Jobs
from ...evidence.answers.cluster.kubeadm_config import KubeadmConfig
from ...evidence.answers.cluster.locks import Locks, LockServer
from ...evidence.answers.cluster.nodes import Nodes
from ...evidence.document import shell_name
from ...models import control_plane, node_hosts, stale_endpoints
from ...models.api_node import and_others
from ...models.cluster import Cluster, Host, UnlistedMember
from ...models.moments import timestamp
from ...models.result import EvidenceRef, Missing
from ...models.stale_endpoints import StaleEndpoint
from ...parsers import pflag, pod_manifest
from ..base import CheckResult, Detection, causes, cluster_check, not_applicable
from . import etcd_commands
from .leader_election import all_members_known, silent_members

KUBEADM_CONFIG = "ConfigMap kube-system/kubeadm-config"
_SECTIONS = {"scheduler": "kube-scheduler", "controllermanager": "kube-controller-manager"}
# A replacement is only made once its predecessor has failed or goes: two creations this close are
# no replacement.
TOGETHER_SECONDS = 5
# What a Deployment and its ReplicaSet add to the name of a pod; MachineDeployments of the Cluster
# API add the same to the names of machines, which are Nodes.
_OF_DEPLOYMENT = re.compile(
    r"-[bcdfghjklmnpqrstvwxz2456789]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}\Z"
)
SHOWN = 3
_PREFIX = re.compile(r"/[A-Za-z0-9._/-]{1,100}")


@cluster_check(
    "KM110",
    "kubeadm-config disables leader election at the next upgrade",
    severity="warning",
    applies="clusters with a kubeadm-config ConfigMap and more than one master",
    risk=1,
    cluster_needs=("kubeadm_config", "nodes"),
)
def kubeadm_config(cluster: Cluster) -> Iterator[CheckResult]:
    """KM110: report extraArgs that disable election at the next `kubeadm upgrade`."""
    status = (cluster.api.get("kubeadm_config") or {}).get("status")
    if cluster.key is None or status == "absent":
        yield not_applicable("no kubeadm-config")
        return
    alone = len(cluster.members) + len(cluster.strangers) == 1
    if alone and all_members_known(cluster):
        yield not_applicable("a single master needs no election")
        return
    record = cluster.typed(KubeadmConfig)
    hits, missing = [], list(cluster.missing("kubeadm_config"))
    try:
        for component, value, line in _switched_off(record):
            hits.append(_kubeadm_hit(component, value, line))
    except pod_manifest.ManifestError:
        missing.append(cluster.missing_answer("kubeadm_config", "error"))
    yield CheckResult(tuple(hits), tuple(missing), note=_silence(cluster))


def _kubeadm_hit(component: str, value: str, line: int) -> Detection:
    proof = EvidenceRef(
        "api",
        object=KUBEADM_CONFIG,
        path="ClusterConfiguration",
        line=line,
        text=f"leader-elect: {value}",
    )
    return Detection(
        f"kubeadm-config sets leader-elect to {value!r}: the next kubeadm upgrade"
        " writes that into the manifest",
        (proof,),
        f"in {KUBEADM_CONFIG}, ClusterConfiguration line {line}, set leader-elect to"
        ' "true" or remove it',
        component=component,
    )


def switched_off(record: KubeadmConfig) -> dict[str, str]:
    """Return the sections of the ClusterConfiguration that disable election, by component."""
    names = {"kube-controller-manager": "controllerManager", "kube-scheduler": "scheduler"}
    off = {component for component, _value, _line in _switched_off(record)}
    return {section: component for component, section in names.items() if component in off}


def _switched_off(record: KubeadmConfig) -> Iterator[tuple[str, str, int]]:
    text = pod_manifest.parseable(record.text or "", record.masked)
    for component, value, line in _leader_elect_args(text):
        if pflag.parse_bool(value) is not True:
            yield component, value, line


def _leader_elect_args(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield component, value and line of each leader-elect in extraArgs.

    extraArgs are a map up to v1beta3, and a list of name and value since.
    """
    names: dict[tuple[Any, ...], str] = {}
    for path, value, line in pod_manifest.scalars(text):
        component = _component_of(path)
        if component is None:
            continue
        if len(path) == 3 and pflag.normalise(str(path[2])) == "leader-elect":
            yield component, value, line
        elif len(path) == 4 and path[3] == "name":
            names[path[:3]] = pflag.normalise(value)
        elif len(path) == 4 and path[3] == "value" and names.get(path[:3]) == "leader-elect":
            yield component, value, line


def _component_of(path: tuple[Any, ...]) -> str | None:
    """Return the component whose extraArgs have a value at this path, or None."""
    if len(path) < 3 or str(path[1]).lower() != "extraargs":
        return None
    return _SECTIONS.get(str(path[0]).lower())


def _silence(cluster: Cluster) -> str:
    """Return why the API did not answer, as the host that asked it last reports it, or ""."""
    if cluster.key is None or cluster.api_status in ("ok", "not_asked"):
        return ""
    return f"the API did not answer: {cluster.api_reason or cluster.api_status}"


@cluster_check(
    "KM111",
    "API servers show different locks",
    severity="critical",
    applies="clusters with more than one API server",
    risk=4,
    needs=("etcd",),
    cluster_needs=("locks", "endpoints"),
)
def split_storage(cluster: Cluster) -> Iterator[CheckResult]:
    """KM111: report API servers with different lock objects: they write to different stores."""
    if cluster.key is None:
        yield CheckResult(applies=False)
        return
    servers = cluster.typed(Locks).servers
    answering = [server for server in servers if not server.error]
    hits = [*_different_objects(answering), *_different_etcd(cluster)]
    missing = list(cluster.missing("locks"))
    missing += [
        Missing(server.address or "API server", "locks", "error")
        for server in servers
        if server.error
    ]
    missing += silent_members(cluster, "etcd")
    yield CheckResult(tuple(hits[:1]), tuple(dict.fromkeys(missing)))


def _different_objects(servers: list[LockServer]) -> Iterator[Detection]:
    uids_by_name: dict[str, dict[str, str]] = {}
    for server in servers:
        marks = {"Namespace kube-system": server.kube_system_uid}
        for lock in server.objects:
            if lock.name in control_plane.ELECTED:
                marks[f"{lock.kind} kube-system/{lock.name}"] = lock.uid
        for name, uid in marks.items():
            if uid:
                uids_by_name.setdefault(name, {}).setdefault(uid, str(server.address))
    for name, by_uid in uids_by_name.items():
        if len(by_uid) > 1:
            yield Detection(
                "API servers show different objects under one name: they use different stores, and"
                " each store can have a leader of its own",
                tuple(
                    EvidenceRef("api", object=name, text=f"{address} shows uid {uid}")
                    for uid, address in by_uid.items()
                ),
                "compare --etcd-servers and --etcd-prefix of the API servers; editing manifests"
                " does not help",
            )


def _different_etcd(cluster: Cluster) -> Iterator[Detection]:
    stores: dict[tuple[str, str], str] = {}
    for host in cluster.members:
        server, cluster_id = host.etcd.api_server, host.etcd.cluster_id
        if server is not None and cluster_id:
            stores.setdefault((cluster_id, server.etcd_prefix or "/registry"), host.host)
    if len(stores) > 1:
        yield Detection(
            "API servers store in different etcd clusters or under different prefixes",
            tuple(
                EvidenceRef("http", host, text=f"etcd cluster {store[0]}, prefix {store[1]}")
                for store, host in stores.items()
            ),
            "point every API server to one etcd cluster and prefix; editing manifests does not"
            " help",
        )


@cluster_check(
    "KM112",
    "Control-plane member was not audited",
    severity="warning",
    applies="every cluster",
    needs=("etcd",),
    cluster_needs=("nodes", "endpoints", "locks"),
)
def strangers(cluster: Cluster) -> Iterator[CheckResult]:
    """KM112: report a control-plane member outside the inventory, whose election is unknown."""
    pods = {stranger.name: _lock_of_pod(cluster, stranger) for stranger in cluster.strangers}
    stale = _stale_addresses(cluster)
    masters = [item for item in cluster.strangers if item.name not in stale]
    hits = tuple(_unlisted(stranger) for stranger in masters if not pods[stranger.name])
    missing = cluster.missing("nodes") + cluster.missing("endpoints")
    if hits and len(hits) <= len(cluster.unplaced):
        missing += tuple(Missing(host.host, "host", host.status) for host in cluster.unplaced)
        hits = ()
    shared = [_shared(cluster, name, lock) for name, lock in pods.items() if lock]
    if stale:
        shared.append(_stale(cluster, list(stale.values())))
    yield CheckResult((*hits, *shared), missing, cluster.key is not None, note=_silence(cluster))


def _unlisted(stranger: UnlistedMember) -> Detection:
    return Detection(
        f"{stranger.name} is a member of the control plane, but no host of the inventory: its"
        " leader election was not checked",
        (EvidenceRef("api", object=stranger.source),),
        f"add {stranger.name} to the inventory and run the audit again; if it was retired, stop"
        " the components that still run on it",
        node=stranger.name,
    )


def _stale_addresses(cluster: Cluster) -> dict[str, StaleEndpoint]:
    """Return the strangers that are addresses of removed masters, by their names."""
    rows = [(item.name, stale_endpoints.find(cluster, item)) for item in cluster.strangers]
    return {name: address for name, address in rows if address is not None}


def _stale(cluster: Cluster, rows: Sequence[StaleEndpoint]) -> Detection:
    """Report addresses of the Service kubernetes that are most likely those of removed masters."""
    addresses = [row.address for row in rows]
    reasons = and_others(list(dict.fromkeys(row.reason for row in rows)))
    at = etcd_commands.tool(cluster)
    server = next((host.etcd.api_server for host in cluster.members if host.etcd.api_server), None)
    prefix = server.etcd_prefix if server is not None else None
    if not prefix or not _PREFIX.fullmatch(prefix):
        prefix = "/registry"
    keys = "; ".join(
        f"$E del {prefix}/masterleases/{shell_name(address, 'ADDRESS')}" for address in addresses
    )
    return Detection(
        f"the Service kubernetes lists {and_others(addresses)}, which no Node and no member of etcd"
        f" has, and {reasons}. Most likely a master was removed, and its key stayed below"
        f" {prefix}/masterleases in etcd. Each connection that goes there fails. Leader election"
        " was not checked there",
        tuple(dict.fromkeys(row.proof for row in rows))[:SHOWN],
        "make sure that no machine has such an address (curl -k https://ADDRESS:PORT/healthz);"
        " if a master has it, add that one to the inventory and audit again. Else delete its key:"
        f" {at.begin}; $E get {prefix}/masterleases/ --prefix --keys-only; {keys}. The API servers"
        " write the addresses again within seconds; where these stay, kubectl -n default delete"
        " endpoints kubernetes, which they make again",
        component="masterleases",
    )


def _lock_of_pod(cluster: Cluster, stranger: UnlistedMember) -> str:
    """Return the lock that an ordinary pod has taken from the component of that name, or "".

    A pod of a Deployment is no host. Where the cluster's own component runs on its hosts, that pod
    is another program's.
    """
    if not _OF_DEPLOYMENT.search(stranger.name) or not cluster.answered(Nodes):
        return ""
    if any(stranger.name in node_hosts.names(node) for node in cluster.typed(Nodes).items):
        return ""
    names = _held_by(cluster, stranger.name)
    return next((name for name in names if _runs_on_hosts(cluster, name)), "")


def _held_by(cluster: Cluster, name: str) -> list[str]:
    """Return the names of the locks that a process of this host name holds."""
    locks = (lock for server in cluster.typed(Locks).servers for lock in server.objects)
    rows = [(lock.name or "", (lock.holder or "").rpartition("_")[0]) for lock in locks]
    return [lock for lock, holder in rows if lock and holder == name]


def _runs_on_hosts(cluster: Cluster, component: str) -> bool:
    planes = [host.control_plane for host in cluster.hosts if host.control_plane]
    processes = [process for plane in planes for process in plane.processes_of(component)]
    return any(process.static or process.unit for process in processes)


def _shared(cluster: Cluster, pod: str, lock: str) -> Detection:
    """Report a program that takes part in the election of a component."""
    owner = _OF_DEPLOYMENT.sub("", pod)
    return Detection(
        f"the pod {pod} holds the lock kube-system/{lock}, but it is not the {lock} of a"
        f" control-plane node: {owner} uses the same lock for its leader election, and only the"
        " holder of a lock works",
        (EvidenceRef("api", cluster.api_host, object=f"lock kube-system/{lock}", text=pod),),
        f"give {owner} its own lock (--leader-elect-resource-name and"
        " --leader-elect-resource-namespace, or leaderElection.resourceName of its configuration)"
        " and a Role for that lock; until then, scale it down: kubectl get deployments -A | grep"
        f" {shell_name(owner, 'NAME')}",
        component=lock,
        severity="critical",
    )


@cluster_check(
    "KM904",
    "Worker was not audited",
    severity="info",
    applies="every cluster",
    cluster_needs=("nodes",),
)
def unaudited(cluster: Cluster) -> Iterator[CheckResult]:
    """KM904: report a worker's Node that no host of the run is."""
    names = [
        name for name in node_hosts.unhosted(cluster) if name not in cluster.control_plane_nodes
    ]
    hits = tuple(
        Detection(
            f"the Node {name} was not audited: no host of this run is it",
            (EvidenceRef("api", object=f"Node {name}"),),
            f"add {name} to the inventory, in a group that the run has, and audit again; delete its"
            " Node if the machine is gone",
            node=name,
        )
        for name in names
    )
    missing = cluster.missing("nodes")
    silent = node_hosts.undecided(cluster)
    if hits and len(hits) <= len(silent):
        missing += tuple(_owed(host) for host in silent)
        hits = ()
    yield CheckResult(hits, missing, cluster.key is not None, note=_silence(cluster))


def _owed(host: Host) -> Missing:
    return (host.missing("system") or (Missing(host.host, "system", "not_asked"),))[0]


@cluster_check(
    "KM113",
    "Jobs got surplus pods",
    severity="warning",
    applies="Jobs that exist or have events (events expire after an hour)",
    cluster_needs=("jobs",),
    explained_by=causes("KM111")
    | causes("KM101", "KM102", "KM106", component="kube-controller-manager"),
)
def surplus_pods(cluster: Cluster) -> Iterator[CheckResult]:
    """KM113: report Jobs that got more pods at one time than they asked for.

    It is the symptom of a second controller manager.
    """
    bursts = []
    for job in cluster.typed(Jobs).items:
        pods = _surplus(job)
        if pods:
            names = ", ".join(f"{name} {created:%H:%M:%S}" for created, name in pods)
            job_name = f"Job {job.namespace}/{job.name}"
            bursts.append((pods[-1][0], job_name, len(pods), names))
    bursts.sort(reverse=True)
    hits = []
    if bursts:
        proofs = tuple(
            EvidenceRef("api", object=name, text=f"{count} pods created together: {names}")
            for _created, name, count, names in bursts[:5]
        )
        hits.append(
            Detection(
                f"{counted(len(bursts), 'Job')} got more pods at the same time than their"
                " parallelism allows, the last at"
                f" {bursts[0][0]:%Y-%m-%dT%H:%M:%SZ}",
                proofs,
                "find the second program that creates pods for these Jobs, usually another leader"
                " of the controller manager, and stop it. The Job controller deletes the surplus"
                " pods. This finding ends one hour after the last surplus pod, when the events of"
                " the Jobs expire",
            )
        )
    missing = cluster.missing("jobs") or cluster.cut("jobs")
    yield CheckResult(tuple(hits), missing, cluster.key is not None, note=_silence(cluster))


def _surplus(job: Job) -> list[tuple[datetime, str]]:
    """Return the pods of one burst that exceeds the Job's parallelism, oldest first.

    It is empty if replacements explain them.
    """
    if job.completions is None and job.parallelism is None:
        return []
    parallelism = 1
    if job.parallelism is not None:
        parallelism = job.parallelism
    created, ended = _lifetimes(job)
    for index, (begin, _name) in enumerate(created):
        burst = [pod for pod in created[index:] if _is_together(begin, pod[0])]
        excused = sum(_has_ended(ended, name, burst[-1][0]) for _created, name in burst[:-1])
        if len(burst) - excused > parallelism:
            return burst
    return []


def _is_together(begin: datetime, created: datetime) -> bool:
    return (created - begin).total_seconds() <= TOGETHER_SECONDS


def _has_ended(ended: Mapping[str, datetime | None], name: str, before: datetime) -> bool:
    end = ended.get(name)
    return end is not None and end <= before


def _lifetimes(job: Job) -> tuple[list[tuple[datetime, str]], dict[str, datetime | None]]:
    """Return creations sorted by time, and when each pod ended or began to go.

    They come from the pods that exist and the Job's events. A pod deleted by the Job controller
    itself (SuccessfulDelete) is no excuse for another: that is how a surplus ends. If it deleted
    none, a deleted pod was removed otherwise (a user, a drain, the loss of its node) and replaced.
    """
    surplus = {event.pod for event in job.events if event.reason == "SuccessfulDelete"}
    creations = _creation_events(job.events)
    ends: dict[str, datetime | None] = {}
    for pod in job.pods:
        time, name = timestamp(pod.created), pod.name
        if time and name:
            creations[name] = time
            if name not in surplus:
                ends[name] = _end(pod)
    if not surplus:
        ends.update(_removals(creations, job.pods))
    return _by_time(creations, ends), ends


def _creation_events(events: Iterable[Event]) -> dict[str, datetime]:
    """Return when the Job's events say that each pod was created, by the pod's name."""
    creations: dict[str, datetime] = {}
    for event in events:
        time, name = timestamp(event.first), event.pod
        if event.reason == "SuccessfulCreate" and time and name:
            creations.setdefault(name, time)
    return creations


def _removals(creations: Mapping[str, datetime], pods: Iterable[PodLife]) -> dict[str, datetime]:
    """Return the earliest end of each pod that was created and exists no more."""
    existing = {pod.name for pod in pods}
    return {
        name: time + timedelta(seconds=1)
        for name, time in creations.items()
        if name not in existing
    }


def _by_time(
    creations: Mapping[str, datetime], ends: Mapping[str, datetime | None]
) -> list[tuple[datetime, str]]:
    """Return creations, oldest first.

    The API reports seconds: of pods that were created in the same one, those that have ended came
    first.
    """

    def order(name: str) -> tuple[datetime, bool, datetime, str]:
        end = ends.get(name)
        return creations[name], end is None, end or creations[name], name

    return [(creations[name], name) for name in sorted(creations, key=order)]


def _end(pod: PodLife) -> datetime | None:
    ends = [timestamp(time) for time in (pod.deletion_requested, pod.finished_at)]
    return min((end for end in ends if end), default=None)
