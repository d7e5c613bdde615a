# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PRIVATE to this collection: hosts put together to clusters, and who is a member of each control plane."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from ansible_collections.kubemend.remediation.plugins.plugin_utils import control_plane, node_identity, pinning
from ansible_collections.kubemend.remediation.plugins.plugin_utils.control_plane import ControlPlane
from ansible_collections.kubemend.remediation.plugins.plugin_utils.model import Missing
from ansible_collections.kubemend.remediation.plugins.plugin_utils.node_identity import Identity
from ansible_collections.kubemend.remediation.plugins.plugin_utils.pinning import Pinning

# A lock that nobody renewed for this long has no holder: left by a retired master, or by a former release's lock kind.
STALE_LOCK_SECONDS = 120
# The one cluster of hosts none of which proved its own: no root, or nobody answered.
UNPROVEN = "unproven"


@dataclass(frozen=True)
class Host:
    """What judging keeps of one host once its evidence file is closed: memory must not grow with the files."""

    host: str
    node: str | None
    key: str | None
    status: str
    reason: str
    groups: tuple[str, ...]
    names: frozenset[str]
    statuses: Mapping[str, str]
    control_plane: ControlPlane | None
    etcd: Mapping[str, Any]
    installer: tuple[str, ...]
    devices: Mapping[str, Any] = field(default_factory=dict)
    kubelet_started: datetime | None = None
    pinning: Pinning = Pinning()
    identity: Identity = Identity()
    working: frozenset[str] = frozenset()  # runs of ours that are at work there
    api_way: Mapping[str, Any] = field(default_factory=dict)
    scheduler_log: Mapping[str, Any] = field(default_factory=dict)
    clock: tuple[float, float] | None = None  # seconds by which it is ahead of the controller's, at least and at most

    def missing(self, collector: str, *, absent_is_answer: bool = True) -> tuple[Missing, ...]:
        """Empty when this host's collector answered, else the one thing that is missing."""
        if self.status != "ok":
            return (Missing(self.host, "host", self.status),)
        status = self.statuses.get(collector, "not_asked")
        if status == "ok" or (status == "absent" and absent_is_answer):
            return ()
        return (Missing(self.host, collector, status),)


@dataclass(frozen=True)
class Stranger:
    """A member of the control plane that is no host of the inventory. source: what names it."""

    name: str
    source: str


@dataclass
class Cluster:
    """One cluster's hosts and the API's view of it. api: collectors of the cluster evidence; api_status: how it went."""

    key: str | None
    hosts: list[Host]
    api: Mapping[str, Any] = field(default_factory=dict)
    api_host: str | None = None
    api_status: str = "not_asked"
    api_reason: str = ""
    collected_at: str = ""
    strangers: list[Stranger] = field(default_factory=list)
    members: list[Host] = field(default_factory=list)
    unplaced: list[Host] = field(default_factory=list)

    def answer(self, collector: str) -> Any:
        """A cluster collector's data when it answered, else None."""
        record = self.api.get(collector) or {}
        return record.get("data") if record.get("status") == "ok" else None

    def rows(self, collector: str, name: str) -> list[Mapping[str, Any]]:
        """What this list of a cluster collector's data holds, without what is none of its rows."""
        data = self.answer(collector)
        found = data.get(name) if isinstance(data, Mapping) else None
        return [one for one in found if isinstance(one, Mapping)] if isinstance(found, (list, tuple)) else []

    def cut(self, collector: str) -> tuple[Missing, ...]:
        """What is missing where the API's list was too long, or took too long: the rest of it."""
        return (Missing(self.api_host or "cluster API", collector, "timeout"),) if (self.api.get(collector) or {}).get("truncated") else ()

    def missing(self, collector: str, *, absent_is_answer: bool = False) -> tuple[Missing, ...]:
        """Empty when the API answered this collector, else the one thing that is missing."""
        nobody = "not_asked" if self.api_status == "ok" else self.api_status
        status = (self.api.get(collector) or {}).get("status") or nobody
        if status == "ok" or (status == "absent" and absent_is_answer):
            return ()
        return (Missing(self.api_host or "cluster API", collector, status),)

    @property
    def working(self) -> frozenset[str]:
        """Runs of ours that are at work, as far as the hosts and whoever asked the API know."""
        return frozenset().union(_working(self.answer("work") or {}), *(host.working for host in self.hosts))

    @property
    def version(self) -> str | None:
        return (self.answer("server") or {}).get("git_version")


