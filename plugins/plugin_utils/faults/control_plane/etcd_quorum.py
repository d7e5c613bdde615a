# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the members of etcd: how many are up, who is none any more, and which releases they run."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ....module_utils.shared.text import counted, times
from ...evidence.document import one_line
from ...models import etcd_initial_state, etcd_members, writes
from ...models.api_node import and_others
from ...models.cluster import Cluster, Host
from ...models.etcd_members import DOWN, UNKNOWN, UP, MemberView, View
from ...models.result import EvidenceRef, Missing
from ..base import (
    CheckResult,
    Detection,
    causes,
    cluster_check,
    not_applicable,
    present,
    unknown,
    without_kubernetes,
)
from . import etcd_commands
from .etcd_space import APPLIES, ETCD, NEEDS, unasked, without_etcd

_STOPPED = (
    causes("KM107", "KM114", "KM116", component=ETCD)
    | causes("KM116", component="k3s")
    | causes("KM116", component="rke2")
    | causes("KM150", "KM521", "KM527", "KM901")
)
LEARNS_SECONDS = 600.0  # a learner of this age does not catch up
_RELEASE = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})")
BROKEN = ((3, 5, 0), (3, 5, 2))
BEFORE_NEXT = (3, 5, 26)


@cluster_check(
    "KM145",
    "Member of etcd is down",
    severity="warning",
    applies=APPLIES,
    needs=NEEDS,
    cluster_needs=("nodes",),
    component=ETCD,
    explained_by=_STOPPED | causes("KM147", component=ETCD),
)
def member_down(cluster: Cluster) -> Iterator[CheckResult]:
    """KM145: report members that are down while the others have a quorum, and what is left."""
    without, view = _view(cluster)
    if without is not None:
        yield without
        return
    if _lost(cluster):
        yield not_applicable("there is no quorum: KM146", component=ETCD)
        return
    down = [item for item in view.voters if item.state == DOWN]
    if not down:
        doubtful = [item for item in view.voters if item.state == UNKNOWN]
        yield _unless(cluster, doubtful)
        return
    summary = (
        f"{_members(down)} of etcd {'is' if len(down) == 1 else 'are'} down, of {len(view.voters)}"
        f" in its list: {'; '.join(dict.fromkeys(item.why for item in down))}. {_left(view)}"
    )
    yield present(
        Detection(
            summary,
            tuple(_proof(item) for item in down[:3]),
            _bring_back(cluster, down),
            component=ETCD,
            severity="critical" if view.margin <= 0 else None,
            because=_stopped_with_k3s(down),
        ),
        component=ETCD,
    )


def _stopped_with_k3s(down: Sequence[MemberView]) -> tuple[str, ...]:
    """Return the fault of a kubelet that does not run, where each etcd is within such a k3s."""
    hosts = [item.host for item in down if item.host is not None and item.host.is_k3s]
    stopped = [host for host in hosts if host.rancher and host.rancher.state != "active"]
    return ("KM502",) if len(stopped) == len(down) else ()


def _view(cluster: Cluster) -> tuple[CheckResult | None, View]:
    """Return (the result where no member is known, the members)."""
    without = without_etcd(cluster)
    view = etcd_members.view(cluster)
    if without is None and not view.members:
        without = unknown(*unasked(cluster), component=ETCD)
    return without, view


def _unless(cluster: Cluster, doubtful: Sequence[MemberView]) -> CheckResult:
    """Return clear, or unknown where the state of members is not known."""
    if not doubtful:
        return CheckResult(component=ETCD)
    missing = etcd_members.without_metrics(cluster)
    hosts = [item.host for item in doubtful if item.host is not None]
    missing += tuple(
        Missing(host.host, "host", host.status) for host in hosts if host.status != "ok"
    )
    note = f"whether {_members(doubtful)} of etcd runs is not known"
    return unknown(*(missing or unasked(cluster)), component=ETCD, note=note)


def _lost(cluster: Cluster) -> bool:
    """Tell whether it is known that etcd has no quorum."""
    state = writes.state(cluster)
    return state.refused is True and state.cause in (writes.NO_QUORUM, writes.NO_ETCD)


def _members(views: Sequence[MemberView]) -> str:
    word = "member" if len(views) == 1 else "members"
    return f"{word} {and_others([one_line(item.name, 80) for item in views])}"


def _left(view: View) -> str:
    """Return in words how many more members may fail."""
    if view.margin <= 0:
        return "One more failure, and etcd accepts no writes"
    return f"{view.margin} more may fail before etcd accepts no writes"


