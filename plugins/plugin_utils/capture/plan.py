# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which log levels a capture raises, from where, and what stands in its way. Pure, from evidence.

A component of the control plane is raised by its own host, a kubelet through the API from the
control-plane host that answered for its cluster: that is where the credential lies, and so what
puts the level back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ...module_utils.shared.journal_names import LEVEL
from ...module_utils.shared.klog_verbosity import explicit_verbosity, of_argv
from ..evidence import contract
from ..evidence import document as evidence_document
from ..evidence.answers.cluster.nodes import Nodes
from ..evidence.answers.cluster.pod import Pod, TimedPod
from ..evidence.answers.cluster.server import Server
from ..evidence.answers.node.instances import Instances
from ..evidence.answers.node.journal import Journal, RaisedLevel
from ..evidence.answers.node.kubelet import Kubelet
from ..evidence.answers.node.space import Spaces
from ..faults import engine as fault_engine
from ..models import cluster as model_cluster
from ..run import command_line
from ..safe_io.yaml_nodes import BROKEN, first_document, get, text_of

KUBELET, SCHEDULER = "kubelet", "kube-scheduler"
# From level 8 on client-go logs the bodies of requests, Secrets among them; the scheduler has
# useful lines up to 7 beside them.
MOST, MOST_OF_SCHEDULER = 6, 7
# They belong to the pod that the same kubelet named last before them.
DEVICE_LINES = ("Making allocation request", "to allocate")
ENOUGH = 256 * 1024 * 1024  # bytes that must be free before anything is made to log more
INODES = 1024
NAMED = 5  # nodes in one sentence


class CaptureError(ValueError):
    """Bad input, in one sentence; nothing was raised."""

    reason = "input"


class CaptureRefused(CaptureError):
    """Nothing that was asked for may be raised now."""

    reason = "refused"


@dataclass(frozen=True)
class Target:
    """One process whose level is raised.

    host: the host that raises it; on: the host that it runs on; real: as the journal of `host`
    names it; step: what raises it by a restart, where it cannot be raised while it runs.
    """

    host: str
    on: str
    component: str
    real: str
    former: int
    level: int
    node: str | None = None
    cluster_uid: str | None = None
    step: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Plan:
    """What a capture raises.

    targets: what is raised; refused: a sentence for each process that cannot be; notes: all else;
    begun: seconds since the epoch; logging: the hosts that answered, with the components whose logs
    they have.
    """

    run_id: str
    seconds: int
    level: int
    components: tuple[str, ...]
    targets: tuple[Target, ...] = ()
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    logging: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    begun: float = 0.0
    needles: tuple[str, ...] = ()

    def host_targets(self, host: str) -> tuple[Target, ...]:
        """Return what is raised from this host."""
        return tuple(target for target in self.targets if target.host == host)

    @property
    def raising(self) -> tuple[str, ...]:
        """The hosts from which levels are raised."""
        return tuple(dict.fromkeys(target.host for target in self.targets))


@dataclass
class Seen:
    """What planning keeps of one host's evidence.

    raised: (as its journal names it, one sentence) of levels that an earlier run raised from here.
    """

    host: model_cluster.Host
    levels: dict[str, int] = field(default_factory=dict)
    full: str = ""
    raised: tuple[tuple[str, str], ...] = ()


def demand(components: Iterable[str], level: int, allow: Iterable[str]) -> None:
    """Refuse a level that would log the bodies of requests, unless that is allowed by name."""
    if "body_logging" in allow:
        return
    for name in components:
        most = MOST_OF_SCHEDULER if name == SCHEDULER else MOST
        if level > most:
            raise CaptureError(
                f"kubemend_capture_level is {level}: above {most} {name} may log the bodies of"
                " requests, Secrets among them, to journald, /var/log/pods and what ships them;"
                " take a lower level, or consent with -e kubemend_allow=body_logging."
            )


def look(document: Mapping[str, Any]) -> Seen:
    """Return what the plan needs of one host."""
    document = contract.checked(document)
    host_state = Seen(model_cluster.host_of(document))
    for process in contract.answer(document, Instances).processes:
        if process.static:
            host_state.levels[process.component] = of_argv(process.argv)
    kubelet = contract.answer(document, Kubelet)
    if kubelet.process is not None:
        host_state.levels[KUBELET] = kubelet_level(kubelet)
    host_state.full = full(contract.answer(document, Spaces))
    journal = contract.answer(document, Journal)
    raised = [
        *((change.real, _earlier(RaisedLevel(run_id=change.run_id))) for change in journal.pending),
        *((level.real, _earlier(level)) for level in journal.levels or ()),
    ]
    host_state.raised = tuple(
        (real, sentence) for real, sentence in raised if real and real.startswith(LEVEL)
    )
    return host_state


