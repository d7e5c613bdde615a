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
from ...module_utils.shared.klog_verbosity import given, of_argv
from ..evidence import document as evidence
from ..faults import engine as judge
from ..models import cluster as clusters
from ..models import control_plane
from ..safe_io.yaml_nodes import BROKEN, first_document, get, text_of

KUBELET, SCHEDULER = "kubelet", "kube-scheduler"
REVERT = "ansible-playbook -i INVENTORY kubemend.remediation.revert -e kubemend_run_id="
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
    """One process whose level is raised. host: who does it; on: the host that it runs on; real.

    As that host's journal names it.

    step: what raises it by a restart, where it cannot be raised while it runs.
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
    """targets: what is raised; refused: a sentence for each process that cannot be; notes.

    Whatever else; begun: seconds since the epoch.

    logging: the hosts that answered, with the components whose logs they have.
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

    def of(self, host: str) -> tuple[Target, ...]:
        """What is raised from this host."""
        return tuple(target for target in self.targets if target.host == host)

    @property
    def raising(self) -> tuple[str, ...]:
        """The hosts from which levels are raised."""
        return tuple(dict.fromkeys(target.host for target in self.targets))


@dataclass
class Seen:
    """What planning keeps of one host's evidence. raised.

    (as its journal names it, one sentence) of levels that an earlier run raised from here.
    """

    host: clusters.Host
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
                " requests, Secrets among them, to journald, /var/log/pods and whoever ships them;"
                " take a lower level, or consent with -e kubemend_allow=body_logging."
            )


def look(document: Mapping[str, Any]) -> Seen:
    """What the plan needs of one host."""
    seen = Seen(clusters.host_of(document))
    for one in control_plane.data(document, "instances").get("processes") or ():
        if isinstance(one, Mapping) and one.get("static") and isinstance(one.get("argv"), list):
            seen.levels[str(one.get("component"))] = of_argv(one["argv"])
    kubelet = control_plane.data(document, KUBELET)
    if kubelet.get("process"):
        seen.levels[KUBELET] = kubelet_level(kubelet)
    seen.full = full(control_plane.data(document, "space"))
    journal = control_plane.data(document, "journal")
    seen.raised = tuple(
        (str(one.get("real")), _earlier(one))
        for name in ("pending", "levels")
        for one in journal.get(name) or ()
        if str(one.get("real")).startswith(LEVEL)
    )
    return seen


def _earlier(one: Mapping[str, Any]) -> str:
    """By which run a level is raised already, and when or how it goes back."""
    run_id = evidence.one_line(one.get("run_id") or "", 40)
    if one.get("by_hand"):
        return f"is raised by run {run_id}: {evidence.one_line(one['by_hand'], 400)}"
    back = (
        f"until {evidence.one_line(one['until'], 20)[-9:]} (its service puts it back); wait, or"
        " revert it"
        if one.get("until")
        else ("and no service of it is left; revert it")
    )
    return f"is raised by run {run_id} {back}: {REVERT}{run_id}"


def kubelet_level(kubelet: Mapping[str, Any]) -> int:
    """A kubelet's level as its command line, then its files give it.

    The last file that sets logging.verbosity counts.
    """
    argv = [str(word) for word in kubelet.get("argv") or ()]
    level = given(argv)
    if level is not None:
        return level
    level = 0
    for record in [kubelet.get("config"), *(kubelet.get("config_dropins") or ())]:
        try:
            level = min(
                int(
                    text_of(
                        get(
                            first_document((record or {}).get("text") or ""), "logging", "verbosity"
                        )
                    )
                ),
                99,
            )
        except (*BROKEN, TypeError, ValueError, AttributeError):
            continue
    return level


def full(space: Mapping[str, Any]) -> str:
    """Where too little is free to log more, as a clause.

    Empty where there is enough, or nobody could tell.
    """
    for one in space.get("folders") or ():
        free, inodes = one.get("free_bytes"), one.get("free_inodes")
        if isinstance(free, int) and free < ENOUGH:
            return f"{one.get('path')} has {free // 2**20} MiB free, less than {ENOUGH // 2**20}"
        if isinstance(inodes, int) and inodes < INODES:
            return f"{one.get('path')} has {inodes} inodes free, fewer than {INODES}"
    return ""


