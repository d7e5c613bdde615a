# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of network plugins that do not stay up on a node, and what its kernel lacks. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ...module_utils.shared.kernel_modules import OPTIONS
from ..evidence.document import one_line, shell_name
from ..parsers.pod_start_message import DNS
from ..parsers.release_number import parse
from . import pod_start
from .cluster import Cluster, Host
from .pod_start import ENDS, Waiting

DAEMON_SET = "DaemonSet/"
# Parts of the names of their DaemonSets.
AGENTS = (
    "calico-node",
    "canal",
    "cilium",
    "kube-flannel",
    "weave-net",
    "kube-router",
    "aws-node",
    "antrea-agent",
    "ovs-ovn",
    "ovnkube-node",
    "kindnet",
    "multus",
)
CILIUM = "cilium"
# https://docs.cilium.io/en/stable/operations/system_requirements/, and those of earlier releases
OLDEST, LATER = "4.9.17", "4.19.57 since 1.14, 5.10 since 1.18"
OFF = "n"
_CONTAINER = re.compile(r"restarting failed container[ =]([a-z0-9-]{1,63})\b")


@dataclass(frozen=True)
class FailingAgent:
    """A network plugin's pods of one node that do not stay up.

    clause: what is wrong with them, as a clause
    command: what shows why
    kernel: what the kernel of the node lacks for them, as a clause; empty where that is not known
    names: why the node finds no registry by its name, as a clause; empty where that is not known
    """

    waiting: Waiting
    clause: str
    command: str
    kernel: str
    names: str = ""


def failing(cluster: Cluster, node: str, host: Host | None) -> FailingAgent | None:
    """Return the network plugin's pods that do not stay up on a node, or None."""
    rows = [row for row in pod_start.waiting(cluster) if row.node == node and _is_agent(row)]
    row = next((row for row in rows if row.trouble is not None), None)
    if row is None or row.trouble is None:
        return None
    container = _container(row)
    clause = row.trouble.what
    if row.trouble is ENDS:
        clause = f"its container {container or '?'} ends again and again"
    command = _command(row, container)
    return FailingAgent(
        row, f"{row.owner}: {clause}", command, _kernel(row, host), _names(row, host)
    )


def _is_agent(row: Waiting) -> bool:
    owner = row.row.owner or ""
    return owner.startswith(DAEMON_SET) and any(part in owner for part in AGENTS)


def _container(row: Waiting) -> str:
    """Return the container that ends, "" where no event names it."""
    event = row.row.event
    match = _CONTAINER.search(event.message) if event is not None else None
    return match.group(1) if match is not None else ""


def _command(row: Waiting, container: str) -> str:
    pod = shell_name(next(iter(row.row.names), "POD"), "POD")
    place = f"kubectl -n {shell_name(row.row.namespace or 'kube-system', 'NAMESPACE')}"
    if row.trouble is not ENDS:
        return f"{place} describe pod {pod}"
    named = f" -c {shell_name(container, 'CONTAINER')}" if container else " --all-containers"
    return f"{place} logs {pod}{named} --previous"


def _kernel(row: Waiting, host: Host | None) -> str:
    """Return what a kernel lacks for Cilium, whose needs are known."""
    if host is None or CILIUM not in (row.row.owner or ""):
        return ""
    release = one_line(host.machine.kernel or "", 80)
    number, oldest = parse(release), parse(OLDEST)
    if number is not None and oldest is not None and number < oldest:
        return f"the kernel {release} is older than Cilium needs (Linux {OLDEST}; {LATER})"
    lacking = switched_off(host.network.answer.kernel_options)
    if lacking:
        return f"the kernel {release} is built without {' and '.join(lacking)}, which Cilium needs"
    return ""


def _names(row: Waiting, host: Host | None) -> str:
    """Return that a host asks the cluster's DNS for names, which needs the plugin that waits."""
    if host is None or row.trouble is None or row.trouble.kind != DNS:
        return ""
    servers = host.network.asked_in_cluster
    if not servers:
        return ""
    shown = one_line(", ".join(servers), 200)
    return (
        f"its name server is {shown} alone, the cluster's own DNS, which the node does not reach"
        " without the plugin"
    )


def switched_off(options: Mapping[str, str | None] | None) -> list[str]:
    """Return the options that Cilium needs and a kernel is built without."""
    values = options or {}
    return [f"CONFIG_{name}" for name in OPTIONS if values.get(name) == OFF]