LAST = 253402300799.0  # the end of the year 9999, in seconds since the epoch


def host_of(document: Mapping[str, Any]) -> Host:
    """The extract of one node evidence document."""
    system = control_plane.data(document, "system")
    names = {document["host"], document.get("node"), document.get("address"), system.get("hostname")}
    names.update(system.get("addresses") or ())
    installer = control_plane.data(document, "installer").get("paths") or ()
    kubelet = control_plane.data(document, "kubelet").get("process")
    kubelet = kubelet if isinstance(kubelet, Mapping) else {}
    return Host(
        document["host"], document.get("node"), document.get("cluster_key"), document.get("status", "ok"),
        document.get("reason") or "", tuple(document.get("groups") or ()),
        frozenset(str(name) for name in names if name) - {"127.0.0.1", "::1"},
        {name: record.get("status", "error") for name, record in document.get("collectors", {}).items()},
        control_plane.extract(document), control_plane.data(document, "etcd"), tuple(installer), control_plane.data(document, "devices"),
        moment(kubelet.get("started_at")), pinning.extract(document), node_identity.extract(document), _working(control_plane.data(document, "journal")),
        control_plane.data(document, "api_way"), control_plane.data(document, "scheduler_log"), _clock(document, system.get("clock")))


def _clock(document: Mapping[str, Any], clock: Any) -> tuple[float, float] | None:
    """Between which bounds the host's clock is ahead of the controller's; None where one of the three times is missing, or they contradict each other."""
    times = [value for value in (document.get("asked_at"), clock, document.get("received_at"))
             if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < LAST]
    if len(times) < 3 or times[0] > times[2]:
        return None
    return times[1] - times[2], times[1] - times[0]


def _working(journal: Mapping[str, Any]) -> frozenset[str]:
    """Runs that hold the lock of a host, or have a step under way on it."""
    held = journal.get("lock") or {}
    steps = [one for one in journal.get("unproven") or () if one.get("running")]
    return frozenset(str(one.get("run_id")) for one in [*steps, *([held] if held.get("held") else [])])


def unjudged(known: Mapping[str, Any], reason: str) -> Host:
    """The extract of a host whose evidence cannot be judged; known: its document or former extract."""
    key, node, groups = (known.get("cluster_key") or known.get("key"), known.get("node"), known.get("groups"))
    return Host(known["host"], node if isinstance(node, str) else None, key if isinstance(key, str) else None, "error", reason,
                tuple(groups) if isinstance(groups, (list, tuple)) else (), frozenset([known["host"]]), {}, None, {}, ())


def assemble(hosts: Iterable[Host], documents: Iterable[Mapping[str, Any]]) -> list[Cluster]:
    """Clusters of these hosts, each with the best cluster evidence found for it; hosts of none come last, key None."""
    hosts, documents = list(hosts), list(documents)
    keys = {host.host: host.key for host in hosts}
    canonical = _canonical_keys(hosts, documents, keys)
    clusters: dict[str, Cluster] = {}
    homeless: list[Host] = []
    if not canonical and any(_may_be_kubernetes(host) for host in hosts):
        clusters[UNPROVEN] = Cluster(UNPROVEN, [])
    for host in hosts:
        if host.key:
            clusters.setdefault(canonical[host.key], Cluster(canonical[host.key], [])).hosts.append(host)
        else:
            homeless.append(host)
    for document in sorted(documents, key=lambda item: item.get("status") != "ok"):
        key = canonical.get(document.get("cluster_key") or keys.get(document["host"]) or "", UNPROVEN)
        if key == UNPROVEN and UNPROVEN not in clusters:
            continue
        cluster = clusters.setdefault(key, Cluster(key, []))
        if cluster.api_status != "ok":
            cluster.api = document.get("collectors") or {}
            cluster.api_host, cluster.api_status = document["host"], document.get("status", "ok")
            cluster.api_reason, cluster.collected_at = document.get("reason") or "", document.get("collected_at") or ""
    nowhere = _house(homeless, clusters)
    found = [clusters[key] for key in sorted(clusters)]
    for cluster in found:
        cluster.hosts.sort(key=lambda host: host.host)
        _find_members(cluster)
    return found + ([Cluster(None, nowhere)] if nowhere else [])


