# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""By which name and addresses a kubelet stands for its node, and what its machine has. Pure.

A kubelet's node name is --hostname-override, else the machine's host name. Both count without
blanks at their ends, and in lower case. The kubelet reads them at its start. With a cloud provider
inside the kubelet (up to 1.28) the cloud gives the name, and with any cloud provider the addresses.
"""

from __future__ import annotations

import ipaddress
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.cni import Cni
from ..evidence.answers.node.cri import Cri
from ..evidence.answers.node.kubelet import Kubelet, KubeletProcess, KubeletUnit
from ..evidence.answers.node.kubelet import Networks as CniFolder
from ..evidence.answers.node.kubelet_end import KubeletEnd
from ..evidence.answers.node.kubelet_log import KubeletLog
from ..evidence.answers.node.system import System
from ..evidence.document import one_line
from ..parsers import pflag, unit_journal
from .kubelet import config as kubelet_config
from .kubelet import dropin as kubelet_dropin
from .kubelet import exit_cause
from .result import EvidenceRef

NONE, DENIED, ERROR = "none", "denied", "error"
SHOWN = 5
_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?")
_URL = re.compile(r"^[a-z]+://(\[[0-9A-Fa-f:.]+\]|[^/:]+)(?::\d+)?/?$")
# What a line of containerd's log has as its message and its error.
_QUOTED = re.compile(r'(?:msg|error)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Networks:
    """A folder of CNI configuration.

    names: names of the files that are not empty
    error: why it could not be listed, "missing" where there is none
    unread: why the runtime loaded nothing from it, by its own words; empty where it is not known
    bare: where its runtime looks for the programs of CNI, and there is none; else empty
    """

    folder: str
    names: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    error: str = ""
    unread: str = ""
    bare: str = ""


@dataclass(frozen=True)
class Identity:
    """The name and the addresses of a node, for its kubelet and for its machine.

    name: the node's name for its kubelet, None where that is not known
    override: --hostname-override, as it was given
    certificate: "" where one names a node, else why none does (none, denied, error)
    cloud: --cloud-provider
    inside: the program that holds the kubelet
    node_ips: --node-ip, without those that only choose a family
    addresses: the machine's own, None where they were not read
    more: whether there are more addresses than were kept
    runs: whether a process of the kubelet was seen
    places: the lines that set name or address
    refused: (the name that the API server refused to the running process, the line that says so)
    networks: the folder of CNI configuration, None where an older release collected
    """

    name: str | None = None
    hostname: str = ""
    override: str | None = None
    certificate: str = NONE
    cloud: str = ""
    inside: str = ""
    node_ips: tuple[str, ...] = ()
    addresses: frozenset[str] | None = None
    more: bool = False
    runs: bool = False
    places: tuple[EvidenceRef, ...] = ()
    refused: tuple[str, str] | None = None
    networks: Networks | None = None

    @property
    def clouded(self) -> bool:
        """Return whether a cloud provider inside the kubelet names the node."""
        return self.cloud not in ("", "external")

    def here(self, address: str) -> bool | None:
        """Return whether this address is one of the machine's; None where that is not known."""
        ip_address = ip(address)
        if ip_address is None or self.addresses is None:
            return None
        if str(ip_address) in self.addresses or ip_address.is_loopback or ip_address.is_unspecified:
            return True
        if self.more:
            return None
        return False


def _name(argv: tuple[str, ...], override: str | None, hostname: str | None) -> str | None:
    """Return the name under which a kubelet registers its Node, or None."""
    raw_name = hostname or ""
    if override and override.strip():
        raw_name = override
    name = raw_name.strip().lower()
    if not argv or not _NAME.fullmatch(name):
        return None
    return name


def _machine_addresses(system: System) -> frozenset[str] | None:
    """Return the host's own addresses; None where they were not read."""
    if system.addresses is None:
        return None
    return frozenset(str(ip(address) or address) for address in system.addresses)


def extract(document: Mapping[str, Any]) -> Identity:
    """Return what evaluating a cluster keeps of one host."""
    kubelet = contract.answer(document, Kubelet)
    system = contract.answer(document, System)
    lent = kubelet_dropin.lent(kubelet)
    argv = tuple(word for word in kubelet.argv if word not in lent)
    hostname, override = system.hostname, pflag.string_flag(argv, "hostname-override")
    return Identity(
        _name(argv, override, hostname),
        one_line(hostname or "", 253),
        override,
        _certificate(document, kubelet),
        pflag.string_flag(argv, "cloud-provider") or "",
        kubelet_config.inside(argv),
        _node_ips(argv),
        _machine_addresses(system),
        bool(contract.record(document, "system").get("truncated")),
        kubelet.process is not None,
        _places(document["host"], kubelet.unit),
        _refused(document, kubelet.process),
        _networks(kubelet.cni, document),
    )


