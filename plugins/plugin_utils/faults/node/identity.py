# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that a node's name and addresses are those that the API knows, KM509 and KM518."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ...evidence import memoize
from ...evidence.document import one_line, shell_name
from ...models import node_identity
from ...models.api_node import NodeView, and_others, views
from ...models.cluster import Cluster, Host
from ...models.control_plane import FileUse
from ...models.result import EvidenceRef, Missing
from ...parsers import pflag
from ..base import (
    CheckResult,
    Detection,
    cluster_check,
    not_applicable,
    present,
    unknown,
    without_kubernetes,
)

KUBELET = "kubelet"
# What these flags name must be an address of the machine: a process that is to listen there does
# not start otherwise.
LISTENS = {"etcd": ("listen-peer-urls", "listen-client-urls"), "kube-apiserver": ("bind-address",)}
ADVERTISED = {
    "etcd": ("initial-advertise-peer-urls", "advertise-client-urls"),
    "kube-apiserver": ("advertise-address",),
}
UNTOLD = "the machine has more addresses than were kept"


class _Flag(NamedTuple):
    """An address in a flag of a component's manifest."""

    component: str
    path: str
    name: str
    address: str


@cluster_check(
    "KM509",
    "Node's name is not that of its certificate",
    severity="critical",
    applies="kubelets with a client certificate that names a node, and no cloud provider that does",
    needs=("system", "kubelet"),
    cluster_needs=("nodes",),
)
def renamed(cluster: Cluster) -> Iterator[CheckResult]:
    """KM509: report a kubelet whose node name is not that of its client certificate."""
    yield from each(cluster, _name_result)


@cluster_check(
    "KM518",
    "Node address is not on its machine",
    severity="critical",
    applies="nodes with a kubelet of its own",
    needs=("system", "kubelet", "manifests"),
    cluster_needs=("nodes",),
)
def moved(cluster: Cluster) -> Iterator[CheckResult]:
    """KM518: report a node whose known addresses are none of its machine's."""
    yield from each(cluster, _address_result)


def each(
    cluster: Cluster, check: Callable[[Cluster, Host, NodeView | None], CheckResult]
) -> Iterator[CheckResult]:
    """Yield one result for each host, checking those that have a kubelet of their own."""
    if cluster.key is None:
        yield without_kubernetes(component=KUBELET)
        return
    nodes = {view.host.host: view for view in views(cluster) if view.host is not None}
    for host in cluster.hosts:
        missing = _missing(host)
        if missing:
            yield _unknown(host, *missing)
        elif host.identity.inside:
            yield _excluded(host, f"its kubelet is part of {one_line(host.identity.inside, 80)}")
        elif host.statuses.get(KUBELET) == "absent":
            yield _excluded(host, "no kubelet")
        else:
            yield check(cluster, host, nodes.get(host.host))


def _missing(host: Host) -> tuple[Missing, ...]:
    missing = host.missing(KUBELET)
    if missing or host.statuses.get(KUBELET) == "absent":
        return missing
    return host.missing("system", absent_is_answer=False)


def _clear(host: Host, note: str = "") -> CheckResult:
    return CheckResult(host=host.host, component=KUBELET, note=note)


def _unknown(host: Host, *missing: Missing, note: str = "") -> CheckResult:
    return unknown(*missing, host=host.host, component=KUBELET, note=note)


def _excluded(host: Host, reason: str) -> CheckResult:
    return not_applicable(reason, host=host.host, component=KUBELET)


def _present(host: Host, hit: Detection) -> CheckResult:
    return present(hit, host=host.host, component=KUBELET)


