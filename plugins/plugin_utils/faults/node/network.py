# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what a kubelet posts about its node: KM519 no network for pods, KM523 pressure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ....module_utils.shared.kernel_modules import XTABLES
from ...evidence.answers.cluster.nodes import Condition
from ...evidence.document import ends, one_line, shell_name
from ...models import ages, network_agents, pod_roles, refused_pods
from ...models import pressure as model_pressure
from ...models.api_node import NodeView, and_others, views
from ...models.cluster import Cluster
from ...models.network_agents import FailingAgent
from ...models.result import EvidenceRef
from ..base import CheckResult, Detection, causes, cluster_check, without_kubernetes
from ..pods import pod_errors, system_pods
from . import taints as node_taints
from . import wording

# kubelets since 1.5 with docker, since 1.7 with a CRI; the runtime's own words stand behind
# "message:".
NO_DEFAULT = "Missing CNI default network"  # ocicni of CRI-O
UNTAKEN = (
    f", and CRI-O has not taken it ({NO_DEFAULT}): it takes a file when that appears or changes,"
    " and only where the programs of its plugins are there"
)
TAKE_AGAIN = (
    "where the programs that the configuration names are there (ls /opt/cni/bin), let CRI-O read it"
    " once more: touch the file, or systemctl restart crio, which leaves containers running; a"
    " program in another folder: plugin_dirs of /etc/crio/crio.conf"
)
JOINING = 120.0  # seconds that a node which joins takes to get its network
_NETWORK = re.compile(
    r"NetworkReady=false|NetworkPluginNotReady|network plugin is not ready|cni plugin not"
    r" initialized|cni config uninitialized",
    re.IGNORECASE,
)
# What a network plugin calls the file that it writes: (part of its name, the plugin, its
# DaemonSet).
PLUGINS = (
    ("calico", "Calico", "calico-node"),
    ("canal", "Canal", "canal"),
    ("cilium", "Cilium", "cilium"),
    ("flannel", "Flannel", "kube-flannel-ds"),
    ("weave", "Weave Net", "weave-net"),
    ("kuberouter", "kube-router", "kube-router"),
    ("kube-router", "kube-router", "kube-router"),
    ("aws", "the VPC CNI of AWS", "aws-node"),
    ("antrea", "Antrea", "antrea-agent"),
    ("ovn", "OVN", "ovs-ovn or ovnkube-node"),
    ("kindnet", "kindnet", "kindnet"),
)
# A kernel without modules for the rules of a network plugin.
_WITHOUT_MODULES = causes("KM520", component=XTABLES[0]) | causes("KM520", component=XTABLES[1])
PRESSURES = {
    "MemoryPressure": (
        "memory",
        "memory-pressure",
        (
            "see which pods use more than they ask for (kubectl top pod, their limits), and what"
            " else runs on the machine; requests and limits, or more memory, end it"
        ),
    ),
    "DiskPressure": (
        "disk space or inodes",
        "disk-pressure",
        (
            "see df and df -i of the file systems of the kubelet and of the runtime; logs, images"
            " that nothing uses and emptyDirs are the usual cause. Where it is /var/log, du -ah"
            " /var/log | sort -h | tail shows which file; KM529 and KM118 quote what a component"
            " repeats. Where it is the runtime's folder, crictl rmi --prune removes images that no"
            " container has; a kubelet that cannot free enough (events ImageGCFailed) has images"
            " in use only: enlarge the disk, or let fewer pods with large images run there"
        ),
    ),
    "PIDPressure": (
        "process ids",
        "pid-pressure",
        (
            "see which pod starts so many processes or threads (pids.current of its cgroup);"
            " podPidsLimit bounds one"
        ),
    ),
}


