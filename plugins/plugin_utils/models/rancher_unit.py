# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit of k3s or RKE2 that runs a kubelet, and which servers its agent does not reach. Pure.

An agent has a load balancer of its own at an address of the machine itself (6443 or 6444), which
the kubeconfig of its kubelet names. It passes each connection on to a server of its list.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.kubelet import Kubelet
from ..evidence.answers.node.repeated_errors import RepeatedErrors
from ..evidence.document import ends, one_line
from .kubelet import supervisor
from .kubelet.supervisor import Place, Supervisor

LAST_SECONDS = 120  # an agent tries a tunnel again each few seconds, at most
LONGEST, MOST = 600, 5
# pkg/agent/tunnel of k3s, and the library remotedialer
_TUNNEL = re.compile(r"Failed to connect to proxy|Remotedialer proxy error")
_DIALED = re.compile(r"dial tcp (?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[\w.-]{1,253}):(?P<port>\d{1,5}):")
_LISTS = {
    "k3s": "/var/lib/rancher/k3s/agent/etc/k3s-agent-load-balancer.json",
    "rke2": "/var/lib/rancher/rke2/agent/etc/rke2-api-server-agent-load-balancer.json",
}
_DISABLED = "disabled"


@dataclass(frozen=True)
class RancherUnit:
    """The unit of k3s or RKE2 on one host.

    state: active_state of systemd; lost: (address, port) of servers to which the agent's tunnel
    gets no connection; lines: those that say so, or that a tunnel broke; source: their log

    is_read: whether its configuration is known; without_tunnel: whether a server is told to reach
    kubelets without one; bind_address, kubelet_address: where these are one address of the machine
    that is not its loopback
    """

    program: str
    name: str
    is_agent: bool
    state: str
    lost: tuple[tuple[str, str], ...] = ()
    lines: tuple[str, ...] = ()
    source: str = ""
    is_read: bool = False
    without_tunnel: bool = False
    bind_address: Place | None = None
    kubelet_address: Place | None = None

    @property
    def title(self) -> str:
        """Return its program in a sentence."""
        return supervisor.TITLES[self.program]

    @property
    def short_name(self) -> str:
        """Return the name of the unit as an operator writes it."""
        return self.name.removesuffix(".service")

    @property
    def servers_file(self) -> str:
        """Return the file with the servers of an agent's load balancer."""
        return _LISTS[self.program]

    @property
    def is_stopped(self) -> bool:
        """Tell whether systemd has it and does not run it."""
        return self.state in ("inactive", "failed")


def extract(document: Mapping[str, Any]) -> RancherUnit | None:
    """Return the unit of k3s or RKE2 that runs the kubelet of a host, None without one."""
    owner = supervisor.read(document)
    unit = contract.answer(document, Kubelet).unit
    if owner is None or unit is None:
        return None
    is_agent = owner.unit.endswith("-agent.service") or "agent" in owner.argv[1:3]
    rows = list(_broken_tunnels(document)) if is_agent else []
    return RancherUnit(
        owner.program,
        one_line(owner.unit, 80),
        is_agent,
        one_line(unit.active_state or "", 40),
        _lost(line for _source, line in rows),
        tuple(line for _source, line in rows)[:MOST],
        next((source for source, _line in rows), ""),
        _is_read(owner),
        any(place.value == _DISABLED for place in owner.key("egress-selector-mode")),
        _single(owner.key("bind-address")),
        _single(_addresses(owner)),
    )


def _lost(lines: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return (address, port) of the servers that lines name."""
    dialed = filter(None, map(_DIALED.search, lines))
    places = [(match.group("host").strip("[]"), match.group("port")) for match in dialed]
    return tuple(dict.fromkeys(places))[:MOST]


def _is_read(owner: Supervisor) -> bool:
    if owner.distribution is None:
        return False
    return not any(file.error for file in owner.distribution.files)


def _addresses(owner: Supervisor) -> list[Place]:
    """Return the places of the kubelet's flag --address, with the address alone."""
    places = owner.flag(supervisor.KUBELET_KEY, "address")
    return [replace(place, value=place.value.partition("=")[2]) for place in places]


def _single(places: list[Place]) -> Place | None:
    """Return the last place, where its address excludes the loopback."""
    for place in places[-1:]:
        try:
            address = ipaddress.ip_address(place.value.strip("[]"))
        except ValueError:
            return None
        if not address.is_loopback and not address.is_unspecified:
            return place
    return None


def _broken_tunnels(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (source, line) of what an agent says of the tunnels that it has to servers."""
    log = contract.answer(document, RepeatedErrors)
    for row in log.components:
        for entry in row.entries:
            is_late = (log.read_at or 0.0) - (entry.last or 0.0) <= LAST_SECONDS
            if is_late and _TUNNEL.search(entry.line):
                yield one_line(row.source, 300), ends(one_line(entry.line, 2000), LONGEST)