def _name_result(cluster: Cluster, host: Host, view: NodeView | None) -> CheckResult:
    identity = host.identity
    if identity.certificate in (node_identity.DENIED, node_identity.ERROR):
        missing = Missing(host.host, KUBELET, identity.certificate)
        return _unknown(host, missing, note="its client certificate was not read")
    if identity.clouded:
        return _excluded(
            host, f"its cloud provider ({one_line(identity.cloud, 40)}) names the node"
        )
    if identity.certificate:
        return _excluded(host, "it has no client certificate that names a node")
    if identity.name is None:
        missing = Missing(host.host, KUBELET, "error")
        return _unknown(host, missing, note="which name it uses cannot be determined")
    if identity.name == host.node:
        return _own_name_result(host)
    return _other_name_result(cluster, host, view)


def _own_name_result(host: Host) -> CheckResult:
    """Return the result of a kubelet whose name is that of its certificate."""
    refused = host.identity.refused
    if refused and refused[0] != host.node:
        return _present(host, _former(host, refused[0]))
    return _clear(host)


def _other_name_result(cluster: Cluster, host: Host, view: NodeView | None) -> CheckResult:
    """Return the result of a kubelet whose name is not that of its certificate."""
    identity = host.identity
    verified, ready = _names(cluster)
    if identity.name in ready and identity.name not in verified and not identity.refused:
        return _clear(host, f"the API takes it as {identity.name}, whatever its certificate says")
    return _present(host, _refused(cluster, host, view))


@memoize.last
def _names(cluster: Cluster) -> tuple[frozenset[str | None], frozenset[str]]:
    """Return the nodes that hosts are shown to be, and those that the API has Ready.

    The result is kept, because every host of a fleet needs it.
    """
    verified = frozenset(host.node for host in cluster.hosts)
    ready = frozenset(view.name for view in views(cluster) if view.ready == "True")
    return verified, ready


def _by(host: Host) -> str:
    """Return what gives a kubelet its name."""
    override = host.identity.override
    if override and override.strip():
        return f"--hostname-override={one_line(override, 120)}"
    return f"the machine's host name, {host.identity.hostname},"


def _refused(cluster: Cluster, host: Host, view: NodeView | None) -> Detection:
    identity, node = host.identity, host.node or ""
    proofs = _identity(host)
    etcd = ""
    if view is not None:
        text = f"Ready is {view.ready}"
        proofs.append(EvidenceRef("api", cluster.api_host, object=f"Node {view.name}", text=text))
        if view.control_plane:
            etcd = (
                "; on a control-plane node etcd's member and certificates carry the former name too"
            )
    severity = None
    if _is_still_ready(host, view):
        severity = "warning"
    return Detection(
        one_line(
            f"registers as {identity.name}, by {_by(host)} and its certificate is"
            f" {_former_owner(host, node)}: {_refused_state(cluster, host, view)}",
            500,
        ),
        tuple(proofs),
        f"{_former_name(host)}. See what changed the name (cloud-init, DHCP, a script), or the next"
        " boot changes it again; delete a CertificateSigningRequest of the new name that waits, as"
        " older API servers take it (kubectl get csr). Only where the new name is meant: drain and"
        f" delete the Node {shell_name(node, 'NODE')}, reset the host and let it join again{etcd}."
        " Nothing here renames a host",
        host=host.host,
        node=host.node,
        component=KUBELET,
        severity=severity,
    )


def _is_still_ready(host: Host, view: NodeView | None) -> bool:
    if view is None or view.ready != "True":
        return False
    return bool(host.identity.runs and not host.identity.refused)


def _refused_state(cluster: Cluster, host: Host, view: NodeView | None) -> str:
    if _is_still_ready(host, view):
        return (
            "the API still has it Ready: the kubelet started under the former name, or a moment"
            " ago; with its next start it is refused"
        )
    if not host.identity.runs:
        return "it does not run, and with its next start the API refuses it"
    if cluster.missing("nodes") or view is None:
        return "the API refuses it, and what it says of the node now is not known"
    return f"the API refuses it, and the node is NotReady (Ready is {view.ready})"