@cluster_check(
    "KM519",
    "Network of pods is not set up",
    severity="critical",
    applies="Nodes whose kubelet posts its conditions",
    needs=("kubelet", "cni"),
    cluster_needs=("nodes",),
    current_only=True,
    explained_by=_WITHOUT_MODULES | causes("KM604"),
    same_node=True,
)
def uninitialised(cluster: Cluster) -> Iterator[CheckResult]:
    """KM519: report a kubelet that is NotReady because its runtime has no network for pods."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    hits, missing = [], list(cluster.missing("nodes"))
    for view in views(cluster):
        ready = view.condition("Ready")
        if view.ready != "False" or _fresh(cluster, view):
            continue
        if ages.clocks(cluster).doubt:  # it may have joined a moment ago
            missing.append(cluster.missing_answer("nodes", "error"))
        elif ready is None or ready.message is None:
            # an older release collected it
            missing.append(cluster.missing_answer("nodes", "not_asked"))
        elif _NETWORK.search(ready.message):
            hits.append(_with_programs(view, _uninitialised(cluster, view, ready)))
    yield CheckResult(tuple(hits), tuple(dict.fromkeys(missing)))


def _with_programs(view: NodeView, hit: Detection) -> Detection:
    """Return a hit that names the folder of a node which has no programs of CNI."""
    networks = view.host.identity.networks if view.host is not None else None
    if view.host is None or networks is None or not networks.bare:
        return hit
    proof = EvidenceRef("file", view.host.host, path=networks.bare, text="has no programs of CNI")
    return replace(
        hit,
        summary=f"{hit.summary}; {networks.bare} has no programs of CNI, without which no plugin"
        " gives a pod its network",
        evidence=(*hit.evidence, proof),
        remedy=f"put the programs of CNI into {networks.bare} (the package kubernetes-cni, or the"
        f" archive of containernetworking/plugins: loopback, bridge, host-local, portmap); then"
        f" {hit.remedy}",
    )


def _is_untaken(view: NodeView, ready: Condition) -> bool:
    """Tell whether CRI-O has no network although the folder has a configuration."""
    if view.host is None or view.host.identity.networks is None:
        return False
    is_missing = NO_DEFAULT.lower() in (ready.message or "").lower()
    return (
        is_missing and view.runtime.startswith("cri-o") and bool(view.host.identity.networks.names)
    )


def _fresh(cluster: Cluster, view: NodeView) -> bool:
    """Tell whether the node has just joined: the plugin's pod starts only then."""
    age = ages.age(cluster, view.created, "nodes")
    return age is not None and 0 <= age < JOINING


def _uninitialised(cluster: Cluster, view: NodeView, ready: Condition) -> Detection:
    folder, proofs = _folder(view)
    unread = _unread(view)
    plugin = _plugin(cluster)
    pod = "the network plugin's pod (calico-node, cilium, kube-flannel-ds …)"
    if plugin:
        pod = f"the pod of {plugin[1]} ({plugin[0]})"
    remedy = (
        f"see {pod} on this node: kubectl get pods -A -o wide --field-selector"
        f" spec.nodeName={shell_name(view.name, 'NODE')}; why it does not run or what it logs is"
        " the cause (an image that cannot be pulled, a mount, the API that it does not reach)"
    )
    if folder.startswith("holds"):
        remedy += (
            "; if it runs, see the runtime's log: a configuration that it cannot read or whose"
            " program is missing (/opt/cni/bin), or a folder of its own"
        )
    elif plugin is None:
        remedy += _others(cluster, view)
    if unread and view.host is not None:
        proofs.append(EvidenceRef("log", view.host.host, object="container runtime", text=unread))
        folder += f", and its runtime has not loaded it ({unread})"
        remedy += (
            "; a runtime watches the folder that was there at its start: where that was removed"
            " and made again (kubeadm reset), systemctl restart of the runtime loads it"
        )
    elif _is_untaken(view, ready):
        folder, remedy = f"{folder}{UNTAKEN}", f"{TAKE_AGAIN}; {remedy}"
    folder += _ended(cluster, view)
    agent = network_agents.failing(cluster, view.name, view.host)
    if agent is not None:
        folder += f"; {agent.clause}"
        remedy = f"see why: {agent.command}; {remedy}"
        proofs.append(
            EvidenceRef("api", cluster.api_host, object=agent.waiting.owner, text=_seen(agent))
        )
        if agent.kernel:
            folder += f"; {agent.kernel}"
            remedy = f"boot a kernel that has what the plugin needs; {remedy}"
        if agent.names:
            folder += f"; {agent.names}"
            remedy = (
                "give the node a name server outside the cluster (resolvectl dns INTERFACE ADDRESS"
                " at once; DNS= of /etc/systemd/resolved.conf or /etc/resolv.conf to keep it;"
                " Kubespray: upstream_dns_servers, or enable_nodelocaldns); then the image is"
                f" pulled; {remedy}"
            )
    text = f"{one_line(ready.reason, 80)}: {ends(ready.message, 400)}"
    return Detection(
        f"the node is NotReady{wording.since(ready.since)} because it has no network for"
        f" pods; its folder of CNI configuration {folder}",
        (EvidenceRef("api", cluster.api_host, object=f"Node {view.name}", text=text), *proofs),
        remedy,
        host=wording.host_name(view),
        node=view.name,
        because=(
            *system_pods.because(cluster, "network", view.name),
            *pod_errors.because(cluster, "network", view.name),
            *_unmade(cluster),
        ),
    )


