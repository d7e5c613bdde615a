# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that is another than the API knows, KM509 and KM518.

The literals of KM519 and KM523 beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...evidence import memoize as remember
from ...evidence.document import one_line, shell_name
from ...models import node_identity
from ...models.api_node import NodeView, and_others, views
from ...models.cluster import Cluster, Host
from ...models.result import Missing, Proof
from ...parsers import pflag as flags
from ..base import Hit, Outcome, cluster_check

KUBELET = "kubelet"
# What these flags name must be an address of the machine: a process that is to listen there does
# not start otherwise.
LISTENS = {"etcd": ("listen-peer-urls", "listen-client-urls"), "kube-apiserver": ("bind-address",)}
ADVERTISED = {
    "etcd": ("initial-advertise-peer-urls", "advertise-client-urls"),
    "kube-apiserver": ("advertise-address",),
}
UNTOLD = "the machine has more addresses than were kept"


@cluster_check(
    "KM509",
    "Node's name is not that of its certificate",
    severity="critical",
    applies="kubelets with a client certificate that names a node, and no cloud provider that does",
    needs=("system", "kubelet"),
    cluster_needs=("nodes",),
)
def renamed(cluster: Cluster) -> Iterator[Outcome]:
    """KM509: the name by which a kubelet stands for its node is not that of its client
    certificate.
    """
    yield from _each(cluster, _named)


@cluster_check(
    "KM518",
    "Node's address is none of its machine's",
    severity="critical",
    applies="nodes with a kubelet of its own",
    needs=("system", "kubelet", "manifests"),
    cluster_needs=("nodes",),
)
def moved(cluster: Cluster) -> Iterator[Outcome]:
    """KM518: the addresses by which a node is known are none of its machine's."""
    yield from _each(cluster, _addressed)


def _each(
    cluster: Cluster, judged: Callable[[Cluster, Host, NodeView | None], Outcome]
) -> Iterator[Outcome]:
    """One outcome of each host that has a kubelet of its own."""
    if cluster.key is None:
        yield Outcome(applies=False, component=KUBELET, note="no Kubernetes found on these hosts")
        return
    nodes = {view.host.host: view for view in views(cluster) if view.host is not None}
    for host in cluster.hosts:
        missing = host.missing(KUBELET) or (
            ()
            if host.statuses.get(KUBELET) == "absent"
            else host.missing("system", absent_is_answer=False)
        )
        if missing:
            yield Outcome((), missing, host=host.host, component=KUBELET)
        elif host.statuses.get(KUBELET) == "absent" or host.identity.inside:
            why = (
                f"its kubelet is part of {one_line(host.identity.inside, 80)}"
                if host.identity.inside
                else "no kubelet"
            )
            yield Outcome(applies=False, host=host.host, component=KUBELET, note=why)
        else:
            yield judged(cluster, host, nodes.get(host.host))


def _named(cluster: Cluster, host: Host, view: NodeView | None) -> Outcome:
    known = host.identity
    if known.certificate in (node_identity.DENIED, node_identity.ERROR):
        return Outcome(
            (),
            (Missing(host.host, KUBELET, known.certificate),),
            host=host.host,
            component=KUBELET,
            note="its client certificate was not read",
        )
    if known.certificate or known.clouded:
        why = (
            f"its cloud provider ({one_line(known.cloud, 40)}) names the node"
            if known.clouded
            else "it has no client certificate that names a node"
        )
        return Outcome(applies=False, host=host.host, component=KUBELET, note=why)
    if known.name is None:
        return Outcome(
            (),
            (Missing(host.host, KUBELET, "error"),),
            host=host.host,
            component=KUBELET,
            note="which name it uses cannot be told",
        )
    if known.name == host.node:
        hits = (
            (_former(host, known.refused[0]),)
            if known.refused and known.refused[0] != host.node
            else ()
        )
        return Outcome(hits, host=host.host, component=KUBELET)
    proven, ready = _names(cluster)
    if known.name in ready and known.name not in proven and not known.refused:
        return Outcome(
            host=host.host,
            component=KUBELET,
            note=f"the API takes it as {known.name}, whatever its certificate says",
        )
    return Outcome((_refused(cluster, host, view),), host=host.host, component=KUBELET)