def ip(text: object) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an address of a flag, without brackets and zone, or None."""
    try:
        return ipaddress.ip_address(str(text).strip().strip("[]").partition("%")[0])
    except ValueError:
        return None


def of_urls(text: str | None) -> tuple[str, ...]:
    """Return the addresses in a list of URLs, as etcd's flags have them; a name is none."""
    matches = (_URL.match(part.strip()) for part in (text or "").split(","))
    return tuple(
        str(ip(match.group(1))) for match in matches if match and ip(match.group(1)) is not None
    )


def _node_ips(argv: tuple[str, ...]) -> tuple[str, ...]:
    addresses = (ip(part) for part in (pflag.string_flag(argv, "node-ip") or "").split(","))
    return tuple(
        str(address) for address in addresses if address is not None and not address.is_unspecified
    )


def _certificate(document: Mapping[str, Any], kubelet: Kubelet) -> str:
    """Return why no certificate names the node; "" where one does."""
    if document.get("node"):
        return ""
    certificate, kubeconfig = kubelet.client_certificate, kubelet.kubeconfig
    if certificate is None:
        if kubeconfig is not None and kubeconfig.error == "denied":
            return DENIED  # it names the certificate
        return NONE
    if not certificate.error or certificate.error == "missing":
        return NONE
    if certificate.error == "denied":
        return DENIED
    return ERROR


def _places(host: str, unit: KubeletUnit | None) -> tuple[EvidenceRef, ...]:
    """Return the lines of the unit's environment files that set name or address."""
    if unit is None:
        return ()
    proofs = [
        EvidenceRef(
            "file", host, path=one_line(file.path, 200), line=number, text=one_line(line, 300)
        )
        for file in unit.environment_files
        for number, line in _naming_lines(file.text or "")
    ]
    return tuple(proofs[:SHOWN])


def _naming_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (number, line) of what sets the kubelet's name or address."""
    for number, line in enumerate(text.splitlines(), 1):
        is_naming = "hostname-override" in line or "node-ip" in line
        if is_naming and not line.lstrip().startswith("#"):
            yield number, line


def _refused(document: Mapping[str, Any], process: KubeletProcess | None) -> tuple[str, str] | None:
    """Return the name that the API server refused to the process that runs, and the line.

    The log of an earlier process does not count.
    """
    if process is None or process.pid is None or not document.get("node"):
        return None
    logs = contract.answer(document, KubeletEnd).lines, contract.answer(document, KubeletLog).lines
    for lines in logs:
        process_lines = _lines_of(process.pid, lines)
        refusal = exit_cause.misnamed(unit_journal.Start(lines=process_lines))
        if refusal and refusal[0] == document["node"]:
            return refusal[1], refusal[2]
    return None


def _lines_of(pid: int, lines: Iterable[str]) -> list[unit_journal.Said]:
    """Return the lines of one process."""
    journal_lines = itertools.chain.from_iterable(
        start.lines for start in unit_journal.starts(lines)
    )
    return [line for line in journal_lines if line.pid == pid]


def _networks(folder: CniFolder | None, document: Mapping[str, Any]) -> Networks | None:
    if folder is None:
        return None
    return Networks(
        one_line(folder.folder, 200),
        tuple(one_line(file.name, 120) for file in folder.files if file.size),
        tuple(one_line(file.name, 120) for file in folder.files if not file.size),
        one_line(folder.error or "", 120),
        _unread(document),
        _bare(document),
    )


def _bare(document: Mapping[str, Any]) -> str:
    """Return the folders for programs of CNI where they are known to have none, or ""."""
    cni = contract.answer(document, Cni)
    if cni.programs is None or cni.programs:
        return ""
    return one_line(" and ".join(cni.bin_dirs or ()), 300)


def _unread(document: Mapping[str, Any]) -> str:
    """Return why the runtime has no CNI configuration, by its status, else by its log."""
    error = contract.answer(document, Cri).cni_error
    if error:
        return one_line(error, 400)
    lines = contract.answer(document, KubeletLog).lines
    logged = [line for line in lines if "failed to reload cni configuration" in line.lower()]
    if not logged:
        return ""
    quoted = _QUOTED.findall(logged[-1])
    if quoted:
        return one_line(re.sub(r"\\(.)", r"\1", ": ".join(quoted)), 400)
    return one_line(logged[-1].partition("]: ")[2] or logged[-1], 400)