def _ended(cluster: Cluster, view: NodeView) -> str:
    """Return what the plugin's pod that ends again and again on a node says of why, as a clause."""
    pods = system_pods.endings(cluster, "network", view.name)
    pod = next((pod for pod in pods if pod.told), None)
    if pod is None:
        return ""
    return f"; {pod_roles.workload(pod)} ends there again and again: {pod.told}"


def _unmade(cluster: Cluster) -> tuple[str, ...]:
    """Return why the API makes no pods of a DaemonSet of the system, as those of networks are."""
    rows = refused_pods.daemons_of_system(cluster)
    if not rows:
        return ()
    if any(refused_pods.is_by_dead_webhook(cluster, row) for row in rows):
        return ("KM176",)
    return ("KM223",)


def _seen(agent: FailingAgent) -> str:
    """Return what the API shows of a network plugin's pods, with their newest event."""
    row = agent.waiting.row
    text = f"{wording.pods(agent.waiting.pods)} {one_line(row.state, 80)}"
    if row.event is None:
        return text
    return f"{text}: {ends(row.event.message, 300)}"


def _folder(view: NodeView) -> tuple[str, list[EvidenceRef]]:
    """Return a clause about the host's CNI directory, and the evidence of it."""
    host = view.host
    if host is None or host.identity.networks is None or host.identity.inside:
        return "is not known here", []
    networks = host.identity.networks
    if networks.error and networks.error != "missing":
        return f"({networks.folder}) could not be listed: {networks.error}", []
    contents = "is empty"
    if networks.names:
        contents = f"holds {and_others(networks.names)}"
    elif networks.empty:
        contents = f"has only empty files: {and_others(networks.empty)}"
    elif networks.error:
        contents = "is not there"
    proof = EvidenceRef("file", host.host, path=networks.folder, text=contents)
    return f"{contents} ({networks.folder})", [proof]


def _unread(view: NodeView) -> str:
    """Return the runtime's own words where the folder has a configuration that it did not load."""
    if view.host is None or view.host.identity.networks is None:
        return ""
    networks = view.host.identity.networks
    return networks.unread if networks.names else ""


def _others(cluster: Cluster, view: NodeView) -> str:
    """Return what other hosts have in their directories, where no file names a known plugin."""
    if view.host is None or view.host.identity.networks is None:
        return ""
    other_hosts = [
        (host.host, host.identity.networks.names)
        for host in cluster.hosts
        if host is not view.host and host.identity.networks
    ]
    if not other_hosts:
        return ""
    listed = [f"{', '.join(names)} ({host})" for host, names in other_hosts if names]
    if not listed:
        return "; no other host that answered has any either: was a network plugin ever installed?"
    return f"; others have {and_others(listed, 3)}"


