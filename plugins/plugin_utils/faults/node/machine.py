# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM530: check that a Node of the API is what its machine and its kubelet are.

A kubelet counts CPUs and memory, and reads its version and the ids of its machine, at its start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from ...evidence import memoize
from ...evidence.document import one_line, shell_name
from ...models import ages, pressure, registration
from ...models.api_node import NodeView, views
from ...models.cluster import Cluster, Host
from ...models.result import EvidenceRef, Missing
from ..base import CheckResult, Detection, cluster_check, not_applicable, unknown
from . import doubled_addresses, identity, shared_machine_ids

KUBELET = "kubelet"
# The kernel keeps more or less memory for itself from one boot to the next.
LESS = 0.95
TWIN = "another machine is the same node"
RESTART = "restart the kubelet (systemctl restart kubelet)"


@cluster_check(
    "KM530",
    "Nodes, machines and addresses do not match",
    severity="warning",
    applies="nodes with a kubelet of its own",
    needs=("system", "kubelet", "network", "pinning", "pressure"),
    cluster_needs=("nodes",),
    current_only=True,
)
def differs(cluster: Cluster) -> Iterator[CheckResult]:
    """KM530: report a Node that another machine posts, or that its kubelet has not updated."""
    yield from identity.each(cluster, _result)
    shared = (*shared_machine_ids.hits(cluster), *doubled_addresses.hits(cluster))
    if shared:
        yield CheckResult(shared)


def _result(cluster: Cluster, host: Host, view: NodeView | None) -> CheckResult:
    twins = _twins(cluster, host)
    if twins:
        hits = [_of_two(host, other) for other in twins if other.host < host.host]
        return CheckResult(tuple(hits[:1]), host=host.host, component=KUBELET, note=TWIN)
    node, missing = _node_of(cluster, host, view), cluster.missing("nodes")
    if missing or node is None:
        return _without_node(host, missing, "the API has no Node of it")
    former = list(_former(cluster, host, node))
    if not former and not _posts(host, node):
        return _without_node(host, (), "its kubelet posts nothing")
    posted, missing = _posted(cluster, host, node)
    if posted and ages.has_just_started(cluster, host):  # its Node may still be that of before
        young = (Missing(host.host, KUBELET, "error"),)
        return CheckResult(tuple(former), young, host=host.host, component=KUBELET)
    return CheckResult((*former, *posted), missing, host=host.host, component=KUBELET)


def _without_node(host: Host, missing: tuple[Missing, ...], reason: str) -> CheckResult:
    """Return the result of a host whose Node tells nothing of it now."""
    if missing:
        return unknown(*missing, host=host.host, component=KUBELET)
    return not_applicable(reason, host=host.host, component=KUBELET)


@memoize.last
def _by_name(cluster: Cluster) -> dict[str, NodeView]:
    return {view.name: view for view in views(cluster)}


def _node_of(cluster: Cluster, host: Host, view: NodeView | None) -> NodeView | None:
    """Return the Node of a host: that of its name before another one with its address."""
    nodes = _by_name(cluster)
    return nodes.get(host.identity.name or "") or nodes.get(host.node or "") or view


def _posts(host: Host, view: NodeView) -> bool:
    """Tell whether the API hears the kubelet of a host."""
    if view.ready not in ("True", "False") or host.kubelet_started is None:
        return False
    return view.name in (host.node, host.identity.name)


# -- two machines ---------------------------------------------------------------------------------


@memoize.last
def _names(cluster: Cluster) -> dict[str, list[Host]]:
    """Map the names of nodes to the hosts whose kubelets run under them."""
    hosts: dict[str, list[Host]] = {}
    for host in cluster.hosts:
        name = host.identity.name
        if _is_node(cluster, host) and name is not None and host.node in (None, name):
            hosts.setdefault(name, []).append(host)
    return hosts


