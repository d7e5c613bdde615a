# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check services of the machine that pods and their node need, and that failed (KM564)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ....module_utils.shared import failed_units as names
from ....module_utils.shared.text import counted
from ...evidence import contract
from ...evidence.answers.node.failed_units import FailedUnit, FailedUnits
from ...evidence.document import ends, one_line, shell_name
from ...models.api_node import and_others
from ...models.cluster import Host
from ...models.moments import moment
from ...models.result import EvidenceRef
from ...parsers import known_message
from ..base import CheckResult, Detection, causes, node_check, unknown
from ..known_causes import Source, explained

SHOWN, QUOTED = 4, 240
RUNTIME = "runtime"
NODE = "node"  # whose messages are those of services of the machine
_BY_SYSTEMD = re.compile(r" systemd(?:\[1\])?: ")
_WORSE = re.compile(
    r"(?i)\berror\b|fail|fatal|could ?n.t|cannot|unable|denied|no such|refused|not found|invalid"
)
# Modules and settings without which pods have no network.
_OF_PODS = re.compile(
    r"br_netfilter|\boverlay\b|\bip_vs|nf_conntrack|ip_?tables|xt_|vxlan|ipip|wireguard"
    r"|net[./](?:bridge|ipv[46])|inotify|max_map_count|nvidia"
)


@dataclass(frozen=True)
class _Group:
    """What units of one group are for.

    is_partial: whether such a unit may fail at what pods do not need
    is_vital: whether no pod of the node can do without it
    programs: whose messages its journal has
    """

    clause: str
    advice: str
    is_partial: bool = False
    is_vital: bool = False
    programs: tuple[str, ...] = ()


GROUPS: Mapping[str, _Group] = {
    "network": _Group(
        "addresses, routes or name servers of the node may not be as they are configured",
        "see ip addr, ip route and /etc/resolv.conf",
    ),
    "switch": _Group(
        "a network plugin that works with Open vSwitch gives pods no network",
        "see ovs-vsctl show, and whether a pod of the plugin runs the same programs",
        programs=("network",),
    ),
    "storage": _Group(
        "volumes of iSCSI, NFS or several paths may not be attached or mounted",
        "see what it lacks (iscsiadm -m session, multipath -ll, rpcinfo -p)",
        programs=("csi",),
    ),
    "clock": _Group(
        "the node's clock is not kept right, so that certificates, tokens and leases may fail",
        "see timedatectl, chronyc tracking; only one time service may run",
    ),
    "firewall": _Group(
        "the rules of the firewall are not as they are configured",
        "see its rules; where it loads them again, kube-proxy and the network plugin write theirs"
        " again within minutes",
    ),
    "address": _Group(
        "an address or a port before the API servers may not answer",
        "see who has the address (ip addr), and its configuration (haproxy -c -f"
        " /etc/haproxy/haproxy.cfg, keepalived -t)",
        programs=("haproxy", "keepalived"),
    ),
    "folder": _Group(
        "the file system is not mounted: what the node runs does not find its data there, or writes"
        " to the disk of the system",
        "stop what uses the folder (kubelet, runtime, etcd) before it is mounted: what was written"
        " into the empty one lies below it then",
    ),
    "machine": _Group(
        "modules, settings or sessions of the machine are not as they are configured",
        "see the line: what it names, and who asks for it",
        True,
    ),
    "proxy": _Group(
        "it is kube-proxy of this node: Services have no rules there, or those of before",
        "correct its flags, or the file of --config",
        is_vital=True,
        programs=("kube-proxy",),
    ),
    RUNTIME: _Group(
        "it is the container runtime of this node: the kubelet starts no containers, and ends where"
        " it finds none",
        "MicroK8s has ctr as microk8s ctr",
        is_vital=True,
        programs=known_message.RUNTIMES,
    ),
    names.DEVICES: _Group(
        "pods may get no devices",
        "see whether the driver works (nvidia-smi) and whether the Node has the resource (kubectl"
        " describe node)",
        programs=("device-plugin",),
    ),
    names.CLUSTER: _Group(
        "what it does for the cluster is not done",
        "see the line",
        True,
        programs=("network", "kubeadm"),
    ),
}