def _earlier(level: RaisedLevel) -> str:
    """Return by which run a level is raised already, and when or how it goes back."""
    run_id = evidence_document.one_line(level.run_id or "", 40)
    if level.by_hand:
        return f"is raised by run {run_id}: {evidence_document.one_line(level.by_hand, 400)}"
    back = "and no service of it is left; revert it"
    if level.until:
        until = evidence_document.one_line(level.until, 20)[-9:]
        back = f"until {until} (its service puts it back); wait, or revert it"
    return f"is raised by run {run_id} {back}: {command_line.revert(run_id)}"


def kubelet_level(kubelet: Kubelet) -> int:
    """Return a kubelet's level as its command line, else its files give it.

    The last file that sets logging.verbosity counts.
    """
    level: int | None = explicit_verbosity(kubelet.argv)
    if level is not None:
        return level
    level = 0
    for file in (kubelet.config, *kubelet.config_dropins):
        if file is None or not file.text:
            continue
        try:
            level = _verbosity(file.text)
        except BROKEN:
            continue
    return level


def _verbosity(text: str) -> int:
    value = text_of(get(first_document(text), "logging", "verbosity"))
    return min(int(value), 99)


def full(space: Spaces) -> str:
    """Return a clause where too little is free to log more.

    The result is empty where there is enough, or where that is unknown.
    """
    for folder in space.folders:
        free, inodes = folder.free_bytes, folder.free_inodes
        if free is not None and free < ENOUGH:
            return f"{folder.path} has {free // 2**20} MiB free, less than {ENOUGH // 2**20}"
        if inodes is not None and inodes < INODES:
            return f"{folder.path} has {inodes} inodes free, fewer than {INODES}"
    return ""


def plan(
    run_id: str,
    documents: Iterable[Mapping[str, Any]],
    components: tuple[str, ...],
    level: int,
    seconds: int,
    pod: str | None = None,
) -> Plan:
    """Return targets, notes and what lines must hold.

    Raises CaptureError where no host answered, or the pod does not exist.
    """
    hosts, api = _seen_by_host(documents)
    _require_answer(hosts)
    clusters = fault_engine.assembled([host.host for host in hosts.values()], api)
    about = about_pod(pod, clusters) if pod else About()
    draft = _Draft(components, level, about.nodes, _notes_of_hosts(hosts))
    for cluster in clusters:
        if pod and (cluster.api.get("pod") or {}).get("status") == "absent":
            draft.notes.append(
                f"{', '.join(host.host for host in cluster.hosts)}: left out, because the API of"
                " their cluster knows no such pod"
            )
        else:
            draft.add_cluster(cluster, hosts)
    if KUBELET in components:
        draft.notes += _unseen(pod, about.nodes, [host.host for host in hosts.values()])
    return Plan(
        run_id,
        seconds,
        level,
        components,
        tuple(draft.targets),
        tuple(draft.refused),
        tuple(draft.notes) + about.notes,
        draft.logging,
        needles=about.needles,
    )


def _seen_by_host(
    documents: Iterable[Mapping[str, Any]],
) -> tuple[dict[str, Seen], list[Mapping[str, Any]]]:
    hosts: dict[str, Seen] = {}
    api: list[Mapping[str, Any]] = []
    for document in documents:
        if document.get("kind") == "cluster":
            api.append(document)
        else:
            hosts[document["host"]] = _seen(document)
    return hosts, api


def _require_answer(hosts: Mapping[str, Seen]) -> None:
    if any(host.host.status == "ok" for host in hosts.values()):
        return
    reasons = "; ".join(
        f"{name}: {host.host.reason or host.host.status}"
        for name, host in sorted(hosts.items())
        if host.host.status != "not_asked"
    )
    raise CaptureError(
        f"No host gave evidence, so that nothing is captured"
        f" ({evidence_document.one_line(reasons, 400)})."
    )


def _notes_of_hosts(hosts: Mapping[str, Seen]) -> list[str]:
    return [
        f"{name}: {host.host.reason or host.host.status}"
        for name, host in sorted(hosts.items())
        if host.host.status not in ("ok", "not_asked")
    ]