def _former_name(host: Host) -> str:
    """Return how the kubelet gets its former name back."""
    identity, node = host.identity, host.node or ""
    restart = "systemctl restart kubelet"
    if identity.override and identity.override.strip():
        return (
            f"take --hostname-override away, or set it to {node}, where it is given, then {restart}"
        )
    return (
        f"hostnamectl set-hostname {shell_name(node, 'NAME')}, then {restart}; or keep the new"
        f" name and give the kubelet --hostname-override={node}"
    )


def _former_owner(host: Host, node: str | None) -> str:
    """Return whose certificate it is; a heading has the name of the host already."""
    if node == host.host:
        return "of the former name"
    return f"that of {node}"


def _former(host: Host, name: str) -> Detection:
    """Report a kubelet whose name is correct, but which was started under another one."""
    return Detection(
        f"the kubelet runs as {name}, which the API refuses: its name is right again, but it was"
        " started before that",
        tuple(_identity(host)),
        "systemctl restart kubelet: it reads its name at its start only",
        host=host.host,
        node=host.node,
        component=KUBELET,
    )


def _identity(host: Host) -> list[EvidenceRef]:
    identity = host.identity
    certificate, user = "client certificate of the kubelet", f"CN system:node:{host.node}"
    proofs = [
        _own(host, f"node name {identity.name}, by {_by(host).rstrip(',')}"),
        EvidenceRef("file", host.host, object=certificate, text=user),
    ]
    proofs += _flag_lines(host, "hostname-override")
    if identity.refused:
        proofs.append(EvidenceRef("log", host.host, object=KUBELET, text=identity.refused[1]))
    return proofs


def _flag_lines(host: Host, flag_name: str) -> list[EvidenceRef]:
    """Return the lines that give a kubelet this flag."""
    return [place for place in host.identity.places if flag_name in (place.text or "")]


def _own(host: Host, text: str) -> EvidenceRef:
    """Return evidence from the kubelet's process, or from its unit if it does not run."""
    kind = "unit"
    if host.identity.runs:
        kind = "process"
    return EvidenceRef(kind, host.host, object=KUBELET, text=text)


def _address_result(cluster: Cluster, host: Host, view: NodeView | None) -> CheckResult:
    identity = host.identity
    if not identity.addresses:
        missing = Missing(host.host, "system", "error")
        return _unknown(host, missing, note="the machine's addresses are not known")
    listens = _gone(host, LISTENS)
    pinned = _are_gone(host, identity.node_ips)
    internal = _internal(host, view)
    stale = _are_gone(host, internal)
    if listens or pinned or stale:
        return _present(host, _moved(cluster, host, view, listens, pinned, stale))
    if identity.more and _is_none_here(host, [*identity.node_ips, *internal]):
        return _unknown(host, Missing(host.host, "system", "error"), note=UNTOLD)
    if identity.cloud:
        return _clear(host, "its cloud provider reports its addresses")
    return _unknown(host, *cluster.missing("nodes"))


def _internal(host: Host, view: NodeView | None) -> Sequence[str]:
    """Return the addresses of the node in the API that have to be its machine's."""
    # The address that a cloud provider reports may be one that the machine never sees.
    if view is None or host.identity.cloud:
        return ()
    return view.internal


def _is_none_here(host: Host, addresses: Sequence[str]) -> bool:
    """Tell whether there are addresses, and none of them is known to be the machine's."""
    return bool(addresses) and not any(host.identity.here(address) for address in addresses)


def _are_gone(host: Host, addresses: Iterable[str]) -> bool:
    """Tell whether there are addresses, and the machine has none of them."""
    answers = [host.identity.here(address) for address in addresses]
    return bool(answers) and all(answer is False for answer in answers)


def _gone(host: Host, flag_names: dict[str, tuple[str, ...]]) -> list[_Flag]:
    """Return the addresses in these flags that the machine does not have."""
    if host.control_plane is None:
        return []
    addresses: list[_Flag] = []
    for use in host.control_plane.files:
        addresses += _flags(use, flag_names.get(use.component, ()))
    return [flag for flag in addresses if host.identity.here(flag.address) is False]