@node_check(
    "KM564",
    "A service that pods or their node need has failed",
    severity="warning",
    applies="nodes with systemd",
    needs=("system", "failed_units"),
    explained_by=causes("KM409", "KM523", "KM528", "KM562"),
    same_node=True,
)
def failed(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM564: report services of the network, storage, clock and devices that failed."""
    missing = host.missing("failed_units")
    if missing:
        yield unknown(*missing)
        return
    rows = contract.answer(document, FailedUnits).units
    hits = [_hit(host, row) for row in rows if names.group(row.name) in GROUPS]
    yield CheckResult(tuple(hits))


def _hit(host: Host, row: FailedUnit) -> Detection:
    group = GROUPS[names.group(row.name)]
    unit = one_line(row.name, 120)
    line = decisive(row.lines)
    quote = f": {ends(line, QUOTED)}" if line else ""
    hit = Detection(
        f"{unit} {_state(row)}{quote}; {group.clause}",
        tuple(_proofs(host, row)),
        f"see journalctl -u {shell_name(unit, 'UNIT')} -n 50, and correct what its lines name;"
        f" {group.advice}; then systemctl restart {shell_name(unit, 'UNIT')}",
        host=host.host,
        node=host.node,
        component=unit.rpartition(".")[0],
        severity=_severity(group, row),
    )
    places = (known_message.KERNEL, NODE, *group.programs)
    texts = [line, *reversed(row.lines)]
    return explained(hit, places, texts, source=Source(versions=host.releases.of_node))


def is_runtime(row: FailedUnit) -> bool:
    """Tell whether a unit is the container runtime of a layout."""
    return bool(names.group(row.name) == RUNTIME)


def without_runtime(document: Mapping[str, Any]) -> bool:
    """Tell whether KM564 reports the container runtime of a layout."""
    return any(map(is_runtime, contract.answer(document, FailedUnits).units))


def _severity(group: _Group, row: FailedUnit) -> str | None:
    """Return info where a unit may have failed at what pods do not need; critical where none can.

    A unit that is not enabled may be what another way of running kube-proxy left.
    """
    if group.is_vital and row.unit_file_state != "disabled":
        return "critical"
    if group.is_partial and not any(map(_OF_PODS.search, row.lines)):
        return "info"
    return None


def _state(row: FailedUnit) -> str:
    result = one_line(row.result, 40)
    ended = moment(row.ended_at)
    at = f" at {ended:%Y-%m-%dT%H:%M:%SZ}" if ended is not None else ""
    if row.active_state == "inactive":
        services = and_others([one_line(name, 80) for name in row.bound_to])
        bound = f", as it is with {services}; nothing starts it again" if services else ""
        return f"is enabled and was stopped{at}{bound}"
    if row.sub_state == "auto-restart":
        return (
            f"ends again and again ({result}, {counted(row.n_restarts or 0, 'restart')}), last{at}"
        )
    return f"failed ({result}, status {row.exec_main_status or 0}){at}"


def decisive(lines: tuple[str, ...]) -> str:
    """Return the last line of a journal in which a program says what is wrong, or ""."""
    written = [line for line in lines if not _BY_SYSTEMD.search(line) and "]: " in line]
    worse = [line for line in written if _WORSE.search(line.partition("]: ")[2])]
    line = (worse or written or [""])[-1]
    return one_line(line.partition("]: ")[2], 2000)


def _proofs(host: Host, row: FailedUnit) -> Iterator[EvidenceRef]:
    unit = one_line(row.name, 120)
    text = f"{row.active_state}, {row.sub_state}, {row.unit_file_state}"
    yield EvidenceRef("unit", host.host, object=unit, text=one_line(text, 120))
    for line in row.lines[-SHOWN:]:
        yield EvidenceRef("log", host.host, object=unit, text=ends(one_line(line, 2000), 400))
