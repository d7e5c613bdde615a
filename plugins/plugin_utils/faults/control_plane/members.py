# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Predicates about a cluster as its API, its etcd and its members tell it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from ...models import control_plane, node_hosts
from ...models.cluster import Cluster, Host, timestamp
from ...models.result import Missing, Proof
from ...parsers import pflag as flags
from ...parsers import pod_manifest as manifest
from ..base import Hit, Outcome, causes, cluster_check
from .leader_election import silent_members

KUBEADM_CONFIG = "ConfigMap kube-system/kubeadm-config"
_SECTIONS = {"scheduler": "kube-scheduler", "controllermanager": "kube-controller-manager"}
# A replacement is only made once its predecessor has failed or goes: two creations this close are
# no replacement.
TOGETHER_SECONDS = 5


@cluster_check(
    "KM110",
    "kubeadm-config switches leader election off again",
    severity="warning",
    applies="clusters with a kubeadm-config ConfigMap and more than one master",
    risk=1,
    cluster_needs=("kubeadm_config", "nodes"),
)
def kubeadm_config(cluster: Cluster) -> Iterator[Outcome]:
    """KM110: extraArgs that switch election off again at the next `kubeadm upgrade`."""
    absent = (
        cluster.key is None or (cluster.api.get("kubeadm_config") or {}).get("status") == "absent"
    )
    alone = len(cluster.members) + len(cluster.strangers) == 1
    if absent or alone:
        yield Outcome(
            applies=False,
            note="no kubeadm-config" if absent else "a single master needs no election",
        )
        return
    record = cluster.answer("kubeadm_config") or {}
    hits, missing = [], list(cluster.missing("kubeadm_config"))
    try:
        for component, value, line in _switched_off(record):
            hits.append(
                Hit(
                    f"kubeadm-config sets leader-elect to {value!r}: the next kubeadm upgrade"
                    " writes it again",
                    (
                        Proof(
                            "api",
                            object=KUBEADM_CONFIG,
                            path="ClusterConfiguration",
                            line=line,
                            text=f"leader-elect: {value}",
                        ),
                    ),
                    f"in {KUBEADM_CONFIG}, ClusterConfiguration line {line}, set leader-elect to"
                    ' "true" or remove it',
                    component=component,
                )
            )
    except manifest.ManifestError:
        missing.append(Missing(cluster.api_host or "cluster API", "kubeadm_config", "error"))
    yield Outcome(tuple(hits), tuple(missing), note=_silence(cluster))


def switched_off(record: Mapping[str, Any]) -> dict[str, str]:
    """Section of the ClusterConfiguration -> component, of those whose leader-elect is not true
    there.
    """
    names = {"kube-controller-manager": "controllerManager", "kube-scheduler": "scheduler"}
    off = {component for component, dummy, dummy in _switched_off(record)}
    return {section: component for component, section in names.items() if component in off}