def _proof(item: MemberView) -> EvidenceRef:
    urls = ", ".join(item.member.peer_urls)
    words = " ".join(filter(None, ("member", item.hexadecimal, urls)))
    text = one_line(f"{words}: {item.why or item.state}", 300)
    return EvidenceRef("api", _host_name(item), object="etcd's members", text=text)


def _host_name(item: MemberView) -> str | None:
    """Return the host of a member, None where no host of the run is it."""
    if item.host is None:
        return None
    return item.host.host


def _bring_back(cluster: Cluster, down: Sequence[MemberView]) -> str:
    hosts = [item.host for item in down if item.host is not None]
    at = etcd_commands.tool(cluster)
    place = ""
    if hosts:
        names = and_others([host.host for host in hosts])
        log = "crictl ps -a --name etcd and crictl logs, or journalctl -u etcd"
        if all(host.is_k3s for host in hosts):
            log = "journalctl -u k3s"
        place = (
            f" On {names}: see its log ({log}), its certificates, its disk, and its port 2380 from"
            " the other members."
        )
    return (
        f"bring it back before any other member is stopped, upgraded or drained.{place}"
        f" {at.begin}; $E endpoint health --cluster shows who is back. A member whose data is lost"
        " is removed and added again ($E member remove ID, then join), while the others have a"
        " quorum"
    )


@cluster_check(
    "KM146",
    "etcd has no quorum",
    severity="critical",
    applies=APPLIES,
    needs=("kubelet", *NEEDS),
    cluster_needs=("nodes", "locks"),
    component=ETCD,
    explained_by=_STOPPED,
)
def no_quorum(cluster: Cluster) -> Iterator[CheckResult]:
    """KM146: report an etcd without a leader, and how a person brings it back."""
    without = without_etcd(cluster)
    if without is not None:
        yield without
        return
    state = writes.state(cluster)
    if state.refused is None and not any(_knows_leader(host) for host in cluster.hosts):
        yield unknown(*(state.missing or unasked(cluster)), component=ETCD, note=state.note)
        return
    if state.refused is not True or state.cause != writes.NO_QUORUM:
        yield CheckResult(component=ETCD)
        return
    at = etcd_commands.tool(cluster)
    yield present(
        Detection(
            f"{state.told}{_voters_down(cluster, state.told)}. No API server can write, and reads"
            " that have to be current fail too",
            state.proofs,
            "start the members that are down first: their hosts, units, manifests, certificates"
            " and port 2380. Nothing else is needed where a majority comes back. Remove no member"
            f" and edit no list of members meanwhile. {at.begin}; $E endpoint status --cluster -w"
            " table shows who answers. Only if the data of a majority is lost for good: keep a"
            f" copy of {at.folder} of each member, take the newest snapshot (of a member that runs:"
            f" {etcd_commands.snapshot(at)}; of one that does not: its {at.folder}/member/snap/db"
            f" with --skip-hash-check), and {etcd_commands.restore(at)}. What was written after"
            " the snapshot is lost then",
            component=ETCD,
        ),
        component=ETCD,
    )


def _voters_down(cluster: Cluster, text: str) -> str:
    """Return which members are down, as a clause, where this is not told yet."""
    voters = etcd_members.view(cluster).voters
    down = [item for item in voters if item.state == DOWN]
    clauses = [
        f"; member {one_line(item.name, 80)}: {item.why}"
        for item in down
        if f"etcd of {item.name} " not in text and f"{item.name} does not answer" not in text
    ]
    return "".join(clauses[:4])


def _knows_leader(host: Host) -> bool:
    status, metrics = host.etcd_said.status, etcd_members.metrics_of(host)
    if status is not None and status.leader not in (None, writes.NO_LEADER):
        return True
    return metrics is not None and metrics.has_leader == 1.0


@cluster_check(
    "KM147",
    "etcd's list of members is not what runs",
    severity="warning",
    applies=APPLIES,
    needs=NEEDS,
    cluster_needs=("nodes",),
    component=ETCD,
    explained_by=causes("KM901"),
)
def foreign_members(cluster: Cluster) -> Iterator[CheckResult]:
    """KM147: report members without a server, members listed twice, and servers that are none."""
    without, view = _view(cluster)
    if without is not None:
        yield without
        return
    hits = [*_twice(cluster, view), *_without_server(cluster, view), *_strays(cluster, view)]
    doubtful = [item for item in view.members if item.state == UNKNOWN]
    nodes = cluster.missing("nodes") if _is_absent(view) else ()
    result = _unless(cluster, doubtful)
    yield CheckResult(tuple(hits), (*result.missing, *nodes), component=ETCD, note=result.note)


