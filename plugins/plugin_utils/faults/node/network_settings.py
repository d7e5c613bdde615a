# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM534: check what of a host works against its network plugin.

A setting counts where the plugin in use suffers from it: by its interfaces, which only exist where
it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeGuard

from ....module_utils.shared.kernel_modules import ABSENT, AVAILABLE, XTABLES
from ....module_utils.shared.networkd_settings import NO, ROUTES, RULES, SECTION
from ...evidence.answers.node.network import Interface, NetworkService, ServiceSetting
from ...evidence.document import one_line
from ...models import ages, pod_start
from ...models import pod_networks as model_pods
from ...models.api_node import NodeView, and_others, views
from ...models.cluster import Cluster, Host
from ...models.host_network import LOOSE_FILTER
from ...models.moments import moment
from ...models.pod_start import Waiting
from ...models.result import EvidenceRef, Missing
from ..base import CheckResult, Detection, cluster_check, without_kubernetes
from . import flushed_rules, policy_chains, shared_addresses
from .wording import MORE_MODULES

OPENVSWITCH, RP_FILTER = "openvswitch", "rp_filter"
WITH_LOOSE_FILTER = "calico-rp-filter-loose"  # a row of known messages
# The kernel loads others by itself, where their files are there.
LACKING = {False: (ABSENT,), True: (ABSENT, AVAILABLE)}
# Plugins by a part of the names of their pods' owners, and modules without which they do not work.
NEEDS = (
    ("antrea-agent", (OPENVSWITCH,)),
    ("ovs-ovn", (OPENVSWITCH,)),
    ("ovnkube-node", (OPENVSWITCH,)),
    ("kube-flannel", ("vxlan",)),
    ("canal", ("vxlan", *XTABLES)),
    ("calico-node", XTABLES),
    ("kube-proxy", XTABLES),
)
NETWORKD = "systemd-networkd"  # the component of findings about it
JOINING, LATER = 120.0, 60.0  # seconds
SHOWN = 3
CILIUM, LXC, FLANNEL = "cilium_host", "lxc*", "flannel.1"
# Interfaces that NetworkManager should leave alone: what shows their plugin, what it is called.
PLUGINS = (("cali*", "cali0"), (FLANNEL, FLANNEL), (CILIUM, CILIUM), ("vxlan.calico",) * 2)
# Plugins whose rules or routes systemd-networkd removes: (interface, plugin, whether they are of
# each pod, so that pods that run have none until they are made again).
FOREIGN = (
    ("eni*", "the VPC CNI of AWS", True),
    (CILIUM, "Cilium", False),
    ("cali*", "Calico", False),
    ("kube-bridge", "kube-router", False),
)
# What a tunnel adds to each packet.
TUNNELS = ((FLANNEL, 50), ("vxlan.calico", 50))
# The interfaces of pods whose packets go through a tunnel, which is only there where it is used.
INNER = (("cali*", "vxlan.calico"),)
VIRTUAL = ("vxlan", "wireguard", "geneve")
NAMES = ("cni", "docker", "br-", "kube-", "dummy", "nodelocaldns", "virbr", "tap", "tun", "cilium")


@cluster_check(
    "KM534",
    "A setting of the host works against the network plugin",
    severity="warning",
    applies="nodes with a kubelet",
    needs=("system", "kubelet", "limits", "network", "boot", "system_pods"),
    cluster_needs=("nodes", "pod_start"),
)
def against(cluster: Cluster) -> Iterator[CheckResult]:
    """KM534: report settings of a host by which the traffic of its pods is lost."""
    if cluster.key is None:
        yield without_kubernetes()
        return
    nodes = views(cluster)
    for host in cluster.hosts:
        missing = host.missing("network")
        if missing:
            yield CheckResult((), missing, host=host.host)
        elif host.statuses.get("network") == "absent":
            yield CheckResult((), applies=False, host=host.host, note="no kubelet")
        else:
            yield _of_host(cluster, host, nodes)
    shared = tuple(shared_addresses.hits(cluster))
    if shared:
        yield CheckResult(shared)


