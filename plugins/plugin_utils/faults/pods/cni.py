# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the network configuration of pods: addresses KM602, two plugins KM603, programs KM604."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ....module_utils.shared.text import counted
from ...evidence import contract
from ...evidence.answers.node.cni import Cni, CniFile, Reservations
from ...evidence.answers.node.cri import Cri, CriConfig
from ...evidence.answers.node.runtime import Runtime
from ...evidence.document import one_line, shell_name
from ...models.api_node import and_others
from ...models.cluster import Host
from ...models.cni_chain import NOT_EXCLUSIVE
from ...models.kubelet import supervisor
from ...models.moments import moment
from ...models.result import EvidenceRef, Missing
from ..base import CheckResult, Detection, node_check, not_applicable, present, unknown
from ..node import network
from ..other_folders import with_meaning

APPLIES = "nodes whose runtime has a CNI configuration"
SOME, SHARE = 5, 0.1  # reservations that are leaked before they count, and of a range
# Plugins that hand pods to another configuration: the others in the folder are theirs.
META = ("multus", "multus-shim", "genie", "istio-cni", "nsx", "danm", "knitter")
# What runtimes and other programs bring for containers that are no pods.
STRANGERS = ("podman", "crio-bridge", "crio-ipv4-bridge", "containerd-net", "nerdctl", "docker")
# Those of them whose network nothing but the runtime of pods uses.
OF_RUNTIMES = ("crio-bridge", "crio-ipv4-bridge", "containerd-net")
LOOPBACK, DENIED = "loopback", "denied"
# The tools of k3s and RKE2, which know their socket.
_LISTINGS = {
    "k3s": "k3s crictl pods -q",
    "rke2": (
        "CRI_CONFIG_FILE=/var/lib/rancher/rke2/agent/etc/crictl.yaml"
        " /var/lib/rancher/rke2/bin/crictl pods -q"
    ),
}


def _configured(host: Host, document: Mapping[str, Any]) -> CheckResult | None:
    """Return the result where there is no configuration to check, else None."""
    missing = host.missing("cni")
    if missing:
        return unknown(*missing)
    cni = contract.answer(document, Cni)
    if DENIED in (cni.error, *(file.error for file in cni.files)):
        return unknown(Missing(host.host, "cni", DENIED))
    if not _usable(cni):
        return not_applicable("no CNI configuration that its kubelet's runtime would read")
    return None


def _usable(cni: Cni) -> list[CniFile]:
    """Return the configurations that a runtime can use, in its order."""
    files = [file for file in cni.files if not file.error and any(file.plugins)]
    return [file for file in files if set(file.plugins) != {LOOPBACK}]