def _is_absent(view: View) -> bool:
    return any(item.state == DOWN for item in view.members)


def _twice(cluster: Cluster, view: View) -> Iterator[Detection]:
    """Report members that have one peer address, or one name."""
    places: dict[str, list[MemberView]] = defaultdict(list)
    for item in view.members:
        for key in {*item.member.peer_urls, item.member.name} - {""}:
            places[key].append(item)
    pairs: Mapping[tuple[str, ...], str] = {
        tuple(item.hexadecimal for item in items): key
        for key, items in places.items()
        if len(items) > 1
    }
    for ids, key in list(pairs.items())[:1]:
        at = etcd_commands.tool(cluster)
        yield Detection(
            f"etcd's list has {len(ids)} members for one place ({one_line(key, 120)}):"
            f" {and_others(list(ids))}. Only one of them can run, and each other one counts as"
            " down",
            tuple(_proof(item) for item in view.members if item.hexadecimal in ids)[:3],
            f"see which one runs: {at.begin}; $E endpoint status --cluster -w table. Remove the"
            " others by their id ($E member remove ID), one after another",
            component=ETCD,
        )


def _without_server(cluster: Cluster, view: View) -> Iterator[Detection]:
    """Report members that are in the list, are not connected, and whose server is gone."""
    at = etcd_commands.tool(cluster)
    for item in view.members:
        reason = _gone(cluster, view, item)
        if not reason:
            continue
        voters = len(view.voters) - 1
        yield Detection(
            f"etcd's list still has the member {_named(item)}:"
            f" {item.why or 'it never started'}, and {reason}. It"
            f" counts for the quorum. {_left(view)}{_began(item.host)}",
            (_proof(item), *_flag(item.host)),
            f"{_joined(item.host, at.folder)}if its server does not come back with its data: "
            f"{at.begin}; $E member list; $E member remove {item.hexadecimal}. {voters} members"
            f" are left then, of which {voters // 2 + 1} have to be up. A server of that address"
            " can join again afterwards, with an empty data folder",
            component=ETCD,
            host=_host_name(item),
            severity="critical" if view.margin <= 0 else None,
        )
        return


def _began(host: Host | None) -> str:
    """Return that an etcd is told to begin a cluster, as a clause, or ""."""
    return host.etcd_initial.clause if host is not None else ""


def _flag(host: Host | None) -> Iterator[EvidenceRef]:
    """Yield what tells an etcd to begin a cluster."""
    if host is not None and host.etcd_initial.place:
        text = f"--{etcd_initial_state.FLAG}={etcd_initial_state.NEW}"
        yield EvidenceRef("process", host.host, object=host.etcd_initial.place, text=text)


def _joined(host: Host | None, folder: str) -> str:
    """Return how such an etcd joins the others, as a clause, or ""."""
    if host is None or not host.etcd_initial.place:
        return ""
    return (
        f"stop etcd on {host.host}, move its data folder away ({folder}), and start it with"
        " --initial-cluster-state=existing and the --initial-cluster that etcdctl member add"
        " printed; "
    )


def _named(item: MemberView) -> str:
    """Return the name and the id of a member."""
    if item.name == item.hexadecimal:
        return item.name
    return f"{one_line(item.name, 80)} ({item.hexadecimal})"


def _gone(cluster: Cluster, view: View, item: MemberView) -> str:
    """Return why a member has no server any more, "" where it may have one."""
    if item.state != DOWN or item.member.learner:
        return ""
    if not item.is_started:
        return "it was added and has never started"
    if etcd_members.has_node(cluster, item) is not False:
        return ""
    if not item.listed:
        return _gone_by_id(cluster)
    if item.host is None:
        return "no host of the inventory and no Node has its name or its address"
    if etcd_members.is_stacked(cluster, view.members):
        return f"the Node of {item.host.host} was deleted"
    return ""


def _gone_by_id(cluster: Cluster) -> str:
    """Return why a member has no server of which only the id is known."""
    hosts = etcd_members.unaccounted(cluster)
    if not hosts:
        return "none of the control plane's hosts is this member"
    if any(etcd_members.host_has_node(cluster, host) for host in hosts):
        return ""
    names = and_others([host.host for host in hosts])
    return f"the Node of the only host that may be this member, {names}, was deleted"