@remember.last
def _names(cluster: Cluster) -> tuple[frozenset[str | None], frozenset[str]]:
    """The nodes that hosts prove to be, and those that the API has Ready.

    Asked for by every host of a fleet.
    """
    return frozenset(host.node for host in cluster.hosts), frozenset(
        view.name for view in views(cluster) if view.ready == "True"
    )


def _by(host: Host) -> str:
    """What gives a kubelet its name."""
    override = host.identity.override
    return (
        f"--hostname-override={one_line(override, 120)}"
        if override and override.strip()
        else f"the machine's host name, {host.identity.hostname},"
    )


def _refused(cluster: Cluster, host: Host, view: NodeView | None) -> Hit:
    known, node = host.identity, host.node or ""
    runs_on = view is not None and view.ready == "True" and known.runs and not known.refused
    if runs_on:
        state = (
            "the API still has it Ready: the kubelet started under the former name, or a moment"
            " ago; with its next start it is refused"
        )
    elif not known.runs:
        state = "it does not run, and with its next start the API refuses it"
    elif cluster.missing("nodes") or view is None:
        state = "the API refuses it, and what it says of the node now is not known"
    else:
        state = f"the API refuses it, and the node is NotReady (Ready is {view.ready})"
    proofs = (
        [
            *_identity(host),
            Proof(
                "api", cluster.api_host, object=f"Node {view.name}", text=f"Ready is {view.ready}"
            ),
        ]
        if view
        else _identity(host)
    )
    restart = "systemctl restart the kubelet's unit"
    if known.override and known.override.strip():
        back = (
            f"take --hostname-override away, or set it to {node}, where it is given, then {restart}"
        )
    else:
        back = (
            f"hostnamectl set-hostname {shell_name(node, 'NAME')}, then {restart}; or keep the new"
            f" name and give the kubelet --hostname-override={node}"
        )
    return Hit(
        one_line(
            f"the kubelet of {host.host} calls its node {known.name}, by {_by(host)} and its"
            f" certificate is that of {node}: {state}",
            500,
        ),
        tuple(proofs),
        f"{back}. See what changed the name (cloud-init, DHCP, a script), or the next boot changes"
        " it again; delete a CertificateSigningRequest of the new name that waits, as older API"
        " servers take it (kubectl get csr). Only where the new name is meant: drain and delete"
        f" the Node {shell_name(node, 'NODE')}, reset the host and let it join anew"
        + (
            "; on a control-plane node etcd's member and certificates carry the former name too"
            if view and view.control_plane
            else ""
        )
        + ". Nothing here renames a host",
        host=host.host,
        node=host.node,
        component=KUBELET,
        severity="warning" if runs_on else None,
    )


def _former(host: Host, name: str) -> Hit:
    """The name is right, and the process that runs was started under another."""
    return Hit(
        f"the kubelet of {host.host} runs as {name}, which the API refuses: its name is {host.node}"
        " again, but it was started before that",
        tuple(_identity(host)),
        "systemctl restart the kubelet's unit: it reads its name at its start only",
        host=host.host,
        node=host.node,
        component=KUBELET,
    )


def _identity(host: Host) -> list[Proof]:
    known = host.identity
    proofs = [
        Proof(
            "process" if known.runs else "unit",
            host.host,
            object=KUBELET,
            text=f"node name {known.name}, by {_by(host).rstrip(',')}",
        ),
        Proof(
            "file",
            host.host,
            object="client certificate of the kubelet",
            text=f"CN system:node:{host.node}",
        ),
    ]
    proofs += [place for place in known.places if "hostname-override" in (place.text or "")]
    return proofs + (
        [Proof("log", host.host, object=KUBELET, text=known.refused[1])] if known.refused else []
    )