def _switched_off(record: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    text = manifest.parseable(record.get("text") or "", control_plane.spans(record))
    for component, value, line in _leader_elect_args(text):
        if flags.parse_bool(value) is not True:
            yield component, value, line


def _leader_elect_args(text: str) -> Iterator[tuple[str, str, int]]:
    """(component, value, line) of leader-elect in extraArgs.

    A map up to v1beta3, a list of name and value since.
    """
    names: dict[tuple[Any, ...], str] = {}
    for path, value, line in manifest.scalars(text):
        if (
            len(path) < 3
            or str(path[0]).lower() not in _SECTIONS
            or str(path[1]).lower() != "extraargs"
        ):
            continue
        component = _SECTIONS[str(path[0]).lower()]
        if len(path) == 3 and flags.normalise(str(path[2])) == "leader-elect":
            yield component, value, line
        elif len(path) == 4 and path[3] == "name":
            names[path[:3]] = flags.normalise(value)
        elif len(path) == 4 and path[3] == "value" and names.get(path[:3]) == "leader-elect":
            yield component, value, line


def _silence(cluster: Cluster) -> str:
    """Why the API told nothing, in the words of the host that asked it last."""
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
def split_storage(cluster: Cluster) -> Iterator[Outcome]:
    """KM111: API servers that do not show the same lock objects, because they write to different
    stores.
    """
    if cluster.key is None:
        yield Outcome(applies=False)
        return
    servers = [
        item
        for item in (cluster.answer("locks") or {}).get("servers") or ()
        if not item.get("error")
    ]
    asked = (cluster.answer("locks") or {}).get("servers") or ()
    hits = list(_different_objects(servers)) + list(_different_etcd(cluster))
    missing = list(cluster.missing("locks"))
    missing += [
        Missing(item.get("address") or "API server", "locks", "error")
        for item in asked
        if item.get("error")
    ]
    missing += silent_members(cluster, "etcd")
    yield Outcome(tuple(hits[:1]), tuple(dict.fromkeys(missing)))


def _different_objects(servers: list[Mapping[str, Any]]) -> Iterator[Hit]:
    seen: dict[str, dict[str, str]] = {}
    for server in servers:
        marks = {"Namespace kube-system": server.get("kube_system_uid")}
        for lock in server.get("objects") or ():
            if lock.get("name") in control_plane.ELECTED:
                marks[f"{lock.get('kind')} kube-system/{lock['name']}"] = lock.get("uid")
        for name, uid in marks.items():
            if uid:
                seen.setdefault(name, {}).setdefault(uid, str(server.get("address")))
    for name, by_uid in seen.items():
        if len(by_uid) > 1:
            yield Hit(
                "API servers show different objects under one name: they store in different places,"
                " so each lock can have a holder of its own",
                tuple(
                    Proof("api", object=name, text=f"{address} shows uid {uid}")
                    for uid, address in by_uid.items()
                ),
                "compare --etcd-servers and --etcd-prefix of the API servers; editing manifests"
                " does not help",
            )


def _different_etcd(cluster: Cluster) -> Iterator[Hit]:
    stores: dict[tuple[str, str], str] = {}
    for host in cluster.members:
        server = host.etcd.get("api_server") or {}
        if server and host.etcd.get("cluster_id"):
            stores.setdefault(
                (host.etcd["cluster_id"], server.get("etcd_prefix") or "/registry"), host.host
            )
    if len(stores) > 1:
        yield Hit(
            "API servers store in different etcd clusters or under different prefixes",
            tuple(
                Proof("http", host, text=f"etcd cluster {store[0]}, prefix {store[1]}")
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
def strangers(cluster: Cluster) -> Iterator[Outcome]:
    """KM112: a member of the control plane that the audit does not know.

    Its election is nobody's knowledge.
    """
    hits = tuple(
        Hit(
            f"{stranger.name} belongs to the control plane and is no host of the inventory",
            (Proof("api", object=stranger.source),),
            f"add {stranger.name} to the inventory and audit again; if it was retired, stop what it"
            " still runs",
            node=stranger.name,
        )
        for stranger in cluster.strangers
    )
    missing = cluster.missing("nodes") + cluster.missing("endpoints")
    if len(hits) <= len(cluster.unplaced):
        missing += (
            tuple(Missing(host.host, "host", host.status) for host in cluster.unplaced)
            if hits
            else ()
        )
        hits = ()
    yield Outcome(hits, missing, cluster.key is not None, note=_silence(cluster))


@cluster_check(
    "KM904",
    "Worker was not audited",
    severity="info",
    applies="every cluster",
    cluster_needs=("nodes",),
)
def unaudited(cluster: Cluster) -> Iterator[Outcome]:
    """KM904: a worker's Node that no host of the run is."""
    names = [
        name for name in node_hosts.unhosted(cluster) if name not in cluster.control_plane_nodes
    ]
    hits = tuple(
        Hit(
            f"the Node {name} was not audited: no host of this run is it",
            (Proof("api", object=f"Node {name}"),),
            f"add {name} to the inventory, in a group that the run has, and audit again; delete its"
            " Node if the machine is gone",
            node=name,
        )
        for name in names
    )
    missing = cluster.missing("nodes")
    silent = node_hosts.undecided(cluster)
    if len(hits) <= len(silent):
        missing += tuple(_owed(host) for host in silent) if hits else ()
        hits = ()
    yield Outcome(hits, missing, cluster.key is not None, note=_silence(cluster))


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
def surplus_pods(cluster: Cluster) -> Iterator[Outcome]:
    """KM113: Jobs that got more pods at one time than they asked for.

    The symptom of a second controller manager.
    """
    hits = []
    for job in (cluster.answer("jobs") or {}).get("items") or ():
        pods = _surplus(job)
        if not pods:
            continue
        named = ", ".join(f"{name} {when:%H:%M:%S}" for when, name in pods)
        hits.append(
            (pods[-1][0], f"Job {job.get('namespace')}/{job.get('name')}", len(pods), named)
        )
    hits.sort(reverse=True)
    found = ()
    if hits:
        shown = tuple(
            Proof("api", object=name, text=f"{count} pods created together: {named}")
            for _when, name, count, named in hits[:5]
        )
        jobs = f"{len(hits)} Job{'s' if len(hits) > 1 else ''}"
        found = (
            Hit(
                f"{jobs} got more pods at one time than asked for",
                shown,
                "repair what creates them twice; the surplus pods are deleted by the Job controller"
                " itself",
            ),
        )
    missing = cluster.missing("jobs")
    missing = missing or cluster.cut("jobs")
    yield Outcome(found, missing, cluster.key is not None, note=_silence(cluster))


def _surplus(job: Mapping[str, Any]) -> list[tuple[datetime, str]]:
    """The pods of one burst that exceeds the Job's parallelism, oldest first.

    Empty where a replacement explains it.
    """
    wanted = job.get("parallelism")
    wanted = 1 if wanted is None else int(wanted)
    if not isinstance(job.get("completions"), int) and job.get("parallelism") is None:
        return []
    created, ended = _lifetimes(job)
    for index, (begin, _name) in enumerate(created):
        burst = [
            item
            for item in created[index:]
            if (item[0] - begin).total_seconds() <= TOGETHER_SECONDS
        ]
        excused = sum(
            1
            for _when, name in burst[:-1]
            if name in ended and ended[name] is not None and ended[name] <= burst[-1][0]
        )
        if len(burst) - excused > wanted:
            return burst
    return []


def _lifetimes(
    job: Mapping[str, Any],
) -> tuple[list[tuple[datetime, str]], dict[str, datetime | None]]:
    """(creations sorted by time, the time each pod ended or began to go) from pods that exist and
    the Job's events.

    A pod deleted by the Job controller itself (SuccessfulDelete) is no excuse for another: that is
    how a surplus ends. Where it deleted none, a pod that is no more was taken away by somebody else
    (a user, a drain, the loss of its node) and replaced.
    """
    born: dict[str, datetime] = {}
    ended: dict[str, datetime | None] = {}
    surplus = {
        event.get("pod")
        for event in job.get("events") or ()
        if event.get("reason") == "SuccessfulDelete"
    }
    for event in job.get("events") or ():
        when, name = timestamp(event.get("first")), event.get("pod")
        if event.get("reason") == "SuccessfulCreate" and when and name:
            born.setdefault(name, when)
    for pod in job.get("pods") or ():
        when = timestamp(pod.get("created"))
        if when and pod.get("name"):
            born[pod["name"]] = when
            if pod["name"] not in surplus:
                ends = [timestamp(pod.get(key)) for key in ("deletion_requested", "finished_at")]
                ended[pod["name"]] = min((end for end in ends if end), default=None)
    listed = {pod.get("name") for pod in job.get("pods") or ()}
    if not surplus:
        ended.update(
            (name, when + timedelta(seconds=1)) for name, when in born.items() if name not in listed
        )
    # The API tells seconds: of pods that were made in the same one, those that have ended came
    # first.
    order = sorted(
        born,
        key=lambda name: (born[name], ended.get(name) is None, ended.get(name) or born[name], name),
    )
    return [(born[name], name) for name in order], ended