def _of_host(cluster: Cluster, host: Host, nodes: Sequence[NodeView]) -> CheckResult:
    hits = [
        *_reverse_path(host),
        *_loose_path(host),
        *_networkd(host),
        *_manager(cluster, host, nodes),
        *_two_backends(host),
        *flushed_rules.hits(host),
        *policy_chains.hits(cluster, host),
        *_mtu(host),
        *_modules(cluster, host),
    ]
    missing: tuple[Missing, ...] = ()
    note = ""
    rules = host.network.answer.iptables
    if rules is not None and None in (rules.tables, rules.legacy):
        missing = (Missing(host.host, "network", "denied" if rules.tables is None else "error"),)
        note = (
            "which backend of iptables has rules of Services is not known: see iptables-legacy-save"
            " and iptables-nft-save, as root"
        )
    return CheckResult(tuple(hits), missing, host=host.host, note=note)


def _row(host: Host, name: str) -> Interface | None:
    return next((row for row in host.network.answer.interfaces if row.name == name), None)


def _runs(service: NetworkService | None) -> TypeGuard[NetworkService]:
    """Tell whether a service runs, and its files are known."""
    return service is not None and service.active is True and not service.unread


# -- reverse path filter -------------------------------------------------------------------------


def _reverse_path(host: Host) -> Iterator[Detection]:
    """Report a filter of the interfaces of Cilium's pods, which Cilium switches off itself.

    The kernel uses the larger value of `all` and of the interface. Calico wants the filter.
    """
    row, everywhere = _row(host, LXC), host.network.answer.rp_filter or 0
    if row is None or not host.network.has(CILIUM):
        return
    values = [max(value, everywhere) for value in row.rp_filters]
    if not any(values):
        return
    place = f"net.ipv4.conf.{LXC}.rp_filter"
    if everywhere == max(values):
        place = "net.ipv4.conf.all.rp_filter"
    lines = host.network.rp_filter_lines
    source = ""
    if lines:
        source = f"; {lines[0][0]} sets it"
    yield Detection(
        f"rp_filter is {max(values)} for the interfaces of Cilium's pods ({place}){source}: the"
        " kernel drops packets of pods that do not come in by the interface of their route, so that"
        " pods reach nothing outside of their node",
        (
            EvidenceRef(
                "file",
                host.host,
                path=f"/proc/sys/{place.replace('.', '/')}",
                text=f"rp_filter {max(values)}",
            ),
            *(
                EvidenceRef("file", host.host, path=path, line=line, text=text)
                for path, line, text in lines
            ),
        ),
        "write net.ipv4.conf.lxc*.rp_filter = 0 and net.ipv4.conf.all.rp_filter = 0 into"
        " /etc/sysctl.d/99-zzz-override_cilium.conf, which comes after the other files, and"
        " apply it (systemctl restart systemd-sysctl): systemd (since 245) sets the value of its"
        " files for each interface that is made later too",
        host=host.host,
        node=host.node,
        component=RP_FILTER,
    )


def _loose_path(host: Host) -> Iterator[Detection]:
    """Report a loose filter (2) that Calico refuses; it says so, unless it is told to accept it."""
    names = [pod.known.id for pod in host.system_pods if pod.known is not None]
    if not host.network.is_loose or WITH_LOOSE_FILTER not in names:
        return
    lines = [row for row in host.network.rp_filter_lines if row[2].rstrip().endswith("2")]
    source = "".join(f": {path} sets it" for path, _line, _text in lines[:1])
    yield Detection(
        f"net.ipv4.conf.all.rp_filter is {LOOSE_FILTER} (loose){source}, which calico-node refuses"
        " at its start: with it a pod may send packets with the address of another one",
        (
            EvidenceRef(
                "file",
                host.host,
                path="/proc/sys/net/ipv4/conf/all/rp_filter",
                text=f"rp_filter {LOOSE_FILTER}",
            ),
            *(
                EvidenceRef("file", host.host, path=path, line=line, text=text)
                for path, line, text in lines
            ),
        ),
        "write net.ipv4.conf.all.rp_filter = 1 into /etc/sysctl.d/99-zzz-calico.conf, which comes"
        " after the other files, and apply it (sysctl --system; sysctl net.ipv4.conf.all.rp_filter"
        " shows it); calico-node then starts by itself. FELIX_IGNORELOOSERPF=true of calico-node"
        " accepts 2; pods may then send with addresses of others",
        host=host.host,
        node=host.node,
        component=RP_FILTER,
        severity="critical",
    )