def _addressed(cluster: Cluster, host: Host, view: NodeView | None) -> Outcome:
    known = host.identity
    if known.addresses is None or not known.addresses:
        return Outcome(
            (),
            (Missing(host.host, "system", "error"),),
            host=host.host,
            component=KUBELET,
            note="the machine's addresses are not known",
        )
    listens = _gone(host, LISTENS)
    pinned = bool(known.node_ips) and all(known.here(one) is False for one in known.node_ips)
    # A cloud provider's word may be an address that the machine never sees.
    stale = (
        not known.cloud
        and view is not None
        and bool(view.internal)
        and all(known.here(one) is False for one in view.internal)
    )
    if listens or pinned or stale:
        return Outcome(
            (_moved(cluster, host, view, listens, pinned, stale),),
            host=host.host,
            component=KUBELET,
        )
    asked = [*known.node_ips, *(view.internal if view and not known.cloud else ())]
    if known.more and asked and not any(known.here(one) for one in asked):
        return Outcome(
            (),
            (Missing(host.host, "system", "error"),),
            host=host.host,
            component=KUBELET,
            note=UNTOLD,
        )
    missing = () if known.cloud else cluster.missing("nodes")
    return Outcome(
        (),
        missing,
        host=host.host,
        component=KUBELET,
        note="its cloud provider tells its addresses" if known.cloud else "",
    )


def _gone(host: Host, flag_names: dict[str, tuple[str, ...]]) -> list[tuple[str, str, str, str]]:
    """(component, its manifest, flag, address) of the addresses in these flags that the machine
    does not have.
    """
    found = []
    for use in host.control_plane.files if host.control_plane else ():
        if not use.usual:  # a copy with an address of former times is another fault
            continue
        for name in flag_names.get(use.component, ()):
            text = flags.string_flag(use.words, name)
            told = (
                node_identity.of_urls(text)
                if name.endswith("urls")
                else tuple(str(one) for one in [node_identity.ip(text)] if one is not None)
            )
            found += [
                (use.component, use.path, name, one)
                for one in told
                if host.identity.here(one) is False
            ]
    return found


def _moved(
    cluster: Cluster,
    host: Host,
    view: NodeView | None,
    listens: list[tuple[str, str, str, str]],
    pinned: bool,
    stale: bool,
) -> Hit:
    known, name = host.identity, host.node or host.host
    said, advice = [], []
    if listens:
        running = (
            {one.component for one in host.control_plane.processes} if host.control_plane else set()
        )
        said += dict.fromkeys(
            f"{component} is to listen on {address}, and "
            + ("does not start again" if component in running else "cannot start")
            for component, _path, _flag, address in listens
        )
        advice.append(
            "give the machine its former address back: etcd's member, the certificates and every"
            " kubeconfig carry it, so that a new address is a control-plane node taken out and"
            " joined anew"
        )
    if pinned:
        said.append(
            f"--node-ip pins its kubelet to {', '.join(known.node_ips)}, so that it cannot post"
            " another"
        )
        advice.append(
            "give the machine that address back, or put --node-ip right where it is given"
            " (kubeadm-flags.env, the unit's environment, the inventory's ip with kubespray) and"
            " restart the kubelet's unit"
        )
    if stale and view is not None:
        said.append(f"the API knows it by {', '.join(view.internal)}")
        if not pinned:
            advice.append(
                "a kubelet without --node-ip posts the new address itself within seconds: look why"
                " it does not run or does not reach the API"
                if view.ready != "True"
                else "its kubelet posts the new address itself within seconds: look again"
            )
    advertised = _gone(host, ADVERTISED) if listens or stale or pinned else []
    proofs = [
        Proof("file", host.host, path=path, text=f"{component} --{flag}: {address}")
        for component, path, flag, address in [*listens, *advertised]
    ]
    proofs += [place for place in known.places if pinned and "node-ip" in (place.text or "")]
    proofs += (
        [
            Proof(
                "process" if known.runs else "unit",
                host.host,
                object=KUBELET,
                text=f"--node-ip={','.join(known.node_ips)}",
            )
        ]
        if pinned
        else []
    )
    proofs += (
        [
            Proof(
                "api",
                cluster.api_host,
                object=f"Node {view.name}",
                text=f"InternalIP {', '.join(view.internal)}; Ready is {view.ready}",
            )
        ]
        if (view and view.internal)
        else []
    )
    mine = sorted(known.addresses or ())
    return Hit(
        one_line(
            f"the address of {name} changed: {'; '.join(said)}; the machine has {and_others(mine)}",
            500,
        ),
        (*proofs, Proof("file", host.host, path="/proc/net/fib_trie", text=and_others(mine, 20))),
        "; ".join(advice)
        + ". See what changed it (a DHCP lease, a new interface, cloned configuration)",
        host=host.host,
        node=host.node,
        component=listens[0][0] if listens else KUBELET,
        severity=None if listens or pinned else "warning",
    )