@node_check(
    "KM602",
    "Addresses for pods are used up or leaked",
    severity="warning",
    applies="nodes whose network plugin uses host-local",
    needs=("cni", "cri"),
)
def addresses(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM602: report reservations of addresses for sandboxes that do not exist, and a full range."""
    outcome = _configured(host, document)
    if outcome is not None:
        yield outcome
        return
    cni = contract.answer(document, Cni)
    if not cni.reservations:
        yield not_applicable("its network plugin does not use host-local")
        return
    pods = _listing(document)
    hits = [hit for row in cni.reservations for hit in _of_network(host, cni, row, pods)]
    if hits:
        yield present(*hits)
    elif any(row.leaked is None for row in cni.reservations):
        missing = host.missing("cri", absent_is_answer=False)
        yield unknown(*(missing or (Missing(host.host, "cri", "error"),)))
    else:
        yield CheckResult()


def _listing(document: Mapping[str, Any]) -> str:
    """Return the command that lists the sandboxes that the runtime has."""
    if contract.answer(document, Runtime).kind == "docker":
        return "docker ps -aq --no-trunc"
    owner = supervisor.read(document)
    return _LISTINGS.get(owner.program if owner is not None else "", "crictl pods -q")


def _of_network(host: Host, cni: Cni, row: Reservations, pods: str) -> Iterator[Detection]:
    lost, room = (row.leaked or 0) + row.empty, _room(cni, row)
    is_full = room is not None and row.addresses >= room
    if not is_full and not _is_much(lost, room):
        return
    network_name = one_line(row.network, 80)
    of_room = f" of {room}" if room is not None else ""
    summary = (
        f"{row.addresses}{of_room} addresses of the network {network_name} are"
        f" reserved in {one_line(row.folder, 200)}, {lost} of them for no pod that exists"
    )
    if is_full:
        summary += "; no new pod gets one"
    yield Detection(
        summary,
        (EvidenceRef("file", host.host, path=row.folder, text=_lost(row)),),
        _addresses_advice(row, lost, pods),
        host=host.host,
        node=host.node,
        component=network_name,
        severity="critical" if is_full else None,
    )


def _is_much(lost: int, room: int | None) -> bool:
    return lost >= SOME and (room is None or lost >= SHARE * room)


def _lost(row: Reservations) -> str:
    parts = [counted(row.addresses, "reservation")]
    if row.leaked:
        parts.append(f"{row.leaked} name a sandbox that the runtime does not have")
    if row.empty:
        parts.append(f"{row.empty} are empty files, as a power cut leaves them")
    oldest = moment(row.oldest)
    if oldest is not None:
        parts.append(f"the oldest of these of {oldest.isoformat()}")
    if row.names:
        parts.append(f"first {', '.join(row.names)}")
    return one_line("; ".join(parts), 400)


def _addresses_advice(row: Reservations, lost: int, pods: str) -> str:
    folder = one_line(row.folder, 200)
    if not lost:
        return (
            "the range is smaller than the pods that the node may have (maxPods): give the node a"
            " larger range of addresses, or lower maxPods"
        )
    return (
        f"compare with {pods}, and remove each file in {folder} whose first line names no"
        f" sandbox or which is empty, while flock {folder}/lock is held (leave lock and"
        " last_reserved_ip.*); what ended without a release (a killed runtime, a power cut) left"
        " them"
    )


def _room(cni: Cni, row: Reservations) -> int | None:
    """Return how many addresses a network's ranges have for pods, None where it is not known."""
    try:
        networks = [ipaddress.ip_network(subnet, strict=False) for subnet in _subnets(cni, row)]
    except ValueError:
        return None
    # IPv6 has more than ever are used; each IPv4 range has a network, a gateway and a broadcast
    sizes = [net.num_addresses - 3 for net in networks if net.version == 4]
    if not sizes or len(sizes) != len(networks):
        return None
    return sum(sizes)


def _subnets(cni: Cni, row: Reservations) -> list[str]:
    files = [file for file in cni.files if file.network == row.network]
    managers = [ipam for file in files for ipam in file.ipam]
    return [subnet for ipam in managers for subnet in ipam.subnets]


@node_check(
    "KM603",
    "Two network plugins have a configuration",
    severity="warning",
    applies=APPLIES,
    needs=("cni", "cri"),
)
def two_plugins(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM603: report a configuration of a network plugin that another one comes before."""
    outcome = _configured(host, document)
    if outcome is None:
        cni = contract.answer(document, Cni)
        first, *rest = _usable(cni)
        outcome = CheckResult()
        if not set(first.plugins) & set(META) and not _is_told(document):
            hits = list(_of_two(host, cni, first, [row for row in rest if _differs(first, row)]))
            hits += _put_aside(host, cni, first)
            outcome = present(*hits) if hits else outcome
    yield outcome


def _put_aside(host: Host, cni: Cni, first: CniFile) -> Iterator[Detection]:
    """Report that Cilium took the configuration of Multus away, which runs on the node."""
    names = [one_line(name, 120) for name in cni.aside if any(meta in name for meta in META)]
    if not names or not cni.multus or "cilium" not in " ".join(first.plugins):
        return
    former = names[0].rpartition(".")[0]
    yield Detection(
        f"Cilium put {former} aside ({names[0]}), so that the runtime does not ask Multus: new pods"
        f" have one interface, by {first.name} alone",
        (
            EvidenceRef(
                "file", host.host, path=f"{cni.folder}/{names[0]}", text="a pod of Multus is here"
            ),
            EvidenceRef(
                "file", host.host, path=f"{cni.folder}/{first.name}", text=_described(first)
            ),
        ),
        f"{NOT_EXCLUSIVE}, and restart the pod of Multus on each node, which writes its file again;"
        " then make the pods again that lack an interface",
        host=host.host,
        node=host.node,
    )


def _of_two(host: Host, cni: Cni, first: CniFile, rest: Sequence[CniFile]) -> Iterator[Detection]:
    losers = [file for file in rest if not _stranger(file)]
    if losers:
        yield _two(host, cni, first, losers)
    for file in rest:
        row = _taken(cni, file)
        if row is not None and not _stranger(first):
            yield _came_first(host, cni, (first, file), row)


def _taken(cni: Cni, file: CniFile) -> Reservations | None:
    """Return the addresses that pods have of what another program brought, None without any."""
    if not _stranger(file):
        return None
    row = next((row for row in cni.reservations if row.network == file.network), None)
    if row is None or (row.held is None and not _stranger(file, OF_RUNTIMES)):
        return None
    return row if _of_pods(row) > 0 else None


def _of_pods(row: Reservations) -> int:
    """Return how many reservations are of pods; a container of another program is none of them."""
    if row.held is not None:
        return row.held
    return row.addresses - (row.leaked or 0) - row.empty


def _came_first(
    host: Host, cni: Cni, pair: tuple[CniFile, CniFile], row: Reservations
) -> Detection:
    """Return that pods started with a file that was the only one before the network plugin's."""
    first, file = pair
    folder, path = one_line(row.folder, 200), f"{cni.folder}/{file.name}"
    of_first, of_other = f"{first.name}{_writer(first)}", f"{file.name}{_writer(file)}"
    proofs = [
        EvidenceRef("file", host.host, path=f"{cni.folder}/{each.name}", text=_described(each))
        for each in pair
    ]
    proofs.append(EvidenceRef("file", host.host, path=folder, text=_lost(row)))
    return Detection(
        f"pods of the node have addresses of {of_other}, {_of_pods(row)} of them, which other nodes"
        f" do not reach: the runtime took that file while {of_first} was not there, and does so"
        " whenever that is missing",
        tuple(proofs),
        f"mv {path} {path}.disabled on each node, and delete the pods of {host.node or host.host}"
        f" that have an address of {_ranges(cni, row)} (kubectl get pods -A -o wide); the package"
        " may bring the file again with an update" + _told(file, first),
        host=host.host,
        node=host.node,
    )


def _ranges(cni: Cni, row: Reservations) -> str:
    names = [one_line(subnet, 60) for subnet in _subnets(cni, row)]
    return " or ".join(names) or f"the network {one_line(row.network, 80)}"


def _told(file: CniFile, first: CniFile) -> str:
    """Return how CRI-O is told the network of pods, "" for another runtime."""
    if not _stranger(file, ("crio",)):
        return ""
    return (
        f': cni_default_network = "{one_line(first.network, 80)}" below [crio.network] in a file of'
        " /etc/crio/crio.conf.d keeps CRI-O from it"
    )


def _is_told(document: Mapping[str, Any]) -> bool:
    """Tell whether the runtime is told which network to use, or to load more than the first."""
    config = contract.answer(document, Cri).config or CriConfig()
    return bool(config.default_network) or config.max_conf_num not in (None, 1)


def _used(cni: Cni, document: Mapping[str, Any]) -> CniFile:
    """Return the configuration that the runtime uses: the one that it is told, else the first."""
    config, usable = contract.answer(document, Cri).config or CriConfig(), _usable(cni)
    return next((file for file in usable if file.network == config.default_network), usable[0])


def _stranger(file: CniFile, programs: Sequence[str] = STRANGERS) -> bool:
    """Tell whether a configuration is one that such a program brings."""
    names = f"{file.name} {file.network}".lower()
    return any(name in names for name in programs)


def _differs(first: CniFile, file: CniFile) -> bool:
    return (first.network, first.plugins) != (file.network, file.plugins)


def _two(host: Host, cni: Cni, first: CniFile, losers: Sequence[CniFile]) -> Detection:
    names = and_others([f"{file.name}{_writer(file)}" for file in losers])
    proofs = [
        EvidenceRef("file", host.host, path=f"{cni.folder}/{file.name}", text=_described(file))
        for file in (first, *losers)
    ]
    return Detection(
        f"the runtime uses {first.name}{_writer(first)} for pods, because it comes first"
        f" in {cni.folder}, and not {names}",
        tuple(proofs),
        f"if {first.name} is not what is meant, move it out of the folder, see that nothing writes"
        " it again, and restart the pods of the node that have its addresses; else remove what a"
        " former plugin left",
        host=host.host,
        node=host.node,
        severity="critical" if _stranger(first) else None,
    )


def _described(file: CniFile) -> str:
    text = f"network {file.network}, plugins {', '.join(file.plugins)}"
    written = moment(file.mtime)
    if written is not None:
        text += f", written at {written.isoformat()}"
    return one_line(text, 300)


def _writer(file: CniFile) -> str:
    """Return who writes a configuration, in brackets, or ""."""
    text = f"{file.name} {file.network} {' '.join(file.plugins)}".lower()
    for part, title, _pods in network.PLUGINS:
        if part in text:
            return f" ({title})"
    return next((f" (of {name})" for name in STRANGERS if name in text), "")


@node_check(
    "KM604",
    "A program or file of the network plugin is missing",
    severity="critical",
    applies=APPLIES,
    needs=("cni", "cri"),
)
def missing_program(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM604: report a configuration that names a program which the runtime does not find."""
    outcome = _configured(host, document)
    cni = contract.answer(document, Cni)
    if outcome is None and _used(cni, document).missing:
        outcome = present(_without_files(host, cni, _used(cni, document)))
    elif outcome is None:
        if cni.bin_dirs is None:
            outcome = not_applicable("where its runtime looks for programs is not known")
        elif cni.programs is None:
            outcome = unknown(Missing(host.host, "cni", DENIED))
        else:
            file, there = _used(cni, document), set(cni.programs)
            names = [*file.plugins, *(ipam.type for ipam in file.ipam)]
            absent = [name for name in dict.fromkeys(names) if name and name not in there]
            outcome = CheckResult()
            if absent:
                hit = replace(_missing(host, cni, file, absent), because=_of_runtime(document))
                outcome = present(hit)
    yield outcome


def _of_runtime(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fault of a runtime that looks in its default folder: its file was emptied."""
    if contract.answer(document, Runtime).emptied:
        return ("KM508",)
    return ()


def _without_files(host: Host, cni: Cni, file: CniFile) -> Detection:
    """Describe a configuration whose plugin has to read files that are not there."""
    path, names = f"{cni.folder}/{file.name}", and_others([*file.missing])
    source = f"{cni.folder}/{shell_name(file.name, 'FILE')}"
    rest = [other.name for other in _usable(cni) if other.name != file.name]
    after = "the runtime has no other configuration there"
    if rest:
        after = f"the runtime takes {rest[0]} then"
    return Detection(
        f"no new pod starts: the runtime uses {file.name}{_writer(file)}, whose plugin needs"
        f" {names}, missing on that node. A former network plugin or cluster left {file.name}, or"
        " the plugin's own pod has not written what it needs",
        (
            EvidenceRef("file", host.host, path=path, text=_described(file)),
            *(
                EvidenceRef("file", host.host, path=missing, text="missing")
                for missing in file.missing
            ),
        ),
        f"if {file.name} is of the network plugin of this cluster, restart its pod on that node,"
        f" which writes what is missing; if another one left it, mv {source} {source}.disabled"
        f" ({after})",
        host=host.host,
        node=host.node,
    )


def _missing(host: Host, cni: Cni, file: CniFile, absent: Sequence[str]) -> Detection:
    folders = ", ".join(cni.bin_dirs or ())
    names = " and ".join(one_line(name, 80) for name in absent)
    hit = Detection(
        f"no new pod starts: the runtime does not find {names} in {folders}, which"
        f" {file.name} needs",
        (
            EvidenceRef("file", host.host, path=f"{cni.folder}/{file.name}", text=_described(file)),
            EvidenceRef(
                "file",
                host.host,
                path=folders,
                text=f"has {and_others(list(cni.programs or ()), 12) or 'no program'}",
            ),
        ),
        f"put {names} into {folders}: the package kubernetes-cni or the archive of"
        " containernetworking/plugins has bridge, host-local, loopback and portmap; other programs"
        " are installed by the network plugin's own pod on that node, whose restart brings them"
        " again. Where they are in another folder, name it in the runtime's configuration (bin_dir"
        " or bin_dirs of containerd, plugin_dirs of CRI-O) and restart the runtime",
        host=host.host,
        node=host.node,
    )
    return with_meaning(hit, host.cni_folders.of_release())