# -- systemd-networkd ----------------------------------------------------------------------------


def _networkd(host: Host) -> Iterator[Detection]:
    service = host.network.answer.networkd
    plugin = next((row for row in FOREIGN if host.network.has(row[0])), None)
    if plugin is None or not _runs(service):
        return
    managed = managed_keys(service)
    if not managed:
        return
    _interface, name, for_each_pod = plugin
    restarted = _restarted(host, service)
    severity, when, again = "info", "at its next start, which an update of systemd brings,", ""
    if restarted:
        when, again = "at each start", f"; it was started again at {restarted}, after the kubelet"
        severity = "warning" if for_each_pod else "info"
    yield Detection(
        f"systemd-networkd manages routes and rules of others ({' and '.join(managed)} not off):"
        f" {when} it may remove what {name} added for pods, which are not reached then{again}",
        (
            EvidenceRef(
                "unit",
                host.host,
                object="systemd-networkd.service",
                text=f"active; {', '.join(f'{key} is not no' for key in managed)}",
            ),
        ),
        "write ManageForeignRoutes=no and ManageForeignRoutingPolicyRules=no into the section"
        " [Network] of /etc/systemd/networkd.conf.d/99-kubernetes.conf, and do not restart"
        " systemd-networkd for it: it reads the file at its next start. Where pods are not reached"
        f" already, restart the agent of {name} on this node, then its pods. ManageForeignRoutes"
        " came with systemd 246, ManageForeignRoutingPolicyRules with 249",
        host=host.host,
        node=host.node,
        component=NETWORKD,
        risk=1,
        severity=severity,
    )


def managed_keys(service: NetworkService) -> list[str]:
    """Return the settings that no file of networkd says no to."""
    return [key for key in (RULES, ROUTES) if _value(service, key).lower() not in NO]


def _value(service: NetworkService, key: str) -> str:
    """Return the last value of a key, "" where no file sets it."""
    values = [row.value for row in service.rows if row.key == key and row.section == SECTION]
    return values[-1] if values else ""


def _restarted(host: Host, service: NetworkService) -> str:
    """Return when a service was started, where that was after the kubelet; else ""."""
    started, kubelet = moment(service.since), host.kubelet_started
    if started is None or kubelet is None or (started - kubelet).total_seconds() < LATER:
        return ""
    return f"{started:%Y-%m-%dT%H:%M:%SZ}"


# -- NetworkManager ------------------------------------------------------------------------------


def _manager(cluster: Cluster, host: Host, nodes: Sequence[NodeView]) -> Iterator[Detection]:
    service = host.network.answer.network_manager
    if not _runs(service):
        return
    managed = [
        name
        for name, example in PLUGINS
        if host.network.has(name) and not _left_alone(service.rows, example)
    ]
    if not managed:
        return
    lost = list(_lost_routes(cluster, host, nodes))
    severity, harm = "info", "; it may change their addresses and routes"
    proofs = [
        EvidenceRef(
            "unit",
            host.host,
            object="NetworkManager.service",
            text=f"active; no file leaves {', '.join(managed)} alone",
        )
    ]
    if lost:
        severity = "warning"
        shown = [f"{cidr} ({view.name})" for view, cidr in lost]
        harm = f"; the node has no route to the pods of {and_others(shown, SHOWN)}"
        proofs.append(
            EvidenceRef("file", host.host, path="/proc/net/route", text=f"none to {shown[0]}")
        )
    yield Detection(
        f"NetworkManager manages interfaces of the network plugin ({', '.join(managed)}): no file"
        f" of its conf.d leaves them alone{harm}",
        tuple(proofs),
        "write /etc/NetworkManager/conf.d/kubernetes.conf with the section [keyfile] and"
        " unmanaged-devices=interface-name:cali*;interface-name:flannel*;interface-name:tunl*;"
        "interface-name:vxlan.calico;interface-name:cilium*;interface-name:lxc*;interface-name:cni*"
        " , then systemctl reload NetworkManager; where routes are missing, restart the pod of the"
        " network plugin on this node",
        host=host.host,
        node=host.node,
        component="NetworkManager",
        severity=severity,
    )


