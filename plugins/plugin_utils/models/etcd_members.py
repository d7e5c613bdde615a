# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members of a cluster's etcd: which of them are up, and what each reports. Pure.

Three witnesses: the list of members, a member's own answer on its host, and the connections that
the others count. Where the list is not answered, the connections name the members by their ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..evidence import memoize
from ..evidence.answers.cluster.nodes import Nodes
from ..evidence.answers.node.etcd import Etcd, LocalMember, Member, Metrics, Peer
from . import node_hosts
from .cluster import Cluster, Host
from .membership import etcd_names
from .result import Missing

UP, DOWN, UNKNOWN = "up", "down", "unknown"
# A member that has just started has no connection yet; etcd looks after its peers every 5 s.
SETTLED_SECONDS = 60.0
TIMED_OUT, STOPPED = (
    "timed out",
    "its process is stopped (SIGSTOP, or a debugger), and says nothing",
)


@dataclass(frozen=True)
class MemberView:
    """One member of etcd.

    host: where it runs, None where no host of the run has its name or address. why: what shows its
    state, a clause. listed: whether the list of members has it.
    """

    member: Member
    host: Host | None
    state: str
    why: str = ""
    listed: bool = True

    @property
    def id(self) -> str:
        """Return its id as etcd's API writes it, "" where that is not known."""
        return self.member.id or ""

    @property
    def hexadecimal(self) -> str:
        """Return its id as etcdctl and the logs write it."""
        if self.id.isdecimal():
            return f"{int(self.id):x}"
        return "?"

    @property
    def is_started(self) -> bool:
        """Tell whether it ever started: it writes its name at its first start."""
        return bool(self.member.name) or not self.listed

    @property
    def name(self) -> str:
        """Return its name, else its address, else its id."""
        if self.member.name:
            return self.member.name
        if self.host is not None:
            return self.host.host
        return next(iter(sorted(etcd_names(self.member))), self.hexadecimal)


@dataclass(frozen=True)
class View:
    """All members of the etcd of a cluster.

    strays: hosts whose own etcd runs and is none of the listed members.
    """

    members: tuple[MemberView, ...] = ()
    strays: tuple[Host, ...] = ()

    @property
    def voters(self) -> list[MemberView]:
        """Return the members that count for the quorum."""
        return [view for view in self.members if not view.member.learner]

    @property
    def quorum(self) -> int:
        """Return how many voters have to be up."""
        return len(self.voters) // 2 + 1

    @property
    def margin(self) -> int:
        """Return how many more voters may fail, where each unknown one is up."""
        return sum(view.state != DOWN for view in self.voters) - self.quorum


def local_member(host: Host) -> LocalMember | None:
    """Return what the collector read of the etcd of a host itself."""
    return host.etcd_said.local


def metrics_of(host: Host) -> Metrics | None:
    """Return the metrics of the etcd of a host itself."""
    local = local_member(host)
    if local is None:
        return None
    return local.metrics


def own_id(host: Host) -> str | None:
    """Return the id of the member that runs on a host, None where it does not tell."""
    metrics, status = metrics_of(host), host.etcd_said.status
    if metrics is not None and metrics.member_id:
        return metrics.member_id
    if (
        local_member(host) is not None
        and status is not None
        and _is_own_address(host, status.endpoint)
    ):
        return status.member_id
    return None


def _is_own_address(host: Host, url: str | None) -> bool:
    address = (url or "").rpartition("://")[2].rpartition(":")[0].strip("[]")
    return address in {"127.0.0.1", "localhost", "::1"} | host.names


@memoize.last
def view(cluster: Cluster) -> View:
    """Return the members of a cluster's etcd, an empty view where nothing is known of them."""
    listed = _listed(cluster)
    if listed:
        members = [_view_of(cluster, member) for member in listed]
    else:
        members = [
            _view_of(cluster, Member(id=id_, name=name), listed=False)
            for id_, name in sorted(_connected(cluster).items())
        ]
    ids = {None, *(member.id for member in listed)}
    strays = [host for host in cluster.hosts if listed and own_id(host) not in ids]
    return View(tuple(members), tuple(strays))