def _strays(cluster: Cluster, view: View) -> Iterator[Detection]:
    """Report hosts whose own etcd runs and is not in the list of the others."""
    for host in view.strays[:1]:
        at = etcd_commands.tool(cluster, [item.host for item in view.members if item.host])
        yield Detection(
            f"etcd of {host.host} runs, and is none of the members that the others list: it was"
            " removed, or it is a cluster of its own. An API server that uses it shows other"
            f" objects{_began(host)}",
            (
                EvidenceRef(
                    "api",
                    host.host,
                    object="etcd's members",
                    text=f"its own id: {one_line(etcd_members.own_id(host), 40)}",
                ),
            ),
            f"stop etcd on {host.host} ({at.stop}). To make it a member again: move its data"
            f" folder away, then {at.begin}; $E member add, or join it as its installer does",
            component=ETCD,
            host=host.host,
            severity="critical",
        )


@cluster_check(
    "KM148",
    "A learner of etcd is not promoted",
    severity="warning",
    applies=APPLIES,
    needs=NEEDS,
    component=ETCD,
)
def learner(cluster: Cluster) -> Iterator[CheckResult]:
    """KM148: report a learner that runs for ten minutes or was never started; it has no vote."""
    without, view = _view(cluster)
    if without is not None:
        yield without
        return
    learners = [item for item in view.members if item.member.learner]
    late = [item for item in learners if not 0 <= _age(item) <= LEARNS_SECONDS]
    if not late:
        yield CheckResult(component=ETCD)
        return
    yield present(_learner_hit(cluster, late), component=ETCD)


def _learner_hit(cluster: Cluster, late: Sequence[MemberView]) -> Detection:
    at = etcd_commands.tool(cluster)
    is_old = any(_age(item) > LEARNS_SECONDS for item in late)
    severity: str | None = None if is_old else "info"
    causes_of_it: tuple[str, ...] = ()
    if any(map(_is_without_kubelet, late)):
        severity, causes_of_it = None, ("KM502",)
    return Detection(
        f"{_members(late)} of etcd is a learner, {_learns(late, is_old)}. It takes no part in"
        " the quorum and answers no API server, and no other learner can be added, so that no"
        " other control plane node can join",
        tuple(_proof(item) for item in late[:3]),
        f"{at.begin}; $E member promote {late[0].hexadecimal}. If etcd answers that it is not"
        " in sync, see its log and its disk; a learner whose join was given up is removed: $E"
        f" member remove {late[0].hexadecimal}",
        component=ETCD,
        because=causes_of_it,
        severity=severity,
    )


def _learns(late: Sequence[MemberView], is_old: bool) -> str:
    """Return for how long members learn, or that they never began to."""
    if is_old:
        return "for more than ten minutes"
    item = late[0]
    if item.is_started:
        return "of which it is not known for how long: a join may be under way"
    addresses = and_others([one_line(url, 80) for url in item.member.peer_urls])
    reason = "a join may be under way"
    if _is_without_kubelet(item):
        reason = "the kubelet of its machine does not run, which starts it"
    return f"which has never started ({addresses}): {reason}"


def _is_without_kubelet(item: MemberView) -> bool:
    """Tell whether a member that has never started cannot, as no kubelet runs on its host."""
    host = item.host
    if item.is_started or host is None or host.missing("kubelet"):
        return False
    return host.kubelet_started is None


def _age(item: MemberView) -> float:
    """Return for how long a member runs, -1 where that is not known."""
    if item.host is None or etcd_members.own_id(item.host) != item.id:
        return -1.0
    local = etcd_members.local_member(item.host)
    if local is None or local.uptime_s is None:
        return -1.0
    return local.uptime_s


@cluster_check(
    "KM149",
    "Releases of etcd that need care",
    severity="info",
    applies=APPLIES,
    needs=NEEDS,
    component=ETCD,
)
def releases(cluster: Cluster) -> Iterator[CheckResult]:
    """KM149: report members of several releases, and releases that lose data or must not go on."""
    without = without_etcd(cluster)
    if without is not None:
        yield without
        return
    numbers = _releases(cluster)
    if not numbers:
        yield unknown(*unasked(cluster), component=ETCD)
        return
    texts = [f"{host} {'.'.join(map(str, number))}" for host, number in sorted(numbers.items())]
    proofs = (EvidenceRef("http", sorted(numbers)[0], object="etcd", text=", ".join(texts[:9])),)
    for severity, subject, remedy in _cares(set(numbers.values())):
        yield present(
            Detection(
                f"{subject}: {and_others(texts)}", proofs, remedy, component=ETCD, severity=severity
            ),
            component=ETCD,
        )
        return
    yield CheckResult(component=ETCD)