def _plugin(cluster: Cluster) -> tuple[str, str] | None:
    """Return the network plugin and its DaemonSet, by the files of it on any host, or None."""
    networks = [host.identity.networks for host in cluster.hosts if host.identity.networks]
    names = [name.lower() for item in networks for name in (*item.names, *item.empty)]
    for part, title, pods in PLUGINS:
        if any(part in name for name in names):
            return title, pods
    return None


@cluster_check(
    "KM523",
    "Node is short of memory, disk or PIDs",
    severity="warning",
    applies="Nodes whose kubelet posts its conditions",
    needs=("kubelet", "pressure", "largest"),
    cluster_needs=("nodes",),
    current_only=True,
)
def pressed(cluster: Cluster) -> Iterator[CheckResult]:
    """KM523: report a node of which the kubelet posts pressure."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    missing, hits = list(cluster.missing("nodes")), []
    for view in views(cluster):
        conditions = [
            condition
            for condition in view.conditions
            if condition.type in PRESSURES and condition.status == "True"
        ]
        if conditions:
            hits.append(_pressed(cluster, view, conditions))
        if not view.told and not missing:
            # an older release collected it
            missing.append(cluster.missing_answer("nodes", "not_asked"))
    yield CheckResult(tuple(hits), tuple(missing))


def _eased(condition: str, pressure: model_pressure.Pressure) -> list[str]:
    """Return a clause for a condition although no threshold is crossed now."""
    rows = list(pressure.measures_of(condition))
    if not any(is_own and threshold.free is not None for threshold, is_own, _crossed in rows):
        return []
    if condition == "MemoryPressure":
        return [
            "by MemAvailable no threshold is crossed now: the kubelet counts by control groups, and"
            " keeps the condition for five minutes"
        ]
    return [
        f"no threshold of {condition} is crossed now: the kubelet keeps the condition for five"
        " minutes, unless it was configured otherwise"
    ]


def _pressed(cluster: Cluster, view: NodeView, conditions: list[Condition]) -> Detection:
    resources = [_resource(condition) for condition in conditions]
    proofs: list[EvidenceRef] = []
    clauses: list[str] = []
    for condition in conditions:
        proofs.append(_condition(cluster, view, condition))
        if view.host is not None:
            kind, pressure = condition.type or "", view.host.pressure
            crossed, more = model_pressure.describe_condition(kind, view.host.host, pressure)
            clauses += crossed or _eased(kind, pressure)
            proofs += more
    measured = ""
    if clauses:
        measured = f"; {'; '.join(clauses)}"
    return Detection(
        f"the node is short of {' and of '.join(resources)}: its kubelet evicts pods, and no new"
        f" ones come{measured}",
        tuple(proofs),
        f"{'; '.join(_advice(view, conditions))}. The kubelet takes the condition back itself, and"
        " the node lifecycle controller its taint",
        host=wording.host_name(view),
        node=view.name,
    )


def _advice(view: NodeView, conditions: list[Condition]) -> Iterator[str]:
    """Yield what to do about these conditions, what tells most first."""
    types = [condition.type or "" for condition in conditions]
    if view.host is not None and "DiskPressure" in types:
        yield from model_pressure.advice_on_logs(view.host.pressure)
    yield from (PRESSURES[kind][2] for kind in types)


def _resource(condition: Condition) -> str:
    """Return what a node is short of, for a summary."""
    kind = condition.type or ""
    return f"{PRESSURES[kind][0]} ({kind}{wording.since(condition.since)})"


def _condition(cluster: Cluster, view: NodeView, condition: Condition) -> EvidenceRef:
    kind = condition.type or ""
    key = f"node.kubernetes.io/{PRESSURES[kind][1]}"
    carried = [node_taints.spelled(taint) for taint in view.taints if taint.key == key]
    text = f"{kind} is True, {condition.reason or 'no reason'}"
    if carried:
        text += f"; carries {', '.join(carried)}"
    return EvidenceRef(
        "api", cluster.api_host, object=f"Node {view.name}", text=one_line(text, 300)
    )