def _unseen(
    pod: str | None, nodes: frozenset[str], hosts: Iterable[model_cluster.Host]
) -> list[str]:
    """Return a sentence where the kubelet that had the pod is none of those that are asked.

    What it logs is what matters most.
    """
    lost = sorted(nodes - {host.node for host in hosts if host.status == "ok"})
    if not lost:
        return []
    shown = ", ".join(lost[:NAMED])
    if len(lost) > NAMED:
        shown += f" and {len(lost) - NAMED} more"
    return [
        f"pod {pod}, or another one of its owner, is on {shown}, and no host that answered is"
        " proven to be that Node: what the kubelet there logs of it is not captured unless its"
        " host is named above"
    ]


def _seen(document: Mapping[str, Any]) -> Seen:
    try:
        return look(document)
    except evidence_document.UNFORESEEN as error:
        return Seen(model_cluster.unjudged(document, evidence_document.unforeseen(error)))


@dataclass(frozen=True)
class About:
    """What a capture about one pod looks for.

    nodes: those whose kubelets alone are raised; empty for all
    """

    needles: tuple[str, ...] = ()
    nodes: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def about_pod(pod: str, candidates: Iterable[model_cluster.Cluster]) -> About:
    """Return what a capture about one pod looks for.

    Its name and UID, those of its siblings, the Job's name, and what kubelets say of devices
    without naming a pod.
    """
    clusters = list(candidates)
    answers = [cluster.typed(Pod) for cluster in clusters if cluster.answered(Pod)]
    name = pod.rpartition("/")[2]
    if not answers:
        _require_pod(pod, clusters)
        note = (
            f"what the API says of pod {pod} is not known, so that lines are looked for by that"
            " name alone"
        )
        return About((name, *DEVICE_LINES), frozenset(), (note,))
    needles = dict.fromkeys([name])
    nodes: set[str] = set()
    for answer in answers:
        related = _pod_and_siblings(answer)
        identities = [text for item in related for text in _identities(item)]
        needles.update(dict.fromkeys([*_job_names(answer), *_identities(answer), *identities]))
        nodes.update(item.node for item in related if item.node)
    needles.pop("", None)
    notes = () if nodes else (f"pod {pod} is on no node yet: the kubelets of all hosts are raised",)
    return About((*needles, *DEVICE_LINES), frozenset(nodes), notes)


def _pod_and_siblings(answer: Pod) -> list[TimedPod]:
    """Return the objects of the pod, if it exists, and of its siblings."""
    if answer.pod is None:
        return list(answer.siblings)
    return [answer.pod, *answer.siblings]


def _require_pod(pod: str, clusters: Iterable[model_cluster.Cluster]) -> None:
    """Raise CaptureError where every API says that there is no such pod."""
    records = [cluster.api["pod"] for cluster in clusters if cluster.api.get("pod")]
    states = {str(record.get("status")) for record in records}
    if states == {"absent"}:
        raise CaptureError(
            f"kubemend_pod is {pod}, but no API of these hosts knows such a pod, nor events"
            " about one; give one that is there, or look for lines about its name with -e"
            " kubemend_capture_match=NAME."
        )


def _job_names(answer: Pod) -> list[str]:
    owner = answer.owner
    if owner is None or owner.kind != "Job" or not owner.name:
        return []
    return [owner.name]


def _identities(item: Pod | TimedPod) -> list[str]:
    return [text.rpartition("/")[2] for text in (item.name, item.uid) if text]


