# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM527, a firewall of the host that keeps Kubernetes' ports shut.

KM528, what SELinux denied to kubelet and runtime.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from ...evidence.document import one_line
from ...models import boot as node_boot
from ...models import control_plane
from ...models import installer as owner
from ...models.cluster import Host
from ...models.kubelet import config as kubelet_config
from ...models.result import Missing, Proof
from ...parsers import firewall
from ...parsers import pflag as flags
from ...parsers.firewall import Wall
from ..base import Hit, Outcome, node_check
from .boot import NO_KUBELET

KUBELET, API = "10250", "6443"
SHOWN = 3
_FIELD = re.compile(r'\b(comm|name|scontext|tcontext)=(?:"([^"]*)"|(\S+))')
# The domains of kubelet and runtime themselves: container-selinux's (k3s and RKE2 are labelled as
# its runtime; docker_t in those of RHEL 7 before it was
# one with container_runtime_t), the reference policy's of Debian and Gentoo (dockerd_t), and those
# of RKE2's own static pods. What a node's programs are
# called, as the kernel cuts them (15 characters), and the domains of services that the policy has
# none of their own for. Pods' domains (container_t,
# container_init_t, container_engine_t, spc_t) are none of them, nor those of other services.
DOMAINS = (
    "kubelet_t",
    "container_runtime_t",
    "docker_t",
    "dockerd_t",
    "rke2_service_t",
    "rke2_service_db_t",
)
SERVICES = ("unconfined_service_t", "init_t")
# What their documentation asks for: of k3s the evidence does not tell it, of RKE2 not all of it.
DOCUMENTED = {
    "k3s": (
        "k3s asks for 6443/tcp on servers, 10250/tcp on every node where metrics-server is used,"
        " 2379-2380/tcp between servers with etcd"
    ),
    "RKE2": "RKE2 asks for 9345/tcp on servers too",
}
PROGRAMS = (
    "kubelet",
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
Gap = tuple[Missing, str]  # what is missing, and which file or what else, with what to do


@node_check(
    "KM527",
    "A firewall of the host keeps Kubernetes' ports shut",
    severity="warning",
    applies="nodes with a kubelet",
    needs=("system", "kubelet", "instances", "etcd", "boot"),
)
def shut(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM527: firewalld or ufw is on, or comes with the next boot, and does not let in what
    others ask of this node.
    """
    if host.statuses.get("kubelet") == "absent":
        yield Outcome((), host=host.host, applies=False, note=NO_KUBELET)
        return
    missing = host.missing("kubelet") + host.missing("boot", absent_is_answer=False)
    seen = control_plane.data(document, "boot").get("firewall")
    if not missing and not isinstance(seen, Mapping):
        missing = (Missing(host.host, "boot", "not_asked"),)  # an older release collected it
    if missing:
        yield Outcome((), missing, host=host.host)
        return
    walls = firewall.walls(seen)
    ports, gaps = _ports(host, document) if walls else ({}, [])
    hits = []
    for wall in walls:
        told = {port: wall.lets_in(port) for port in ports}
        closed = {port: ports[port] for port, lets in told.items() if lets is False}
        if closed and (wall.active or wall.comes):
            hits.append(
                _hit(
                    host,
                    wall,
                    closed,
                    DOCUMENTED["RKE2"] if owner.owner_of(document) == "RKE2" else "",
                )
            )
        elif closed or None in told.values():
            gaps.append(
                _unjudged(host, wall, [port for port, lets in told.items() if lets is None])
            )
    yield Outcome(
        tuple(hits),
        tuple(dict.fromkeys(missing for missing, dummy in gaps)),
        host=host.host,
        note=one_line("; ".join(dict.fromkeys(note for dummy, note in gaps if note)), 500),
    )


def _unjudged(host: Host, wall: Wall, ports: Sequence[int]) -> Gap:
    """Why it is not known what a firewall lets in, or whether it is on."""
    causes = wall.unjudged(ports)
    if not ports:
        causes = [
            (path, why) for path, why in causes if path == wall.file and wall.text(path) is None
        ]
        if not causes:
            return (
                Missing(host.host, "boot", "error"),
                f"whether {wall.name} is on is not known: see "
                + ("ufw status" if wall.name == firewall.UFW else "systemctl is-active firewalld"),
            )
    refused = any(why == "denied" for dummy, why in causes)
    shown = ", ".join(f"{path} ({why})" for path, why in causes[:SHOWN]) + (
        f" and {len(causes) - SHOWN} more" if len(causes) > SHOWN else ""
    )
    asks = (
        "ufw status verbose and iptables -S"
        if wall.name == firewall.UFW
        else "firewall-cmd --list-all-zones and firewall-cmd --direct --get-all-rules"
    )
    shown = shown or "a zone that is used is in no file"
    return (
        Missing(host.host, "boot", "denied" if refused else "error"),
        f"what {wall.name} lets in is not known: {shown}; "
        + ("audit as root (kubemend_become), or see " if refused else "see ")
        + asks,
    )


def _ports(host: Host, document: Mapping[str, Any]) -> tuple[dict[int, str], list[Gap]]:
    """The ports that other machines, or pods, ask for on this node, and what keeps more of them
    from being known.
    """
    ports: dict[int, str] = {}
    gaps: list[Gap] = [
        (one, "which of the control plane's programs run is not known")
        for one in host.missing("instances")
    ]
    config = kubelet_config.read(control_plane.data(document, "kubelet"))
    port, address = config.setting("port", "port"), config.setting("address", "address")
    if not (config.certain(port) and config.certain(address)):
        denied = config.problem.endswith(": denied")
        asks = DOCUMENTED.get(owner.owner_of(document) or "", "")
        gaps.append(
            (
                Missing(host.host, "kubelet", "denied" if denied else "error"),
                f"the kubelet's address and port are not known: {config.problem}; "
                + ("audit as root (kubemend_become), or see ss -tlnp" if denied else "see ss -tlnp")
                + (f" ({asks})" if asks else ""),
            )
        )
    elif not _loopback(address.value if address else ""):
        ports[_number(port.value if port else KUBELET) or int(KUBELET)] = "the kubelet"
    extract = control_plane.extract(document)
    raw = control_plane.data(document, "instances").get("processes")
    inner = {
        one.get("pid")
        for one in raw or ()
        if isinstance(one, Mapping) and one.get("host_network") is False
    }
    for one in extract.of("kube-apiserver") if extract else ():
        given = _number(flags.string_flag(one.argv, "secure-port") or API)
        if (
            given
            and one.pid not in inner
            and not _loopback(flags.string_flag(one.argv, "bind-address") or "")
        ):
            ports[given] = "the API server"
    for one in extract.of("etcd") if extract else ():
        found, why = _peers(host, one.argv) if one.pid not in inner else ((), ())
        ports.update(dict.fromkeys(found, "etcd's other members"))
        gaps += why
    return ports, gaps


def _peers(host: Host, argv: Sequence[str]) -> tuple[Iterable[int], Iterable[Gap]]:
    """The ports on which etcd's other members ask this one, by the members that etcd itself counts.

    --initial-cluster keeps what was at the first start.
    """
    told = flags.string_flag(argv, "listen-peer-urls")
    ports = [_peer(url) for url in (told or "").split(",") if url.strip()]
    if told is not None and ports and not any(port != 0 for port in ports):
        return (), ()  # on loopback alone
    missing = host.missing("etcd", absent_is_answer=False)
    rows = host.etcd.get("members")
    members = (
        [one for one in rows if isinstance(one, Mapping)] if isinstance(rows, (list, tuple)) else []
    )
    name = flags.string_flag(argv, "name")
    if missing or not members or (name and name not in [one.get("name") for one in members]):
        return (), [
            (
                missing[0] if missing else Missing(host.host, "etcd", "error"),
                (
                    "whether etcd has other members is not known, and so whether its port for them"
                    " has to be open: see etcdctl member list"
                ),
            )
        ]
    if len(members) == 1:
        return (), ()
    if told is None or None in ports:
        return (), [
            (
                Missing(host.host, "instances", "error"),
                (
                    "etcd's command line does not tell on which port it listens to its other"
                    " members (--listen-peer-urls): see ss -tlnp"
                ),
            )
        ]
    return [port for port in ports if port], ()


def _peer(url: str) -> int | None:
    """Its port, 0 where no other machine can ask there, None where it does not parse."""
    try:
        parts = urlsplit(url.strip())
        if parts.scheme in ("unix", "unixs") or _loopback(parts.hostname or ""):
            return 0
        return parts.port or None
    except ValueError:
        return None


def _number(text: str) -> int | None:
    """A port, None where it is none."""
    return int(text) if text.isdecimal() and len(text) < 6 and 0 < int(text) < 65536 else None


def _loopback(address: str) -> bool:
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _hit(host: Host, wall: Wall, closed: Mapping[int, str], asks: str) -> Hit:
    name = host.node or host.host
    shown = " and ".join(f"{port}/tcp ({what})" for port, what in sorted(closed.items()))
    if wall.active:
        state = f"is on at {name}" + (
            ", and comes back with each boot" if wall.comes else ", though no boot brings it"
        )
    else:
        state = (
            f"{'may be on' if wall.active is None else 'is off'} at {name}, and comes back with"
            f" {'each' if wall.active is None else 'the next'} boot"
        )
    if wall.name == firewall.FIREWALLD:
        adds = " ".join(f"--add-port={port}/tcp" for port in sorted(closed))
        cure = (
            f"open them for good (firewall-cmd --permanent {adds}, then firewall-cmd --reload), and"
            " give pods' interfaces and networks to the zone trusted, as the documentation of your"
            " network plugin says; or systemctl disable --now firewalld, where something else"
            " guards the node"
        )
        seen = "what was opened without --permanent is in no file, and gone after the next boot"
    else:
        cure = (
            "open them ("
            + "; ".join(f"ufw allow {port}/tcp" for port in sorted(closed))
            + "), and see ufw route and DEFAULT_FORWARD_POLICY for pods; or "
            "ufw disable, where something else guards the node"
        )
        seen = "rules that iptables was told beside ufw are in no file of it"
    proofs = [
        Proof(
            "unit",
            host.host,
            object=f"{wall.name}.service",
            text=f"active: {_word(wall.active)}, comes with a boot: {_word(wall.comes)}",
        ),
        Proof(
            "file",
            host.host,
            path=wall.file,
            text=f"nothing lets {', '.join(f'{port}/tcp' for port in sorted(closed))} in",
        ),
    ]
    cure += f". {asks}" if asks else ""
    return Hit(
        f"{wall.name} {state}, and its files let nobody in at {shown}; {seen}",
        tuple(proofs),
        cure,
        host=host.host,
        node=host.node,
        component=wall.name,
    )


def _word(value: bool | None) -> str:
    return {True: "yes", False: "no"}.get(value, "not known") if value is not None else "not known"


@node_check(
    "KM528",
    "SELinux denies kubelet or runtime what they need",
    severity="warning",
    applies="nodes on which SELinux enforces",
    needs=("system", "boot"),
)
def denied(host: Host, document: Mapping[str, Any]) -> Iterator[Outcome]:
    """KM528: SELinux enforces, and has denied something to kubelet, runtime or the control plane
    since the boot.
    """
    missing, node = host.missing("boot", absent_is_answer=False), node_boot.read(document)
    modes = node.seen.get("selinux")
    enforces = isinstance(modes, Mapping) and str(modes.get("enforce")) == "1"
    if missing or not enforces or node.container:
        there = (
            isinstance(modes, Mapping) and modes.get("enforce") is not None and not node.container
        )
        yield Outcome((), missing, host=host.host, applies=bool(missing or there))
        return
    told = node.seen.get("denials")
    if not isinstance(told, Mapping):
        yield Outcome((), (Missing(host.host, "boot", "not_asked"),), host=host.host)
        return
    lines = told.get("lines")
    found = (
        [line for line in lines if isinstance(line, str) and _ours(line)]
        if isinstance(lines, (list, tuple))
        else []
    )
    if found:
        yield Outcome((_denied(host, found, told),), host=host.host)
    else:
        status, why = _unheard(told, len(lines) if isinstance(lines, (list, tuple)) else 0)
        yield Outcome(
            (),
            (Missing(host.host, "boot", status),) if why else (),
            host=host.host,
            note=one_line(why, 300),
        )


def _unheard(told: Mapping[str, Any], kept: int) -> tuple[str, str]:
    """(status, why) where the audit log does not show that nothing was denied.

    Why is empty where it does.
    """
    path, error = str(told.get("path") or AUDIT), told.get("error")
    if error == "denied":
        return (
            error,
            (
                f"{path} may be read by root alone: audit as root (kubemend_become), or see"
                " ausearch -m avc -ts boot"
            ),
        )
    if error:
        return (
            "error",
            (
                f"{path}: {error}; see journalctl -k -b -g avc for denials, and systemctl status"
                " auditd for who writes them down"
            ),
        )
    if told.get("cut") or int(told.get("count") or 0) > kept:
        return (
            "error",
            (
                f"only the end of {path} was read, and it does not tell of all since the boot: see"
                " ausearch -m avc -ts boot"
            ),
        )
    if told.get("since") is not True:
        return (
            "error",
            (
                f"{path} has no entry since the boot, so that nobody may write it: see systemctl"
                " status auditd, and journalctl -k -b -g avc for denials"
            ),
        )
    return "ok", ""


def _fields(line: str) -> dict[str, str]:
    return {key: one or two for key, one, two in _FIELD.findall(line)}


def _program(told: Mapping[str, str]) -> str:
    """Who it was denied to. Just before it executes a unit's program systemd's child is called
    by its last eight letters, as in (ntainerd): then the file.
    """
    comm = told.get("comm", "")
    return told.get("name", comm) if comm.startswith("(") else comm


def _ours(line: str) -> bool:
    told = _fields(line)
    domain = ([*told.get("scontext", "").split(":"), "", "", ""])[2]
    return domain in DOMAINS or (domain in SERVICES and _program(told).startswith(PROGRAMS))


def _denied(host: Host, found: list[str], told: Mapping[str, Any]) -> Hit:
    name = host.node or host.host
    who = ", ".join(
        dict.fromkeys(one_line(_program(_fields(line)) or "?", 40) for line in reversed(found))
    )
    proofs = [
        Proof("log", host.host, path=AUDIT, text=one_line(line, 300)) for line in found[-SHOWN:]
    ]
    return Hit(
        f"SELinux of {name} enforces, and has denied something to {one_line(who, 200)} since the"
        f" boot ({len(found)} of the last denials)",
        tuple(proofs),
        "see ausearch -m avc -ts boot, and audit2why: most often the package container-selinux is"
        " missing, or a folder or program has not its label (restorecon -Rv on the programs and"
        " folders of kubelet, runtime and CNI: mv keeps the label of where a file came from)."
        " setenforce 0 shows whether it is the cause, and lasts until the next boot only",
        host=host.host,
        node=host.node,
        component="selinux",
    )