def _left_alone(rows: Sequence[ServiceSetting], name: str) -> bool:
    """Tell whether a file tells NetworkManager not to manage an interface of this name."""
    unmanaged = {
        (row.path, row.section) for row in rows if row.key == "managed" and row.value.lower() in NO
    }
    texts = [
        row.value
        for row in rows
        if row.key.rstrip("+") == "unmanaged-devices"
        or (row.key == "match-device" and (row.path, row.section) in unmanaged)
    ]
    specs = [spec.strip() for text in texts for spec in text.replace(",", ";").split(";")]
    return any(_matches(spec, name) for spec in specs)


def _matches(spec: str, name: str) -> bool:
    if spec == "*":
        return True
    _kind, _colon, pattern = spec.rpartition(":")
    return fnmatchcase(name, pattern.lstrip("=~"))


def _lost_routes(
    cluster: Cluster, host: Host, nodes: Sequence[NodeView]
) -> Iterator[tuple[NodeView, str]]:
    """Yield the other Nodes, and their networks, that a node of Flannel has no route to.

    Flannel takes the networks of Nodes only where it has no store of its own: then flannel.1 has
    the first address of this one's.
    """
    own_node = next((view for view in nodes if view.host is host), None)
    if not _is_flannel(host, own_node):
        return
    routes = {route.to for route in host.network.answer.routes or () if not route.is_dead_end}
    for view in _joined(cluster, nodes, own_node):
        for subnet in model_pods.networks(_cidrs(view)):
            if subnet.version == 4 and str(subnet) not in routes:
                yield view, str(subnet)


def _is_flannel(host: Host, own_node: NodeView | None) -> bool:
    """Tell whether Flannel takes the networks of Nodes, and all routes of the host are known."""
    answer = host.network.answer
    if answer.routes is None or answer.routes_cut or not host.network.has(FLANNEL):
        return False
    subnets = model_pods.networks(_cidrs(own_node))
    addresses = host.identity.addresses or frozenset()
    return not addresses.isdisjoint(str(subnet.network_address) for subnet in subnets)


def _joined(
    cluster: Cluster, nodes: Sequence[NodeView], own_node: NodeView | None
) -> Iterator[NodeView]:
    """Yield the other Nodes that are Ready, and have been there for a while."""
    for view in nodes:
        age = ages.age(cluster, view.created, "nodes") or 0
        if view is not own_node and view.ready == "True" and age >= JOINING:
            yield view


def _cidrs(view: NodeView | None) -> Sequence[str]:
    if view is None:
        return ()
    return view.pod_cidrs or ()


# -- iptables ------------------------------------------------------------------------------------


def _two_backends(host: Host) -> Iterator[Detection]:
    rules = host.network.answer.iptables
    if rules is None or not (rules.legacy and rules.nft):
        return
    yield Detection(
        "iptables-legacy and iptables-nft both have chains of Services (KUBE-SERVICES, KUBE-SVC-*):"
        " kube-proxy keeps one of them up to date, and the other one still leads to pods of before",
        (
            EvidenceRef(
                "file",
                host.host,
                path="/proc/net/ip_tables_names",
                text=f"legacy tables: {one_line(', '.join(rules.tables or ()), 200)}",
            ),
        ),
        "see which one kube-proxy uses (its log at start, or iptables --version in its image: by"
        " KUBE-IPTABLES-HINT or KUBE-KUBELET-CANARY in the table mangle); drain the node and reboot"
        " it, which empties both, or remove the chains of the other one (iptables-legacy -t nat -S"
        " | grep KUBE-; nothing else of that backend may be in use)",
        host=host.host,
        node=host.node,
        component="iptables",
    )


# -- size of packets -----------------------------------------------------------------------------


def _mtu(host: Host) -> Iterator[Detection]:
    """Report tunnels that carry less than what comes in, or more than what goes out."""
    yield from _inner_mtu(host)
    yield from _outer_mtu(host)


