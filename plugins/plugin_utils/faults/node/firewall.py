# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what blocks a node's programs: the host's firewall (KM527) and SELinux (KM528)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from ....module_utils.shared.units import KUBELET_UNITS, RUNTIMES
from ...evidence import contract
from ...evidence.answers.node.boot import Boot, Denials
from ...evidence.answers.node.component_units import ComponentUnits
from ...evidence.answers.node.instances import Instances
from ...evidence.answers.node.kubelet import Kubelet
from ...evidence.document import one_line, shell_name
from ...models import boot as model_boot
from ...models import bpf_denials, control_plane, installer
from ...models.api_node import and_others
from ...models.cluster import Host
from ...models.kubelet import config as kubelet_config
from ...models.result import EvidenceRef, Missing
from ...parsers import avc_denial, firewall, pflag
from ...parsers.avc_denial import AvcDenial
from ...parsers.firewall import Wall
from ..base import CheckResult, Detection, node_check, not_applicable, present, unknown
from .boot import NO_KUBELET, selinux_modes

KUBELET, API = "10250", "6443"
PEERS = "etcd's other members"
POD_INTERFACES = ("cni0", "kube-bridge", "cali*", "lxc*", "flannel.1")
SHOWN = 3
WITHOUT_RELOAD = "as a reload of firewalld before 2.0 removes the rules of kube-proxy"
# etcd, of a peer; a client's port is none of them
_DIALED = re.compile(
    r"(?:remote-peer-id|failed to reach the peer|rafthttp).{1,400}dial tcp (\S{2,60}):(\d{1,5}): "
)
# The domains of kubelet and runtime themselves: container-selinux's (k3s and RKE2 are labelled as
# its runtime; docker_t in those of RHEL 7 before it was one with container_runtime_t), the
# reference policy's of Debian and Gentoo (dockerd_t), and those of RKE2's own static pods. Pods'
# domains (container_t, container_init_t, container_engine_t, spc_t) are none of them, nor those of
# other services.
DOMAINS = (
    "kubelet_t",
    "container_runtime_t",
    "docker_t",
    "dockerd_t",
    "rke2_service_t",
    "rke2_service_db_t",
)
# The domains of services that the policy has no domain of their own for.
SERVICES = ("unconfined_service_t", "init_t")
# Labels of places from which files are moved: no program of a node may read them there.
MOVED = ("user_tmp_t", "tmp_t", "user_home_t", "admin_home_t", "home_root_t")
# Labels of folders for which the policy has none.
WITHOUT_LABEL = ("default_t", "unlabeled_t")
# Those of containers, where only the control plane is the cluster's own.
CONTAINERS = ("container_t", "svirt_lxc_net_t", "spc_t")
STATIC = ("kube-apiserver", "kube-controller", "kube-scheduler")
# The units of a node that systemd itself has to read.
UNITS = frozenset(
    (*KUBELET_UNITS, *RUNTIMES, "k3s.service", "k3s-agent.service", "rke2-server.service")
    + ("rke2-agent.service", "etcd.service")
)
# The ports of their documentation: evidence does not show those of k3s, nor all of RKE2's.
DOCUMENTED = {
    "k3s": (
        "k3s asks for 6443/tcp on servers, 10250/tcp on every node where metrics-server is used,"
        " 2379-2380/tcp between servers with etcd"
    ),
    "RKE2": "RKE2 asks for 9345/tcp on servers too",
}
# The names of a node's programs, as the kernel cuts them (15 characters).
PROGRAMS = (
    "kubelet",
    "hyperkube",
    "containerd",
    "dockerd",
    "docker",
    "crio",
    "conmon",
    "runc",
    "crun",
    "cri-dockerd",
    "kube-",
    "etcd",
    "calico",
    "flannel",
    "cilium",
    "weave",
    "k3s",
    "rke2",
    "cni",
    "portmap",
    "loopback",
)
AUDIT = "/var/log/audit/audit.log"
Gap = tuple[Missing, str]  # what is missing, and a note that names it and advises