def _releases(cluster: Cluster) -> dict[str, tuple[int, ...]]:
    """Map hosts to the release of their own etcd."""
    numbers = {}
    for host in cluster.hosts:
        metrics, status = etcd_members.metrics_of(host), host.etcd_said.status
        text = metrics.version if metrics is not None else None
        if text is None and status is not None:
            text = status.version
        match = _RELEASE.match(text or "")
        if match is not None:
            numbers[host.host] = tuple(map(int, match.groups()))
    return numbers


def _cares(numbers: set[tuple[int, ...]]) -> Iterator[tuple[str, str, str]]:
    """Yield (severity, what, remedy) of what these releases need, the worst first."""
    if any(BROKEN[0] <= number <= BROKEN[1] for number in numbers):
        yield (
            "warning",
            "etcd 3.5.0 to 3.5.2 can lose data when a member is killed",
            "upgrade to the newest 3.5, one member after another, by the installer; until then"
            " save snapshots, and let etcd end in order",
        )
    if len({number[:2] for number in numbers}) > 1:
        yield (
            "warning",
            "the members of etcd run several minor releases, as within an upgrade",
            "finish the upgrade: the cluster works as the oldest of them, and must not stay so",
        )
    old = [number for number in numbers if number[:2] == (3, 5) and number < BEFORE_NEXT]
    if old:
        yield (
            "info",
            "etcd before 3.5.26 must not be upgraded to 3.6 at once: members that were removed"
            " can come back in its list",
            "upgrade to 3.5.26 or newer first, and see that the list of members is right; only"
            " then to 3.6 (Kubernetes 1.34 and newer bring it)",
        )
    if len(numbers) > 1:
        yield (
            "info",
            "the members of etcd run several patch releases",
            "upgrade the others too, one after another",
        )


@cluster_check(
    "KM142",
    "etcd's members have different data",
    severity="critical",
    applies=APPLIES,
    needs=(*NEEDS, "repeated_errors"),
    component=ETCD,
)
def corrupt(cluster: Cluster) -> Iterator[CheckResult]:
    """KM142: report the alarm CORRUPT, or a member that is ahead of the others for minutes.

    The alarm must not be taken back before the data agree.
    """
    without = without_etcd(cluster)
    if without is not None:
        yield without
        return
    alarm = writes.raised_alarm(cluster, writes.CORRUPT)
    ahead = [host for host in cluster.hosts if host.etcd_ahead is not None]
    if alarm is None and ahead:
        yield present(_ahead(cluster, ahead), component=ETCD)
        return
    if alarm is None:
        if writes.alarms_are_known(cluster):
            yield CheckResult(component=ETCD)
        else:
            yield unknown(*unasked(cluster), component=ETCD)
        return
    at = etcd_commands.tool(cluster)
    yield present(
        Detection(
            f"{alarm.told}: the data of its members differ, and it refuses every write and read",
            alarm.proofs,
            f"do not disarm this alarm. {at.begin}; $E endpoint hashkv --cluster -w table: the"
            " member whose hash differs from the majority, at one revision, has the wrong data."
            f" Save a snapshot of one that agrees ({etcd_commands.snapshot(at)}), then remove the"
            " wrong member ($E member remove ID), move its data folder away, and add it again;"
            " then $E alarm disarm. Without a majority that agrees:"
            f" {etcd_commands.restore(at)}",
            component=ETCD,
        ),
        component=ETCD,
    )


def _ahead(cluster: Cluster, hosts: Sequence[Host]) -> Detection:
    """Report members whose revision others do not have: these are behind, or have other data."""
    clauses, proofs = [], []
    for host in hosts:
        ahead = host.etcd_ahead
        if ahead is None:
            continue
        minutes = counted(max(1, round(ahead.seconds / 60)), "minute")
        clauses.append(
            f"{host.host} asked others for their hash at revision {ahead.revision},"
            f" {times(ahead.count)} in {minutes}"
        )
        proofs.append(EvidenceRef("log", host.host, path=ahead.source, text=ahead.line))
    broken = [
        f"{host} {'.'.join(map(str, number))}"
        for host, number in sorted(_releases(cluster).items())
        if BROKEN[0] <= number <= BROKEN[1]
    ]
    release = ""
    if broken:
        release = (
            f". etcd 3.5.0 to 3.5.2, which runs here ({and_others(broken)}), applies an entry twice"
            " or not at all when a member is killed"
        )
    at = etcd_commands.tool(cluster)
    return Detection(
        "members of etcd do not have the revision of another one (required revision is a future"
        f" revision): {and_others(clauses)}. They are behind for that long, or their data are"
        f" others{release}",
        tuple(proofs[:3]),
        f"{at.begin}; $E endpoint status --cluster -w json, twice, a minute apart: of members at"
        " one raftAppliedIndex, the one with another revision has other data; one whose"
        " raftAppliedIndex stays behind is only slow (its disk, its network). Where data differ,"
        f" save a snapshot of each member ({etcd_commands.snapshot(at)}), then remove the one that"
        " differs from the majority ($E member remove ID), move its data folder away, and add it"
        " again empty. Install the newest 3.5 where 3.5.0 to 3.5.2 runs, or it happens again",
        component=ETCD,
        severity="warning",
    )