def plan(
    run_id: str,
    documents: Iterable[Mapping[str, Any]],
    components: tuple[str, ...],
    level: int,
    seconds: int,
    pod: str | None = None,
) -> Plan:
    """Targets, notes and what lines must hold.

    Raises CaptureError where no host answered, or the pod does not exist.
    """
    seen: dict[str, Seen] = {}
    api: list[Mapping[str, Any]] = []
    for document in documents:
        if document.get("kind") == "cluster":
            api.append(document)
        else:
            seen[document["host"]] = _seen(document)
    if not any(one.host.status == "ok" for one in seen.values()):
        reasons = "; ".join(
            f"{name}: {one.host.reason or one.host.status}"
            for name, one in sorted(seen.items())
            if one.host.status != "not_asked"
        )
        raise CaptureError(
            "No host gave evidence, so that nothing is captured"
            f" ({evidence.one_line(reasons, 400)})."
        )
    found = judge.assembled([one.host for one in seen.values()], api)
    about = about_pod(pod, found) if pod else About()
    targets: list[Target] = []
    refused: list[str] = []
    notes = [
        f"{name}: {one.host.reason or one.host.status}"
        for name, one in sorted(seen.items())
        if one.host.status not in ("ok", "not_asked")
    ]
    logging: dict[str, tuple[str, ...]] = {}
    for of in found:
        if pod and (of.api.get("pod") or {}).get("status") == "absent":
            notes.append(
                f"{', '.join(host.host for host in of.hosts)}: left out, because the API of their"
                " cluster knows no such pod"
            )
            continue
        # a component's by its own host; a kubelet's at run time by whichever host of its cluster
        own = [LEVEL + name for name in components]
        raised = {
            (host.host if real in own else "", real): told
            for host in of.hosts
            for real, told in seen[host.host].raised
        }
        for host in of.hosts:
            if host.status == "ok":
                logging[host.host] = _of_host(
                    of,
                    seen[host.host],
                    components,
                    level,
                    about.nodes,
                    raised,
                    targets,
                    refused,
                    notes,
                )
    if KUBELET in components:
        notes += _unseen(pod, about.nodes, [one.host for one in seen.values()])
    return Plan(
        run_id,
        seconds,
        level,
        components,
        tuple(targets),
        tuple(refused),
        tuple(notes) + about.notes,
        logging,
        needles=about.needles,
    )


def _unseen(pod: str | None, nodes: frozenset[str], hosts: Iterable[clusters.Host]) -> list[str]:
    """A sentence where the kubelet that had the pod is none of those that are asked.

    What it logs is what matters most.
    """
    lost = sorted(nodes - {host.node for host in hosts if host.status == "ok"})
    shown = ", ".join(lost[:NAMED]) + (
        f" and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
    )
    return (
        [
            f"pod {pod}, or another one of its owner, is on {shown}, and no host that answered is"
            " proven to be that Node: what the kubelet there logs of it is not captured unless its"
            " host is named above"
        ]
        if lost
        else []
    )


def _seen(document: Mapping[str, Any]) -> Seen:
    try:
        return look(document)
    except judge.UNFORESEEN as error:
        return Seen(clusters.unjudged(document, judge.unforeseen(error)))