def _canonical_keys(hosts: list[Host], documents: list[Mapping[str, Any]], keys: Mapping[str, str | None]
                    ) -> dict[str, str]:
    """Each key's cluster: keys are joined where two CA bundles were seen with one kube-system uid."""
    canonical = {host.key: host.key for host in hosts if host.key}
    by_uid: dict[str, str] = {}
    for document in documents:
        key = document.get("cluster_key") or keys.get(document["host"])
        uid = (control_plane.data(document, "server")).get("kube_system_uid")
        if not key:
            continue
        canonical.setdefault(key, key)
        first = by_uid.setdefault(uid, canonical[key]) if uid else canonical[key]
        other = canonical[key]
        for name in canonical:
            if canonical[name] == other:
                canonical[name] = first
    return canonical


def _house(homeless: list[Host], clusters: dict[str, Cluster]) -> list[Host]:
    """Hosts without a proven cluster go where the API or etcd names them, else to the only cluster there is.

    A host that answered and runs neither kubelet nor control plane is in no cluster: returned.
    """
    nowhere = []
    for host in homeless:
        named = [cluster for cluster in clusters.values() if host.names & _named(cluster)]
        if len(named) == 1:
            named[0].hosts.append(host)
        elif len(clusters) == 1 and _may_be_kubernetes(host):
            next(iter(clusters.values())).hosts.append(host)
        else:
            nowhere.append(host)
    return nowhere


def _may_be_kubernetes(host: Host) -> bool:
    return host.status != "ok" or host.statuses.get("kubelet") != "absent" or host.control_plane is not None


def _named(cluster: Cluster) -> set[str]:
    names: set[str] = set()
    for item in (cluster.answer("nodes") or {}).get("items") or ():
        names.add(item.get("name"))
        names.update(address.get("address") for address in item.get("addresses") or ())
    for host in cluster.hosts:
        for member in host.etcd.get("members") or ():
            names.update(_etcd_names(member))
    return names


def _etcd_names(member: Mapping[str, Any]) -> set[str]:
    names = {member.get("name") or ""}
    for url in list(member.get("peer_urls") or ()) + list(member.get("client_urls") or ()):
        names.add(url.split("://", 1)[-1].rsplit(":", 1)[0].strip("[]"))
    return names - {"", "127.0.0.1", "localhost", "::1"}


def _find_members(cluster: Cluster) -> None:
    """Members: hosts that the inventory, their own components, the API or etcd place in the control plane."""
    known = {name: host for host in cluster.hosts for name in host.names}
    nodes = (cluster.answer("nodes") or {}).get("items") or ()
    for item in nodes:
        host = known.get(item.get("name") or "") or next(
            (known[a["address"]] for a in item.get("addresses") or () if a.get("address") in known), None)
        if host is not None:
            known[item["name"]] = host
            known.update((a["address"], host) for a in item.get("addresses") or () if a.get("address"))
    members = {host.host: host for host in cluster.hosts if _is_member(host)}
    strangers: dict[str, Stranger] = {}
    witnesses = list(_witnesses(cluster, nodes))
    for aliases, source in witnesses:
        host = next((known[alias] for alias in aliases if alias in known), None)
        if host is not None:
            members[host.host] = host
        elif not any(alias in strangers for alias in aliases):
            strangers.update(dict.fromkeys(aliases, Stranger(aliases[0], source)))
    cluster.members = [members[name] for name in sorted(members)]
    cluster.strangers = list({stranger.name: stranger for stranger in strangers.values()}.values())
    # Silent hosts that nobody names: where the inventory calls a host otherwise than its cluster does, a stranger may be one.
    cluster.unplaced = [host for host in cluster.hosts if host.status != "ok" and "node" not in host.groups
                        and not any(host is known.get(alias) for aliases, _source in witnesses for alias in aliases)]