def _is_node(cluster: Cluster, host: Host) -> bool:
    """Tell whether a kubelet runs for longer, has joined a cluster, and names its node itself."""
    if host.kubelet_started is None or host.identity.clouded:
        return False
    has_joined = host.registration.kubeconfig not in (None, registration.MISSING)
    return has_joined and not ages.has_just_started(cluster, host)


def _is_same(host: Host, other: Host) -> bool:
    """Tell whether two hosts are one machine that the inventory has twice."""
    addresses = host.identity.addresses
    is_one_id = not host.machine.has_other_id(other.machine)
    return is_one_id and bool(addresses) and addresses == other.identity.addresses


def _twins(cluster: Cluster, host: Host) -> list[Host]:
    """Return the other machines whose kubelets run under the name of this one's."""
    named = _names(cluster).get(host.identity.name or "", [])
    if host not in named:
        return []
    return [
        other
        for other in named
        if host.machine.differs(other.machine) and not _is_same(host, other)
    ]


def _of_two(host: Host, other: Host) -> Detection:
    name = host.identity.name or ""
    return Detection(
        f"two machines use the node name {name}: {host.host} ({_by(host)}) and {other.host}"
        f" ({_by(other)}). Each kubelet overwrites the Node of the other, and both start or end the"
        " same pods",
        (_name_proof(host), _name_proof(other)),
        "stop the kubelet of one machine, give this machine another host name, and join it again"
        " under that name (kubeadm reset, kubeadm join). On a control plane node, run kubeadm reset"
        " with --skip-phases=remove-etcd-member: that phase would remove the etcd member of the"
        " other machine. A cloned machine also needs its own machine id (rm /etc/machine-id,"
        " systemd-machine-id-setup). kubemend does not rename a host",
        host=host.host,
        node=name,
        component=KUBELET,
        severity="critical",
    )


def _by(host: Host) -> str:
    override = host.identity.override
    if override and override.strip():
        return f"--hostname-override={one_line(override, 120)}"
    return f"host name {host.identity.hostname}"


def _name_proof(host: Host) -> EvidenceRef:
    ids = f"machine id {host.machine.machine_id}, boot id {host.machine.boot_id}"
    text = one_line(f"node name {host.identity.name}, by {_by(host)}; {ids}", 400)
    return EvidenceRef("process", host.host, object=KUBELET, text=text)


def _foreign(cluster: Cluster, host: Host, view: NodeView) -> Iterator[Detection]:
    """Report a Node that is Ready by what a machine posts that is not its host."""
    if not host.machine.is_another(view.machine_id, view.boot_id):
        return
    ids = one_line(f"machine id {view.machine_id}, boot id {view.boot_id}", 200)
    yield Detection(
        f"another machine than {host.host} updates the Node {view.name}: the machine id and the"
        " boot id in the API are not those of this host",
        (_node_proof(cluster, view, ids), _name_proof(host)),
        "look for a machine of the same name (a clone, a former machine that was switched on"
        f" again): kubectl get node {shell_name(view.name, 'NODE')} -o wide has its address. Stop"
        " the kubelet there, or give it another name",
        host=host.host,
        node=view.name,
        component=KUBELET,
        severity="critical",
    )


# -- a Node of before -----------------------------------------------------------------------------


@memoize.last
def _silent(cluster: Cluster) -> dict[str, list[NodeView]]:
    """Map addresses to the silent Nodes that have them."""
    nodes: dict[str, list[NodeView]] = {}
    for view in views(cluster):
        if view.ready == "Unknown":
            for address in view.internal:
                nodes.setdefault(address, []).append(view)
    return nodes


@memoize.last
def _ready_by_address(cluster: Cluster) -> Counter[str]:
    """Count the Nodes that are Ready by their addresses: where all share one, it tells nothing."""
    ready = (view for view in views(cluster) if view.ready == "True")
    return Counter(address for view in ready for address in set(view.internal))