@dataclass(frozen=True)
class About:
    """What a capture about one pod looks for. nodes: whose kubelets alone are raised.

    Empty for all.
    """

    needles: tuple[str, ...] = ()
    nodes: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def about_pod(pod: str, found: Iterable[clusters.Cluster]) -> About:
    """Its name and UID, those of its siblings, the Job's name, and what kubelets say of devices
    without naming a pod.
    """
    records = [of.api.get("pod") or {} for of in found]
    known = [
        record.get("data")
        for record in records
        if record.get("status") == "ok" and isinstance(record.get("data"), Mapping)
    ]
    if not known:
        states = {str(record.get("status")) for record in records if record}
        if states == {"absent"}:
            raise CaptureError(
                f"kubemend_pod is {pod}, but no API of these hosts knows such a pod, nor events"
                " about one; give one that is there, or look for lines about its name with -e"
                " kubemend_capture_match=NAME."
            )
        note = (
            f"what the API says of pod {pod} is not known, so that lines are looked for by that"
            " name alone"
        )
        return About((pod.rpartition("/")[2], *DEVICE_LINES), frozenset(), (note,))
    needles, nodes = dict.fromkeys([pod.rpartition("/")[2]]), set()
    for data in known:
        owner = data.get("owner")
        if isinstance(owner, Mapping) and owner.get("kind") == "Job" and owner.get("name"):
            needles[str(owner.get("name"))] = None
        for one in [data, data.get("pod"), *(data.get("siblings") or ())]:
            if isinstance(one, Mapping):
                needles.update(
                    dict.fromkeys(
                        str(one[key]).rpartition("/")[2] for key in ("name", "uid") if one.get(key)
                    )
                )
                nodes.update([str(one["node"])] if one.get("node") else [])
    needles.pop("", None)
    note = () if nodes else (f"pod {pod} is on no node yet: the kubelets of all hosts are raised",)
    return About((*needles, *DEVICE_LINES), frozenset(nodes), note)


def _of_host(
    of: clusters.Cluster,
    seen: Seen,
    components: tuple[str, ...],
    level: int,
    nodes: frozenset[str],
    raised: Mapping[tuple[str, str], str],
    targets: list[Target],
    refused: list[str],
    notes: list[str],
) -> tuple[str, ...]:
    """The targets of one host, or why they are none; whose logs are read there.

    Also of what does not run now.
    """
    host, logging = seen.host, []
    plane = host in of.members
    for name in components:
        if (name == KUBELET and nodes and host.node and host.node not in nodes) or (
            name != KUBELET and not plane and name not in seen.levels
        ):
            continue
        logging.append(name)
        former = seen.levels.get(name)
        if former is None:
            notes.append(
                f"{name} of {host.host} does not run, or not as a"
                f" {'unit' if name == KUBELET else 'static pod'}; what it logged is captured"
            )
        elif earlier := raised.get((host.host, LEVEL + name)) or (
            name == KUBELET and raised.get(("", f"{LEVEL}{name}/{host.node}"))
        ):
            refused.append(f"{host.host} {name} {earlier}")
        elif former >= level:
            notes.append(
                f"{name} of {host.host} stays at level {former}, which is not below {level}"
            )
        elif seen.full:
            refused.append(
                f"{name} of {host.host} stays at level {former}, because {seen.full}: free some, or"
                " capture elsewhere"
            )
        elif name != KUBELET:
            targets.append(
                Target(host.host, host.host, name, f"level:{name}", former, level, host.node)
            )
        # whether the pod is on it nobody knows: no reason to end the capture
        elif name == KUBELET and nodes and not host.node:
            notes.append(
                f"kubelet of {host.host} stays at level {former}, because which Node of the cluster"
                " it is cannot be proven"
            )
        elif why := _no_kubelet(of, host):
            refused.append(f"kubelet of {host.host} stays at level {former}, because {why}")
        else:
            uid = (of.answer("server") or {}).get("kube_system_uid")
            targets.append(
                Target(
                    of.api_host or "",
                    host.host,
                    name,
                    f"level:{name}/{host.node}",
                    former,
                    level,
                    host.node,
                    uid,
                )
            )
    return tuple(logging)


def _no_kubelet(of: clusters.Cluster, host: clusters.Host) -> str:
    if of.api_status != "ok" or not of.api_host:
        return (
            "no API server answers through which it could be asked"
            f" ({of.api_reason or of.api_status})"
        )
    if not host.node:
        return "which Node of the cluster it is cannot be proven"
    names = [node.get("name") for node in (of.answer("nodes") or {}).get("items") or ()]
    return "" if not names or host.node in names else f"the API knows no Node {host.node}"


def dumped(made: Plan) -> dict[str, Any]:
    """The plan as JSON holds it."""
    return asdict(made)


def loaded(document: Mapping[str, Any]) -> Plan:
    """And back."""
    values = {
        **document,
        "targets": tuple(Target(**target) for target in document["targets"]),
        "logging": {host: tuple(names) for host, names in dict(document["logging"]).items()},
    }
    return Plan(
        **{
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
    )