def _listed(cluster: Cluster) -> list[Member]:
    """Return the members that most hosts with a list have, of the cluster id that most have."""
    answers = [host.etcd_said for host in cluster.hosts if host.etcd_said.members]
    ids = Counter(answer.cluster_id for answer in answers)
    if not ids:
        return []
    common = ids.most_common(1)[0][0]
    lists = [answer.members for answer in answers if answer.cluster_id == common]
    return _common(lists)


def _common(lists: list[tuple[Member, ...]]) -> list[Member]:
    """Return the members that at least half of these lists have."""
    all_members = [member for members in lists for member in members]
    counts = Counter(member.id for member in all_members)
    members = {member.id: member for member in all_members}
    kept = [member for id_, member in members.items() if counts[id_] * 2 >= len(lists)]
    return sorted(kept, key=lambda member: (member.name, member.id or ""))


def _connected(cluster: Cluster) -> dict[str, str]:
    """Map the ids of members that metrics name to the names that their own settings have."""
    names: dict[str, str] = {}
    for host in cluster.hosts:
        metrics, local = metrics_of(host), local_member(host)
        if metrics is None or local is None:
            continue
        for peer in metrics.peers:
            if peer.id:
                names.setdefault(peer.id, "")
        if metrics.member_id:
            names[metrics.member_id] = local.settings.get("name") or host.host
    return names


def _view_of(cluster: Cluster, member: Member, listed: bool = True) -> MemberView:
    host = _host_of(cluster, member)
    state, reason = _state(cluster, member, host)
    return MemberView(member, host, state, reason, listed)


def _host_of(cluster: Cluster, member: Member) -> Host | None:
    """Return the host that runs a member, or should: by its id, its addresses, its name."""
    by_id = [host for host in cluster.hosts if member.id and own_id(host) == member.id]
    if by_id:
        return by_id[0]
    names = etcd_names(member)
    by_address = [host for host in cluster.hosts if host.names & names]
    return next(iter(by_address), None)


def _state(cluster: Cluster, member: Member, host: Host | None) -> tuple[str, str]:
    """Return whether a member is up, and what shows it."""
    if host is not None and host.status == "ok" and _answers(host, member):
        return UP, "it answers"
    if host is not None and _is_mute(host):
        # its connections stay open, so that the others count it as connected
        return (DOWN, STOPPED) if _is_stopped(host) else (UNKNOWN, "")
    return _state_by_others(cluster, member, host)


def _state_by_others(cluster: Cluster, member: Member, host: Host | None) -> tuple[str, str]:
    """Return whether the other members are connected to one, and what shows it."""
    witnesses = _witnesses(cluster, member)
    if any(witnesses.values()):
        return UP, "other members are connected to it"
    if witnesses:
        return DOWN, f"no connection to it from {', '.join(sorted(witnesses))}"
    if host is None or host.status != "ok" or not has_no_process(host):
        return UNKNOWN, ""
    if not host.etcd_initial.unit:
        return DOWN, "no process of it runs"
    if member.name:
        return UNKNOWN, ""
    return DOWN, f"{host.etcd_initial.unit} of its host runs without joining"


def _is_mute(host: Host) -> bool:
    """Tell whether the etcd of a host takes connections and says nothing, at each address."""
    local = local_member(host)
    if host.status != "ok" or local is None or host.etcd_said.status is not None:
        return False
    errors = [*(host.etcd_said.error or "").split("; "), local.metrics_error or ""]
    return all(error.endswith(TIMED_OUT) for error in errors)


def _is_stopped(host: Host) -> bool:
    local = local_member(host)
    return local is not None and local.state == "T"


def _answers(host: Host, member: Member) -> bool:
    """Tell whether the member itself answered on its host."""
    if own_id(host) is not None:
        return own_id(host) == member.id
    if _is_own_address(host, host.etcd_said.endpoint):
        return True
    status = host.etcd_said.status
    return status is not None and bool(member.id) and status.member_id == member.id