class _Draft:
    """A plan while it is made, cluster by cluster."""

    def __init__(
        self, components: tuple[str, ...], level: int, nodes: frozenset[str], notes: list[str]
    ) -> None:
        self.components = components
        self.level = level
        self.nodes = nodes
        self.notes = notes
        self.targets: list[Target] = []
        self.refused: list[str] = []
        self.logging: dict[str, tuple[str, ...]] = {}

    def add_cluster(self, cluster: model_cluster.Cluster, hosts: Mapping[str, Seen]) -> None:
        """Add the targets of one cluster, or the reasons why they are none."""
        # a component's by its own host; a kubelet's at run time by any host of its cluster
        own_levels = [LEVEL + name for name in self.components]
        raised = {
            (host.host if real in own_levels else "", real): sentence
            for host in cluster.hosts
            for real, sentence in hosts[host.host].raised
        }
        for host in cluster.hosts:
            if host.status == "ok":
                self._add_host(cluster, hosts[host.host], raised)

    def _add_host(
        self,
        cluster: model_cluster.Cluster,
        host_state: Seen,
        raised: Mapping[tuple[str, str], str],
    ) -> None:
        """Add the targets of one host, and the components whose logs are read there.

        A component that does not run now is among them.
        """
        logging = []
        for name in self.components:
            if self._is_of_host(cluster, host_state, name):
                logging.append(name)
                self._add(cluster, host_state, name, raised)
        self.logging[host_state.host.host] = tuple(logging)

    def _is_of_host(self, cluster: model_cluster.Cluster, host_state: Seen, name: str) -> bool:
        host = host_state.host
        if name != KUBELET:
            return host in cluster.members or name in host_state.levels
        return not self.nodes or not host.node or host.node in self.nodes

    def _add(
        self,
        cluster: model_cluster.Cluster,
        host_state: Seen,
        name: str,
        raised: Mapping[tuple[str, str], str],
    ) -> None:
        host, former = host_state.host, host_state.levels.get(name)
        if former is None:
            self.notes.append(f"{_no_level(host, name)}; what it logged is captured")
            return
        earlier = _raised_earlier(host, name, raised)
        stays = f"{name} of {host.host} stays at level {former}"
        if earlier:
            self.refused.append(f"{host.host} {name} {earlier}")
        elif former >= self.level:
            self.notes.append(f"{stays}, which is not below {self.level}")
        elif host_state.full:
            self.refused.append(
                f"{stays}, because {host_state.full}: free some, or capture elsewhere"
            )
        elif name == KUBELET:
            self._add_kubelet(cluster, host, former)
        else:
            self.targets.append(
                Target(host.host, host.host, name, f"level:{name}", former, self.level, host.node)
            )

    def _add_kubelet(
        self, cluster: model_cluster.Cluster, host: model_cluster.Host, former: int
    ) -> None:
        stays = f"kubelet of {host.host} stays at level {former}"
        # it is unknown whether the pod is on it: no reason to end the capture
        if self.nodes and not host.node:
            self.notes.append(f"{stays}, because which Node of the cluster it is cannot be proven")
            return
        reason = _no_kubelet(cluster, host)
        if reason:
            self.refused.append(f"{stays}, because {reason}")
            return
        self.targets.append(
            Target(
                cluster.api_host or "",
                host.host,
                KUBELET,
                f"level:{KUBELET}/{host.node}",
                former,
                self.level,
                host.node,
                cluster.typed(Server).kube_system_uid,
            )
        )


def _no_level(host: model_cluster.Host, name: str) -> str:
    """Return why the level of a component is not known."""
    collector, kind = "instances", "static pod"
    if name == KUBELET:
        collector, kind = KUBELET, "unit"
    error = host.errors.get(collector)
    if error:
        return f"{name} of {host.host} keeps its level: {error} (collector {collector})"
    return f"{name} of {host.host} does not run, or not as a {kind}"


def _raised_earlier(
    host: model_cluster.Host, name: str, raised: Mapping[tuple[str, str], str]
) -> str | None:
    """Return the sentence about an earlier run that raised it, or None."""
    earlier = raised.get((host.host, LEVEL + name))
    if not earlier and name == KUBELET:
        earlier = raised.get(("", f"{LEVEL}{name}/{host.node}"))
    return earlier


def _no_kubelet(cluster: model_cluster.Cluster, host: model_cluster.Host) -> str:
    """Return why a kubelet cannot be reached through the API; empty where it can."""
    if cluster.api_status != "ok" or not cluster.api_host:
        return (
            "no API server answers through which it could be asked"
            f" ({cluster.api_reason or cluster.api_status})"
        )
    if not host.node:
        return "which Node of the cluster it is cannot be proven"
    names = [node.name for node in cluster.typed(Nodes).items]
    return "" if not names or host.node in names else f"the API knows no Node {host.node}"


def dumped(document: Plan) -> dict[str, Any]:
    """Return the plan as JSON holds it."""
    return asdict(document)


def loaded(document: Mapping[str, Any]) -> Plan:
    """Return the plan that `dumped` made this document of."""
    values = {
        **document,
        "targets": tuple(Target(**target) for target in document["targets"]),
        "logging": {host: tuple(names) for host, names in dict(document["logging"]).items()},
    }
    return Plan(**{name: _as_tuple(value) for name, value in values.items()})


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
