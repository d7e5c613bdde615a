# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has for the traffic of pods, extracted to a small value. Pure."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..evidence import contract
from ..evidence.answers.node.kubelet import Kubelet
from ..evidence.answers.node.limits import Limits
from ..evidence.answers.node.network import Network, Resolver
from ..evidence.document import one_line
from .kubelet import config as kubelet_config
from .kubelet.config import Setting

RESOLV_CONF = "/etc/resolv.conf"
RP_FILTER, MAX_LINES = "rp_filter", 5


@dataclass(frozen=True)
class HostNetwork:
    """The network of a host beside its network plugin.

    resolver: the file that its kubelet gives to pods, None where that is not known
    setting: what names that file, None where it is the kubelet's default
    problem: why the file is not known
    rp_filter_lines: path, line and text of what sets rp_filter at a boot
    """

    answer: Network = field(default_factory=Network)
    resolver: Resolver | None = None
    setting: Setting | None = None
    problem: str = ""
    rp_filter_lines: tuple[tuple[str, int, str], ...] = ()

    def has(self, name: str) -> bool:
        """Tell whether the host has this interface, or one of this kind (cali*)."""
        return any(row.name == name for row in self.answer.interfaces)


def extract(document: Mapping[str, Any]) -> HostNetwork:
    """Return what a host's evidence contains; empty where the collector did not answer."""
    answer = contract.optional_answer(document, Network)
    if answer is None:
        return HostNetwork()
    config = kubelet_config.read(contract.answer(document, Kubelet))
    setting, problem = config.setting("resolvConf", "resolv-conf"), ""
    if not config.certain(setting):
        problem = config.problem
    path = RESOLV_CONF if setting is None else setting.value
    resolver = next((item for item in answer.resolvers if item.path == path), None)
    manager = answer.network_manager
    if manager is None or manager.active is False:
        # Only what NetworkManager may have changed is compared: a large cluster has many routes.
        answer = dataclasses.replace(answer, routes=None)
    lines = tuple(_lines(contract.answer(document, Limits)))
    return HostNetwork(answer, resolver, setting, problem, lines[:MAX_LINES])


def _lines(limits: Limits) -> Iterator[tuple[str, int, str]]:
    for file in limits.sysctl_files or ():
        for number, line in enumerate((file.text or "").split("\n"), 1):
            if RP_FILTER in line and not line.lstrip().startswith(("#", ";")):
                yield one_line(file.path, 253), number, one_line(line.strip(), 200)


def is_loopback(address: str) -> bool:
    """Tell whether an address of a resolv.conf is the machine's own, which is the pod's there."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False