def _witnesses(cluster: Cluster, member: Member) -> dict[str, bool]:
    """Map the hosts whose etcd knows a leader to whether it is connected to the member."""
    witnesses = {}
    for host in cluster.hosts:
        metrics, local = metrics_of(host), local_member(host)
        if metrics is None or local is None or metrics.member_id in (None, member.id):
            continue
        if (local.uptime_s or 0.0) < SETTLED_SECONDS:
            continue
        peer = next((peer for peer in metrics.peers if peer.id == member.id), Peer())
        witnesses[host.host] = bool(peer.active)
    return witnesses


def has_no_process(host: Host) -> bool:
    """Tell whether a host has no etcd, by the list of its processes.

    One that was taken out of the control plane has neither processes nor manifests of it.
    """
    plane, status = host.control_plane, host.statuses.get("instances")
    if status not in ("ok", "absent"):
        return False
    if plane is None:
        return status == "ok" and local_member(host) is None
    return local_member(host) is None and not plane.processes_of("etcd")


def is_known(cluster: Cluster) -> bool:
    """Tell whether anything is known of an etcd of this cluster."""
    return any(_tells(host.etcd_said) for host in cluster.hosts)


def _tells(answer: Etcd) -> bool:
    """Tell whether the collector of a host knows anything of an etcd."""
    return bool(answer.members) or any((answer.status, answer.local, answer.health))


def missing(cluster: Cluster) -> tuple[Missing, ...]:
    """Return what is missing to know of an etcd where hosts of a control plane should have one."""
    lacks = []
    for host in cluster.members:
        if host.status != "ok":
            lacks.append(Missing(host.host, "host", host.status))
        elif host.statuses.get("etcd") not in ("ok", "absent"):
            lacks.append(Missing(host.host, "etcd", host.statuses.get("etcd", "not_asked")))
        elif host.statuses.get("etcd") == "absent" and has_manifest(host):
            lacks.append(Missing(host.host, "etcd", "error"))
    return tuple(lacks)


def has_manifest(host: Host) -> bool:
    """Tell whether a static pod of a host is an etcd."""
    plane = host.control_plane
    return plane is not None and any(use.component == "etcd" for use in plane.files)


def without_metrics(cluster: Cluster) -> tuple[Missing, ...]:
    """Return the hosts of an etcd whose metrics were not read.

    An older release, or a host whose etcd does not answer, has none.
    """
    lacks = []
    for host in cluster.hosts:
        plane = host.control_plane
        runs = local_member(host) is not None or (
            plane is not None and bool(plane.processes_of("etcd"))
        )
        if runs and metrics_of(host) is None:
            is_older = local_member(host) is None and host.statuses.get("etcd") == "ok"
            lacks.append(Missing(host.host, "etcd", "not_asked" if is_older else "error"))
    return tuple(lacks)


def unaccounted(cluster: Cluster) -> list[Host]:
    """Return the hosts of the control plane whose own member is not known: they may be any one."""
    return [host for host in cluster.members if own_id(host) is None]


def host_has_node(cluster: Cluster, host: Host) -> bool:
    """Tell whether the API has a Node of a host."""
    nodes = cluster.typed(Nodes).items
    return any(host.names.intersection(node_hosts.names(node)) for node in nodes)


def has_node(cluster: Cluster, view_of: MemberView) -> bool | None:
    """Tell whether the API has a Node of a member's host; None where it does not answer."""
    if not cluster.answered(Nodes):
        return None
    names = etcd_names(view_of.member)
    if view_of.host is not None:
        names |= view_of.host.names
    return any(names.intersection(node_hosts.names(node)) for node in cluster.typed(Nodes).items)


def is_stacked(cluster: Cluster, views: Iterable[MemberView]) -> bool:
    """Tell whether the members that are up run on Nodes of the cluster."""
    up = [item for item in views if item.state == UP]
    return bool(up) and all(has_node(cluster, item) for item in up)


def names_by_id(cluster: Cluster) -> Mapping[str, str]:
    """Map the ids of members to their names."""
    return {item.id: item.name for item in view(cluster).members if item.id}