def _former(cluster: Cluster, host: Host, view: NodeView) -> Iterator[Detection]:
    """Report a silent Node that has only addresses of one whose kubelet posts."""
    if view.ready != "True":
        return
    nodes = {
        other.name: other
        for address in view.internal
        for other in _silent(cluster).get(address, ())
    }
    for other in nodes.values():
        if other.name != view.name and _is_former(cluster, host, view, other):
            yield _left(cluster, host, view, other)


def _is_former(cluster: Cluster, host: Host, view: NodeView, other: NodeView) -> bool:
    """Tell whether a silent Node may be one of before, and not a machine that is down.

    Its own host would be known then, and would share a virtual address at most.
    """
    if other.host not in (None, host):
        return False
    is_covered = set(other.internal) <= set(view.internal)
    return is_covered and all(
        _ready_by_address(cluster)[address] == 1 for address in other.internal
    )


def _left(cluster: Cluster, host: Host, view: NodeView, other: NodeView) -> Detection:
    addresses = ", ".join(other.internal)
    name = shell_name(other.name, "NODE")
    return Detection(
        f"the Node {other.name} has no machine any more: no kubelet updates it, and the node"
        f" {view.name} has its address ({addresses}). The machine was renamed or replaced",
        (
            _node_proof(cluster, other, f"InternalIP {addresses}; Ready is Unknown"),
            _node_proof(cluster, view, f"InternalIP {addresses}; Ready is True"),
        ),
        f"check first that no machine of the name {name} is only switched off. If the new name is"
        f" intended, delete the former Node (kubectl delete node {name}): until then its pods"
        " count, and volumes stay attached to it. If not, give the machine its former name and"
        f" {RESTART}",
        host=host.host,
        node=other.name,
        component=KUBELET,
    )


# -- what a kubelet has not read again -----------------------------------------------------------


def _posted(
    cluster: Cluster, host: Host, view: NodeView
) -> tuple[list[Detection], tuple[Missing, ...]]:
    """Return what a Node shows of another machine, or of its own one of before."""
    foreign = list(_foreign(cluster, host, view))
    if foreign:
        return foreign, ()
    hits = [*_version(cluster, host, view), *_capacity(cluster, host, view)]
    missing = [*host.missing("pinning"), *host.missing("pressure")]
    if view.capacity is None:
        missing.append(cluster.missing_answer("nodes", "not_asked"))
    if host.machine.is_replaced and host.machine.version is None:
        missing.append(Missing(host.host, "pinning", "error"))
    return hits, tuple(missing)


def _version(cluster: Cluster, host: Host, view: NodeView) -> Iterator[Detection]:
    """Report a kubelet whose program on the disk is of another version than the one that runs."""
    machine = host.machine
    program = machine.program
    is_told = machine.is_replaced and machine.version is not None
    if not is_told or view.kubelet in ("", machine.version):
        return
    yield Detection(
        f"the kubelet runs as {view.kubelet}, and {program} is {machine.version} now: it was not"
        " restarted after its program was replaced",
        (
            _node_proof(cluster, view, f"kubelet {view.kubelet}"),
            EvidenceRef("process", host.host, object=KUBELET, text=_started(host)),
            EvidenceRef("file", host.host, path=program, text=f"--version: {machine.version}"),
        ),
        f"finish the upgrade: drain the node where that is usual, then {RESTART}. Do not leave it"
        " to the next boot, which starts the other version",
        host=host.host,
        node=view.name,
        component=KUBELET,
    )