def _flags(use: FileUse, names: Iterable[str]) -> Iterator[_Flag]:
    if not use.usual:  # a copy with a former address is another fault
        return
    for name in names:
        for address in _flag_addresses(name, pflag.string_flag(use.words, name)):
            yield _Flag(use.component, use.path, name, address)


def _flag_addresses(name: str, text: str | None) -> tuple[str, ...]:
    if name.endswith("urls"):
        return tuple(node_identity.of_urls(text))
    address = node_identity.ip(text)
    if address is None:
        return ()
    return (str(address),)


def _moved(
    cluster: Cluster,
    host: Host,
    view: NodeView | None,
    listens: list[_Flag],
    pinned: bool,
    stale: bool,
) -> Detection:
    identity = host.identity
    changes, advice = _changes(host, view, listens, pinned, stale)
    proofs = [_flag_proof(host, flag) for flag in [*listens, *_gone(host, ADVERTISED)]]
    if pinned:
        proofs += _flag_lines(host, "node-ip")
        proofs.append(_own(host, f"--node-ip={','.join(identity.node_ips)}"))
    if view and view.internal:
        text = f"InternalIP {', '.join(view.internal)}; Ready is {view.ready}"
        proofs.append(EvidenceRef("api", cluster.api_host, object=f"Node {view.name}", text=text))
    addresses = sorted(identity.addresses or ())
    table = EvidenceRef(
        "file", host.host, path="/proc/net/fib_trie", text=and_others(addresses, 20)
    )
    component, severity = KUBELET, None
    if listens:
        component = listens[0].component
    elif not pinned:
        severity = "warning"
    return Detection(
        one_line(
            f"{'; '.join(changes)}; the machine has {and_others(addresses)}",
            500,
        ),
        (*proofs, table),
        f"{'; '.join(advice)}. See what changed it (a DHCP lease, a new interface, cloned"
        " configuration)",
        host=host.host,
        node=host.node,
        component=component,
        severity=severity,
    )


def _flag_proof(host: Host, flag: _Flag) -> EvidenceRef:
    text = f"{flag.component} --{flag.name}: {flag.address}"
    return EvidenceRef("file", host.host, path=flag.path, text=text)


def _changes(
    host: Host, view: NodeView | None, listens: list[_Flag], pinned: bool, stale: bool
) -> tuple[list[str], list[str]]:
    """Return what is wrong with the addresses, and the advice for it."""
    changes: list[str] = []
    advice: list[str] = []
    if listens:
        changes += dict.fromkeys(_listening(host, flag) for flag in listens)
        advice.append(
            "give the machine its former address back: etcd's member, the certificates and every"
            " kubeconfig carry it, so that a new address is a control-plane node taken out and"
            " joined again"
        )
    if pinned:
        changes.append(
            f"--node-ip pins its kubelet to {', '.join(host.identity.node_ips)}, so that it cannot"
            " post another"
        )
        advice.append(
            "give the machine that address back, or put --node-ip right where it is given"
            " (kubeadm-flags.env, the unit's environment, the inventory's ip with kubespray) and"
            " restart the kubelet's unit"
        )
    if stale and view is not None:
        changes.append(f"the API knows it by {', '.join(view.internal)}")
        if not pinned:
            advice.append(_stale_advice(view))
    return changes, advice


def _listening(host: Host, flag: _Flag) -> str:
    running: set[str] = set()
    if host.control_plane:
        running = {process.component for process in host.control_plane.processes}
    effect = "cannot start"
    if flag.component in running:
        effect = "does not start again"
    return f"{flag.component} is to listen on {flag.address}, and {effect}"


def _stale_advice(view: NodeView) -> str:
    if view.ready == "True":
        return "its kubelet posts the new address itself within seconds: look again"
    return (
        "a kubelet without --node-ip posts the new address itself within seconds: look why"
        " it does not run or does not reach the API"
    )