def _is_member(host: Host) -> bool:
    plane = host.control_plane
    return "control_plane" in host.groups or (plane is not None and (
        any(use.component != "etcd" for use in plane.files)
        or any(item.ours and item.component not in ("etcd", "cloud-controller-manager") for item in plane.processes)))


def _witnesses(cluster: Cluster, nodes: Iterable[Mapping[str, Any]]) -> Iterable[tuple[list[str], str]]:
    """Every member that somebody names, as (its names and addresses, what names it)."""
    for item in nodes:
        if item.get("control_plane"):
            addresses = [a["address"] for a in item.get("addresses") or () if a.get("address")]
            yield [item["name"], *addresses], f"Node {item['name']} carries the control-plane role"
    advertised = {_flag(item.argv, "advertise-address") for host in cluster.hosts if host.control_plane
                  for item in host.control_plane.of("kube-apiserver")}
    for address in (cluster.answer("endpoints") or {}).get("addresses") or ():
        ip = address.rsplit(":", 1)[0].strip("[]")
        if ip not in advertised:
            yield [ip], f"endpoint {address} of the service default/kubernetes"
    yield from _etcd_witnesses(cluster)
    yield from _lock_witnesses(cluster)


def _flag(argv: tuple[str, ...], name: str) -> str | None:
    return control_plane.flags.string_flag(argv, name)


def _etcd_witnesses(cluster: Cluster) -> Iterable[tuple[list[str], str]]:
    """etcd's live members, where etcd is stacked: an external etcd's hosts run no scheduler."""
    members = {member.get("id"): member for host in cluster.hosts for member in host.etcd.get("members") or ()}
    own = {name for host in cluster.hosts if _is_member(host) for name in host.names}
    named = [sorted(_etcd_names(member), key=lambda name: name != member.get("name")) for member in members.values()]
    if any(own.intersection(names) for names in named):
        for names in named:
            if names:
                yield names, f"member {names[0]} of etcd"


def lost(cluster: Cluster) -> list[str]:
    """What of the control plane's redundancy is gone already, in words; what only its own evidence can prove of a host that answers."""
    etcd = {name for host in cluster.hosts for member in host.etcd.get("members") or () for name in _etcd_names(member)}
    found = []
    for host in cluster.members:
        if host.status == "not_asked":
            continue
        if host.status != "ok":
            found.append(f"{host.host} does not answer")
        elif host.statuses.get("instances") == "ok":
            running = {item.component for item in host.control_plane.processes} if host.control_plane else set()
            stacked = bool(etcd & host.names)
            found += [f"{name} of {host.host} does not run" for name in ("etcd",) * stacked + ("kube-apiserver",) if name not in running]
    return found


def _lock_witnesses(cluster: Cluster) -> Iterable[tuple[list[str], str]]:
    """Hosts that hold a lock now. An instance in an ordinary pod signs with its pod's name, which is no host."""
    now = timestamp(cluster.collected_at)
    podded = {item.component for host in cluster.hosts if host.control_plane for item in host.control_plane.processes
              if item.ours and item.pod_uid and not item.static}
    for server in (cluster.answer("locks") or {}).get("servers") or ():
        for lock in server.get("objects") or ():
            holder, renewed = lock.get("holder") or "", timestamp(lock.get("renew_time"))
            if lock.get("name") not in control_plane.ELECTED or lock["name"] in podded or not holder:
                continue
            if now and renewed and (now - renewed).total_seconds() > STALE_LOCK_SECONDS:
                continue
            yield [holder.rsplit("_", 1)[0]], f"holder of the {lock.get('kind')} kube-system/{lock['name']}"


def timestamp(text: str | None) -> datetime | None:
    """An RFC 3339 time of the API (with or without fractions), or None."""
    try:
        found = datetime.fromisoformat(str(text or "").replace("Z", "+00:00"))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def moment(seconds: object) -> datetime | None:
    """A time that a node gives in seconds since 1970, or None."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or seconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(seconds, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None