def _capacity(cluster: Cluster, host: Host, view: NodeView) -> Iterator[Detection]:
    """Report a Node with fewer CPUs or less memory than its machine has by now."""
    if (view.capacity or {}).get("cpu") == 0 and host.machine.cpus:
        yield _without_cpus(cluster, host, view)
    cpus, memory = list(_fewer_cpus(host, view)), list(_less_memory(host, view))
    less = [*cpus, *memory]
    if not less:
        return
    advice = RESTART
    if cpus and host.pinning.policy == "static":
        advice = (
            "drain the node, stop the kubelet's unit, remove cpu_manager_state (the static policy"
            " refuses another set of CPUs, KM305), and start it again"
        )
    if memory:
        advice += (
            ". Where memoryManagerPolicy is Static, drain the node and remove memory_manager_state"
            " too while the unit is stopped: with the old one the kubelet ends at its start (KM310)"
        )
    yield Detection(
        f"the Node has less capacity (status.capacity) than its machine: {'; '.join(less)}; a"
        " kubelet counts both at its start only, and more came online after that",
        (
            _node_proof(cluster, view, f"capacity: {_amounts(view)}"),
            EvidenceRef("process", host.host, object=KUBELET, text=_started(host)),
            EvidenceRef("file", host.host, path="/sys/devices/system/cpu/online"),
            EvidenceRef("file", host.host, path="/proc/meminfo"),
        ),
        f"{advice}. Where it is so after each boot, let the unit start once all of them are online",
        host=host.host,
        node=view.name,
        component=KUBELET,
    )


def _without_cpus(cluster: Cluster, host: Host, view: NodeView) -> Detection:
    """Describe a Node without a CPU: no time makes that, as the machine had one at its start."""
    kernel = one_line(host.machine.kernel or "not known", 80)
    return Detection(
        f"the Node has a capacity of 0 CPUs (status.capacity), and its machine {host.machine.cpus}:"
        f" no pod that asks for CPU is placed there. Its kubelet {one_line(view.kubelet, 40)} found"
        " no processor in what the kernel reports of them. A known cause is a kernel that is"
        f" built without CONFIG_NUMA (its kernel is {kernel}): the kubelet counts processors by the"
        " folders of NUMA nodes (/sys/devices/system/node/node*), which are not there then",
        (
            _node_proof(cluster, view, f"capacity: {_amounts(view)}"),
            EvidenceRef("file", host.host, path="/sys/devices/system/cpu/online"),
        ),
        "ls /sys/devices/system/node on the machine (and grep CONFIG_NUMA= /boot/config-$(uname"
        " -r), or zcat /proc/config.gz): where there is no node0, boot a kernel that has"
        " CONFIG_NUMA, or install another patch release of the kubelet (pre-releases of 1.19 count"
        " so); where it is there, see the lines of the kubelet's start about its machine, and"
        f" {RESTART} (see https://github.com/kubernetes/kubernetes/issues/89859)",
        host=host.host,
        node=view.name,
        component=KUBELET,
        severity="critical",
    )


def _fewer_cpus(host: Host, view: NodeView) -> Iterator[str]:
    posted = (view.capacity or {}).get("cpu")
    cpus = host.machine.cpus
    if posted and cpus is not None and posted < 1000 * cpus:
        yield f"{posted // 1000} of {cpus} CPUs"


def _less_memory(host: Host, view: NodeView) -> Iterator[str]:
    posted = (view.capacity or {}).get("memory")
    memory = host.machine.memory
    if posted is not None and memory is not None and posted < LESS * memory:
        yield f"{pressure.size(posted)} of {pressure.size(memory)} of memory"


def _amounts(view: NodeView) -> str:
    amounts = view.capacity or {}
    return ", ".join(f"{name} {_amount(name, amounts[name])}" for name in sorted(amounts)[:5])


def _amount(name: str, value: int) -> str:
    if name == "cpu":
        return f"{value // 1000}"
    return pressure.size(value)


def _started(host: Host) -> str:
    started = host.kubelet_started
    if not isinstance(started, datetime):
        return "when it started is not known"
    return f"has been running since {started:%Y-%m-%dT%H:%M:%SZ}"


def _node_proof(cluster: Cluster, view: NodeView, text: str) -> EvidenceRef:
    return EvidenceRef("api", cluster.api_host, object=f"Node {view.name}", text=text)