@node_check(
    "KM527",
    "Host firewall blocks ports of Kubernetes",
    severity="warning",
    applies="nodes with a kubelet, and hosts whose etcd is a unit that finds no peer",
    needs=("system", "kubelet", "instances", "component_units", "etcd", "boot", "network"),
)
def shut(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM527: report firewalld or ufw if it is on, now or after a boot, and blocks needed ports."""
    if host.statuses.get("kubelet") == "absent" and not _ports_of_peers(document):
        yield not_applicable(NO_KUBELET, host=host.host)
        return
    missing = host.missing("kubelet") + host.missing("boot", absent_is_answer=False)
    evidence = contract.answer(document, Boot).firewall
    if not missing and evidence is None:
        missing = (Missing(host.host, "boot", "not_asked"),)  # an older release collected it
    if missing:
        yield unknown(*missing, host=host.host)
        return
    hits, gaps = _hits_and_gaps(host, document, firewall.walls(evidence or {}))
    note = "; ".join(dict.fromkeys(note for _missing, note in gaps if note))
    yield CheckResult(
        tuple(hits),
        tuple(dict.fromkeys(missing for missing, _note in gaps)),
        host=host.host,
        note=one_line(note, 500),
    )


def _unknown_interfaces(host: Host) -> list[Gap]:
    """Return what is missing to know the interfaces of pods."""
    return [
        (missing, "the interfaces of pods are not known: see ip link")
        for missing in host.missing("network")
        if missing.status != "not_asked"  # an older release collected it
    ]


def _hits_and_gaps(
    host: Host, document: Mapping[str, Any], walls: Sequence[Wall]
) -> tuple[list[Detection], list[Gap]]:
    """Return the hits of a host's firewalls, and what is missing to decide all of them."""
    if not walls:
        return [], []
    ports, gaps = _ports(host, document)
    advice = ""
    if installer.owner_of(document) == "RKE2":
        advice = DOCUMENTED["RKE2"]
    results = [_evaluated(host, wall, ports, advice) for wall in walls]
    hits = [hit for hit, _gap in results if hit is not None]
    gaps += [gap for _hit, gap in results if gap is not None]
    hits += _interfaces_of_pods(host, walls, {hit.component for hit in hits})
    gaps += _unknown_interfaces(host)
    if closed_to_peers(host, document):  # no member starts, where a warning tells of a risk
        hits = [replace(hit, severity="critical") for hit in hits]
    return hits, gaps


def _interfaces_of_pods(
    host: Host, walls: Sequence[Wall], closed: Collection[str | None]
) -> Iterator[Detection]:
    """Yield interfaces of pods that firewalld filters like the machine's own.

    closed: firewalls that shut a port of the node, whose finding tells of pods' interfaces too.
    """
    for wall in walls:
        names = _filtered(host, wall)
        passes_on = firewall.passes_on(wall)
        if names and passes_on is not None and not (passes_on and wall.name in closed):
            yield _unassigned(host, wall, names, passes_on)


def _filtered(host: Host, wall: Wall) -> list[str]:
    """Return the interfaces of pods, where firewalld has none of them in a zone."""
    if wall.name != firewall.FIREWALLD or not (wall.active or wall.comes):
        return []
    names = [name for name in POD_INTERFACES if host.network.has(name)]
    if all(firewall.leaves_out(wall, name.replace("*", "0")) for name in names):
        return names
    return []


def _unassigned(host: Host, wall: Wall, filtered: Sequence[str], passes_on: bool) -> Detection:
    effect = "it refuses what pods send to each other and to other machines"
    severity = "warning"
    if passes_on:
        effect = "it refuses what pods send to the machine itself, as far as no port is open"
        severity = "info"
    return Detection(
        f"firewalld {_state(wall)}, and none of its files gives {and_others(filtered)} or addresses"
        f" of pods to a zone: {effect}",
        (EvidenceRef("file", host.host, path=wall.file, text=f"in no zone: {filtered[0]}"),),
        "give the networks of pods and of Services to the zone trusted, or the bridge of the pods"
        " (firewall-cmd --permanent --zone=trusted --add-source=RANGE, or --add-interface=cni0;"
        f" then the same without --permanent, {WITHOUT_RELOAD}); or systemctl disable --now"
        " firewalld, where something else guards the node",
        host=host.host,
        node=host.node,
        component=filtered[0],
        severity=severity,
    )


def _evaluated(
    host: Host, wall: Wall, ports: Mapping[int, str], advice: str
) -> tuple[Detection | None, Gap | None]:
    """Return the hit of one firewall, or what is missing to decide it."""
    answers = {port: wall.lets_in(port) for port in ports}
    closed = {port: ports[port] for port, lets in answers.items() if lets is False}
    if closed and (wall.active or wall.comes):
        return _hit(host, wall, closed, advice), None
    if closed or None in answers.values():
        open_ports = [port for port, lets in answers.items() if lets is None]
        return None, _unjudged(host, wall, open_ports)
    return None, None


def _unjudged(host: Host, wall: Wall, ports: Sequence[int]) -> Gap:
    """Return why it is not known what a firewall lets in, or whether it is on."""
    causes = wall.unjudged(ports)
    if not ports:
        causes = [
            (path, reason)
            for path, reason in causes
            if path == wall.file and wall.text(path) is None
        ]
        if not causes:
            return _unknown_state(host, wall)
    places = [f"{path} ({reason})" for path, reason in causes]
    shown = and_others(places, SHOWN) or "a zone that is used is in no file"
    status, advice = "error", "see "
    if any(reason == "denied" for _path, reason in causes):
        status, advice = "denied", "audit as root (kubemend_become), or see "
    commands = "firewall-cmd --list-all-zones and firewall-cmd --direct --get-all-rules"
    if wall.name == firewall.UFW:
        commands = "ufw status verbose and iptables -S"
    note = f"what {wall.name} lets in is not known: {shown}; {advice}{commands}"
    return Missing(host.host, "boot", status), note


def _unknown_state(host: Host, wall: Wall) -> Gap:
    """Return that it is not known whether a firewall is on."""
    command = "systemctl is-active firewalld"
    if wall.name == firewall.UFW:
        command = "ufw status"
    note = f"whether {wall.name} is on is not known: see {command}"
    return Missing(host.host, "boot", "error"), note


def _ports(host: Host, document: Mapping[str, Any]) -> tuple[dict[int, str], list[Gap]]:
    """Return the ports that other machines or pods use on this node, and what is missing."""
    gaps: list[Gap] = [
        (missing, "which of the control plane's programs run is not known")
        for missing in host.missing("instances")
    ]
    ports: dict[int, str] = {}
    if host.statuses.get("kubelet") != "absent":
        ports, kubelet_gaps = _kubelet_port(host, document)
        gaps += kubelet_gaps
    ports.update(dict.fromkeys(_ports_of_peers(document), PEERS))
    inner = _pids_of_pod_network(document)
    extract = control_plane.extract(document)
    if extract is None:
        return ports, gaps
    for process in extract.processes_of("kube-apiserver"):
        port = _api_port(process.argv)
        if port and process.pid not in inner:
            ports[port] = "the API server"
    for process in extract.processes_of("etcd"):
        if process.pid not in inner:
            peer_ports, peer_gaps = _peers(host, process.argv)
            ports.update(dict.fromkeys(peer_ports, PEERS))
            gaps += peer_gaps
    return ports, gaps


def closed_to_peers(host: Host, document: Mapping[str, Any]) -> bool:
    """Tell whether a firewall of the host is on, and shuts the port that etcd's peers use."""
    ports = _ports_of_peers(document)
    evidence = contract.answer(document, Boot).firewall
    if not ports or host.missing("boot", absent_is_answer=False) or evidence is None:
        return False
    return any(
        wall.active and wall.lets_in(port) is False
        for wall in firewall.walls(evidence)
        for port in ports
    )


def _ports_of_peers(document: Mapping[str, Any]) -> list[int]:
    """Return the ports at which an etcd that does not start is to be reached by its peers.

    Members use one port among them: its journal names that of the peer that it does not reach.
    """
    units = [
        unit
        for unit in contract.answer(document, ComponentUnits).units
        if unit.component == "etcd" and unit.active_state != "active"
    ]
    lines = [line for unit in units for line in unit.lines]
    peers = [peer for line in lines for peer in _DIALED.findall(line)]
    numbers = [_number(port) for address, port in peers if not _loopback(address.strip("[]"))]
    return sorted({number for number in numbers if number is not None})


def _pids_of_pod_network(document: Mapping[str, Any]) -> set[int | None]:
    """Return the processes whose ports are not the host's."""
    processes = contract.answer(document, Instances).processes
    return {process.pid for process in processes if process.host_network is False}


def _kubelet_port(host: Host, document: Mapping[str, Any]) -> tuple[dict[int, str], list[Gap]]:
    config = kubelet_config.read(contract.answer(document, Kubelet))
    port, address = config.setting("port", "port"), config.setting("address", "address")
    if config.certain(port) and config.certain(address):
        if address and _loopback(address.value):
            return {}, []
        number = None
        if port:
            number = _number(port.value)
        return {number or int(KUBELET): "the kubelet"}, []
    status, advice = "error", "see ss -tlnp"
    if config.problem.endswith(": denied"):
        status, advice = "denied", "audit as root (kubemend_become), or see ss -tlnp"
    documented = DOCUMENTED.get(installer.owner_of(document) or "", "")
    if documented:
        advice = f"{advice} ({documented})"
    note = f"the kubelet's address and port are not known: {config.problem}; {advice}"
    return {}, [(Missing(host.host, "kubelet", status), note)]


def _api_port(argv: Sequence[str]) -> int | None:
    """Return the port of an API server that other machines can use, or None."""
    if _loopback(pflag.string_flag(argv, "bind-address") or ""):
        return None
    return _number(pflag.string_flag(argv, "secure-port") or API)


def _peers(host: Host, argv: Sequence[str]) -> tuple[Iterable[int], Iterable[Gap]]:
    """Return the ports on which etcd's other members use this one, and what is missing.

    etcd's own list of members counts: --initial-cluster keeps what was at the first start.
    """
    urls = pflag.string_flag(argv, "listen-peer-urls")
    ports = _listen_ports(urls or "")
    if ports and all(port == 0 for port in ports):
        return (), ()  # on loopback alone
    missing = _members_missing(host, pflag.string_flag(argv, "name"))
    if missing is not None:
        note = (
            "whether etcd has other members is not known, and so whether its port for them has to"
            " be open: see etcdctl member list"
        )
        return (), [(missing, note)]
    if len(host.etcd.members) == 1:
        return (), ()
    if urls is None or None in ports:
        note = (
            "etcd's command line does not say on which port it listens to its other members"
            " (--listen-peer-urls): see ss -tlnp"
        )
        return (), [(Missing(host.host, "instances", "error"), note)]
    return [port for port in ports if port], ()


def _members_missing(host: Host, name: str | None) -> Missing | None:
    """Return what is missing to know etcd's members, or None.

    name: the name of this host's member
    """
    missing = host.missing("etcd", absent_is_answer=False)
    if missing:
        return missing[0]
    names = [member.name for member in host.etcd.members]
    if not names or (name and name not in names):
        return Missing(host.host, "etcd", "error")
    return None


def _listen_ports(urls: str) -> list[int | None]:
    """Return the port of each URL of a list, as _listen_port has it."""
    return [_listen_port(url) for url in urls.split(",") if url.strip()]


def _listen_port(url: str) -> int | None:
    """Return the port of a URL, 0 if other machines cannot use it, None if it does not parse."""
    try:
        parts = urlsplit(url.strip())
        if parts.scheme in ("unix", "unixs") or _loopback(parts.hostname or ""):
            return 0
        return parts.port or None
    except ValueError:
        return None


def _number(text: str) -> int | None:
    """Return a port, or None if the text is none."""
    if text.isdecimal() and len(text) < 6 and 0 < int(text) < 65536:
        return int(text)
    return None


def _loopback(address: str) -> bool:
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _hit(host: Host, wall: Wall, closed: Mapping[int, str], advice: str) -> Detection:
    users = " and ".join(f"{port}/tcp ({user})" for port, user in sorted(closed.items()))
    ports = ", ".join(f"{port}/tcp" for port in sorted(closed))
    remedy, unseen = _open_ufw(closed)
    if wall.name == firewall.FIREWALLD:
        remedy, unseen = _open_firewalld(closed)
    if advice:
        remedy = f"{remedy}. {advice}"
    active = f"active: {_word(wall.active)}, comes with a boot: {_word(wall.comes)}"
    return Detection(
        f"{wall.name} {_state(wall)}, and its files let no connection in at {users}; {unseen}",
        (
            EvidenceRef("unit", host.host, object=f"{wall.name}.service", text=active),
            EvidenceRef("file", host.host, path=wall.file, text=f"nothing lets {ports} in"),
        ),
        remedy,
        host=host.host,
        node=host.node,
        component=wall.name,
    )


def _state(wall: Wall) -> str:
    """Return whether a firewall is on, for a summary."""
    if wall.active and wall.comes:
        return "is on, and comes back with each boot"
    if wall.active:
        return "is on, though no boot brings it"
    if wall.active is None:
        return "may be on, and comes back with each boot"
    return "is off, and comes back with the next boot"


def _open_firewalld(closed: Iterable[int]) -> tuple[str, str]:
    """Return how to open ports, and what the files do not show."""
    adds = " ".join(f"--add-port={port}/tcp" for port in sorted(closed))
    remedy = (
        f"open them for good (firewall-cmd --permanent {adds}, then firewall-cmd {adds},"
        f" {WITHOUT_RELOAD}), and"
        " give pods' interfaces and networks to the zone trusted, as the documentation of your"
        " network plugin says; or systemctl disable --now firewalld, where something else"
        " guards the node"
    )
    return remedy, (
        "what was opened without --permanent is in no file, and gone after the next boot"
    )


def _open_ufw(closed: Iterable[int]) -> tuple[str, str]:
    """Return how to open ports, and what the files do not show."""
    commands = "; ".join(f"ufw allow {port}/tcp" for port in sorted(closed))
    remedy = (
        f"open them ({commands}), and see ufw route and DEFAULT_FORWARD_POLICY for pods; or"
        " ufw disable, where something else guards the node"
    )
    return remedy, "rules that were added to iptables without ufw are in no file of it"


def _word(value: bool | None) -> str:
    if value is None:
        return "not known"
    if value:
        return "yes"
    return "no"


@node_check(
    "KM528",
    "SELinux denies kubelet or runtime what they need",
    severity="warning",
    applies="nodes on which SELinux enforces",
    needs=("system", "boot"),
)
def denied(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM528: report what SELinux denied to kubelet, runtime or control plane since the boot."""
    missing, node = host.missing("boot", absent_is_answer=False), model_boot.read(document)
    enforce = selinux_modes(node).enforce
    if missing or enforce != "1" or node.container:
        has_selinux = enforce is not None and not node.container
        yield CheckResult((), missing, host=host.host, applies=bool(missing or has_selinux))
        return
    denials = node.answer.denials
    if denials is None:
        yield unknown(Missing(host.host, "boot", "not_asked"), host=host.host)
        return
    hits = [*_denied_programs(host, denials), *_denied_bpf(host, denials)]
    if hits:
        yield present(*hits, host=host.host)
        return
    status, reason = _audit_gap(denials)
    if reason:
        missing = (Missing(host.host, "boot", status),)
    yield CheckResult((), missing, host=host.host, note=one_line(reason, 300))


def _audit_gap(denials: Denials) -> tuple[str, str]:
    """Return status and reason where the audit log does not show that nothing was denied.

    The reason is "" where it does.
    """
    path, error = denials.path or AUDIT, denials.error
    if error == "denied":
        return error, (
            f"{path} may be read by root alone: audit as root (kubemend_become), or see"
            " ausearch -m avc -ts boot"
        )
    if error:
        return "error", (
            f"{path}: {error}; see journalctl -k -b -g avc for denials, and systemctl status"
            " auditd for who writes them down"
        )
    if denials.cut or (denials.count or 0) > len(denials.lines):
        return "error", (
            f"only the end of {path} was read, and it does not have all since the boot: see"
            " ausearch -m avc -ts boot"
        )
    if not denials.since:
        return "error", (
            f"{path} has no entry since the boot, so that it may not be written: see systemctl"
            " status auditd, and journalctl -k -b -g avc for denials"
        )
    return "ok", ""


def _program(denial: AvcDenial) -> str:
    """Return the program that it was denied to.

    Just before it executes a unit's program, systemd's child is called by its last eight letters,
    as in (ntainerd): then the file counts.
    """
    if denial.program.startswith("("):
        return denial.name or denial.program
    return denial.program


def _concerns_node(line: str) -> bool:
    """Tell whether a line of the audit log denies something to one of a node's programs."""
    denial = avc_denial.read(line)
    if denial.domain in DOMAINS:
        return True
    if denial.domain == "init_t" and denial.program == "systemd":
        return denial.name in UNITS
    if denial.domain in CONTAINERS:
        return _program(denial).startswith(STATIC)
    return denial.domain in SERVICES and _program(denial).startswith(PROGRAMS)


def _denied_bpf(host: Host, denials: Denials) -> Iterator[Detection]:
    """Yield that privileged containers may not use BPF, of which networks are made."""
    lines = bpf_denials.of_privileged(denials.lines)
    denial = bpf_denials.read(lines)
    if denial.sentence:
        yield Detection(
            f"{denial.sentence} ({len(lines)} of the last denials)",
            _proofs(host, lines),
            f"{denial.advice}. setenforce 0 shows whether it is the cause, and lasts until the next"
            " boot only",
            host=host.host,
            node=host.node,
            component=bpf_denials.COMPONENT,
        )


def _proofs(host: Host, lines: Sequence[str]) -> tuple[EvidenceRef, ...]:
    return tuple(
        EvidenceRef("log", host.host, path=AUDIT, text=one_line(line, 300))
        for line in lines[-SHOWN:]
    )


def _denied_programs(host: Host, denials: Denials) -> Iterator[Detection]:
    """Yield that programs of the node itself were denied something."""
    lines = [line for line in denials.lines if _concerns_node(line)]
    if lines:
        yield _denied(host, lines)


def _denied(host: Host, lines: list[str]) -> Detection:
    programs = dict.fromkeys(
        one_line(_program(avc_denial.read(line)) or "?", 40) for line in reversed(lines)
    )
    clause, advice = _label(avc_denial.read(lines[-1]))
    return Detection(
        f"SELinux enforces, and has denied something to"
        f" {one_line(', '.join(programs), 200)} since the boot ({len(lines)} of the last"
        f" denials){clause}",
        _proofs(host, lines),
        f"{advice}setenforce 0 shows whether it is the cause, and lasts until the next boot only",
        host=host.host,
        node=host.node,
        component="selinux",
    )


def _label(denial: AvcDenial) -> tuple[str, str]:
    """Return a clause with the label that is wrong, and the commands that correct it."""
    name, label = one_line(denial.name, 120), denial.label
    if name and label in MOVED:
        return (
            f"; {name} has the label {label}, which a file keeps that was moved from there",
            f"see ls -Z of {name}, and give it the label of its folder: restorecon -Rv"
            f" {_path(name)}{_reload(name)}. Where that changes nothing, the package"
            " container-selinux is missing. ",
        )
    if name and label in WITHOUT_LABEL:
        return (
            f"; {name} has the label {label}: the policy has none for its folder, or does not know"
            " the one that it has",
            "where journalctl -k says that a context is not valid, the policy that is loaded lacks"
            " the type of that file: load the policy of the package that has it (semodule -B), or"
            " restorecon -v the file. Else give the folder the labels of the usual one, such as"
            " semanage fcontext -a -e /var/lib/kubelet FOLDER (or -e /var/lib/containers), then"
            " restorecon -Rv FOLDER; the package container-selinux has those labels. ",
        )
    if denial.domain == "unconfined_service_t":
        return (
            f"; the runtime works in the domain {denial.domain}, which a service has whose program"
            " has no label of its own",
            "install the package container-selinux (k3s: k3s-selinux, RKE2: rke2-selinux), give the"
            " programs their label and restart the runtime: restorecon -v /usr/bin/containerd"
            " /usr/local/bin/containerd /usr/bin/runc /usr/local/sbin/runc; for a program in"
            " another folder: semanage fcontext -a -t container_runtime_exec_t PATH, then"
            " restorecon -v PATH. ls -Z shows the label. ",
        )
    return (
        "",
        "see ausearch -m avc -ts boot, and audit2why: most often the package container-selinux is"
        " missing, or a folder or program has not its label (restorecon -Rv on the programs and"
        " folders of kubelet, runtime and CNI: mv keeps the label of where a file came from). ",
    )


def _path(name: str) -> str:
    """Return where a file of this name lies, as far as its name tells."""
    word = shell_name(name, "PATH")
    return f"/etc/systemd/system/{word}" if name in UNITS else f"PATH/{word}"


def _reload(name: str) -> str:
    return ", then systemctl daemon-reload" if name in UNITS else ""