def _inner_mtu(host: Host) -> Iterator[Detection]:
    """Report interfaces of pods whose packets are larger than their tunnel takes."""
    for name, tunnel in INNER:
        row, inner = _row(host, tunnel), _row(host, name)
        if row is None or inner is None or not row.mtu:
            continue
        if (inner.mtu or 0) <= row.mtu:
            continue
        path = f"/sys/class/net/{tunnel}/mtu"
        yield Detection(
            f"the interfaces of pods ({name}) have an MTU of {inner.mtu}, and the tunnel {tunnel},"
            f" by which they reach other nodes, takes {row.mtu}: larger packets are lost, or sent"
            " again in smaller ones",
            (EvidenceRef("file", host.host, path=path, text=f"{row.mtu}; {name}: {inner.mtu}"),),
            f"let Calico find the MTU (veth_mtu of its ConfigMap 0, calicoNetwork.mtu, vethMTU of"
            f" KubeKey unset), or set it to {row.mtu}, and restart its pods; pods that run keep"
            " theirs until they are made again",
            host=host.host,
            node=host.node,
            component=name,
        )


def _outer_mtu(host: Host) -> Iterator[Detection]:
    """Report a tunnel that takes packets which no link of the node carries with its header."""
    links = [row.mtu for row in host.network.answer.interfaces if row.mtu and _is_link(row)]
    if not links:
        return
    largest = max(links)
    for name, header in TUNNELS:
        row = _row(host, name)
        if row is None or not row.mtu or row.mtu + header <= largest:
            continue
        yield Detection(
            f"{name} has an MTU of {row.mtu}, and no link of the node carries more than {largest}"
            f" bytes, of which the tunnel needs {header}: small packets of pods pass, large ones"
            " are lost",
            (EvidenceRef("file", host.host, path=f"/sys/class/net/{name}/mtu", text=str(row.mtu)),),
            f"set the MTU of the network plugin to {largest - header} (Calico: veth_mtu of its"
            " ConfigMap or calicoNetwork.mtu; Flannel: Backend.MTU, else it takes it from the link"
            " at its start), and restart its pods and those of the node",
            host=host.host,
            node=host.node,
            component=name,
        )


def _is_link(row: Interface) -> bool:
    """Tell whether an interface may carry packets to other nodes."""
    is_tunnel = row.name in [name for name, _header in TUNNELS] or row.kind in VIRTUAL
    is_inner = row.name.endswith("*") or row.name.startswith(NAMES)
    return not (is_tunnel or is_inner)


# -- modules of the kernel -----------------------------------------------------------------------


def _modules(cluster: Cluster, host: Host) -> Iterator[Detection]:
    """Report modules that a network plugin needs whose pods do not start on the node."""
    states = host.network.answer.modules or {}
    rows = [row for row in pod_start.waiting(cluster) if row.row.node == host.node]
    for part, names in NEEDS:
        waiting = next((row for row in rows if part in row.owner), None)
        lacking = [name for name in names if states.get(name) in LACKING[name == OPENVSWITCH]]
        if waiting is not None and lacking:
            yield _lacks(host, waiting, lacking, states)


def _lacks(
    host: Host, waiting: Waiting, lacking: Sequence[str], states: Mapping[str, str | None]
) -> Detection:
    names, severity = " and ".join(lacking), None
    reason = (
        "which is not loaded on the node: the modprobe of its image may not be able to read the"
        " modules of this system"
    )
    advice = (
        f"load on the node itself what the image cannot load (modprobe {names}), and name it in a"
        " file of /etc/modules-load.d for the next boot; then delete the pod"
    )
    if ABSENT in [states.get(name) for name in lacking]:
        reason, severity = "which the kernel of the node does not have", "critical"
        advice = f"{MORE_MODULES}; then delete the pod"
    texts = [f"{name}: {states.get(name)}" for name in lacking]
    return Detection(
        f"{waiting.owner} does not start, and needs {names} of the kernel, {reason}",
        (
            EvidenceRef("file", host.host, path="/proc/modules", text=", ".join(texts)),
            EvidenceRef("api", None, object=waiting.owner, text=waiting.text),
        ),
        advice,
        host=host.host,
        node=host.node,
        component=lacking[0],
        severity=severity,
    )