@cluster_check(
    "KM150",
    "etcd cannot read its data",
    severity="critical",
    applies=APPLIES,
    needs=("component_end", "component_units", *NEEDS),
    component=ETCD,
    explained_by=causes("KM521", "KM526"),
)
def damaged(cluster: Cluster) -> Iterator[CheckResult]:
    """KM150: report members that end because their log, snapshot or database is damaged."""
    if cluster.key is None:
        yield without_kubernetes(ETCD)
        return
    hit = [host for host in cluster.hosts if host.etcd_damage is not None]
    if not hit:
        yield _undamaged(cluster)
        return
    running = [item for item in etcd_members.view(cluster).voters if item.state == UP]
    few = len(running) >= etcd_members.view(cluster).quorum and bool(running)
    for host in hit:
        yield present(_damage(cluster, host, hit, few), host=host.host, component=ETCD)


def _without_answer(cluster: Cluster) -> list[Host]:
    """Return the hosts of the control plane whose etcd is not known to be up."""
    members = etcd_members.view(cluster).members
    names = {_host_name(item) for item in members if item.state == UP}
    return [host for host in cluster.members if host.host not in names]


def _undamaged(cluster: Cluster) -> CheckResult:
    missing = tuple(
        lack
        for host in _without_answer(cluster)
        for lack in (*host.missing("component_end"), *host.missing("component_units"))
    )
    if missing and not etcd_members.is_known(cluster):
        return unknown(*dict.fromkeys(missing), component=ETCD)
    without = without_etcd(cluster)
    if without is not None and not without.applies:
        return without
    return CheckResult(missing=tuple(dict.fromkeys(missing)), component=ETCD)


def _damage(cluster: Cluster, host: Host, hit: Sequence[Host], has_quorum: bool) -> Detection:
    damage = host.etcd_damage
    at = etcd_commands.tool_of(host)
    healthy = [other for other in cluster.hosts if other not in hit]
    if has_quorum:
        item = next(
            (item for item in etcd_members.view(cluster).members if item.host is host), None
        )
        id_ = item.hexadecimal if item is not None else "ID"
        name = item.member.name if item is not None else "NAME"
        advice = (
            "the other members have a quorum and the data: this one gets it again. "
            + etcd_commands.replace_member(at, etcd_commands.tool(cluster, healthy), name, id_)
        )
    else:
        advice = (
            "start no member with an empty folder before its data is copied away. If another"
            " member still starts, its data counts: begin with that one. Else restore the newest"
            " snapshot"
            f" ({_places(at)}): {etcd_commands.restore(at)}"
        )
    message = damage.message if damage is not None else ""
    source = damage.source if damage is not None else ""
    line = damage.line if damage is not None else ""
    return Detection(
        f"etcd of {host.host} ends at its start because it cannot read its data: {message}"
        f" (members with this fault: {len(hit)})",
        (EvidenceRef("log", host.host, object=source, text=line),),
        advice,
        host=host.host,
        node=host.node,
        component=ETCD,
    )


def _places(at: etcd_commands.Tool) -> str:
    """Return where an installer keeps snapshots."""
    if at.layout in (etcd_commands.K3S, etcd_commands.RKE2):
        return f"{at.layout.lower()} etcd-snapshot ls; {at.folder[: -len('etcd')]}snapshots"
    if at.layout == etcd_commands.KUBESPRAY:
        return "kubespray keeps one of each run below /var/backups/etcd-*"
    if at.layout == etcd_commands.STATIC:
        return "where your backups are; kubeadm upgrade keeps a copy in /etc/kubernetes/tmp"
    return "where your backups are"
