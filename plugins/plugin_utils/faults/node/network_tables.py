# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""KM535: check how full the kernel's tables of connections and neighbours are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....module_utils.shared.text import times
from ...evidence import contract
from ...evidence.answers.node.network import Neighbours, Network
from ...models.cluster import Host
from ...models.result import EvidenceRef
from ..base import CheckResult, Detection, node_check, not_applicable, unknown

SHARE = 0.9
COUNT, MOST = "nf_conntrack_count", "nf_conntrack_max"


@node_check(
    "KM535",
    "Connection table of the kernel is nearly full",
    severity="warning",
    applies="nodes with a kubelet",
    needs=("kubelet", "network"),
)
def full(host: Host, document: Mapping[str, Any]) -> Iterator[CheckResult]:
    """KM535: report tables of connections or neighbours that have nearly no room."""
    missing = host.missing("network")
    if missing:
        yield unknown(*missing, host=host.host)
        return
    if host.statuses.get("network") == "absent":
        yield not_applicable("no kubelet", host=host.host)
        return
    network = contract.answer(document, Network)
    hits = [*_connections(host, network)]
    hits += [hit for table in network.neighbours for hit in _neighbours(host, table)]
    yield CheckResult(tuple(hits), host=host.host)


def _is_nearly_full(count: int | None, most: int | None) -> bool:
    if count is None or not most:
        return False
    return count >= SHARE * most


def _severity(count: int | None, most: int | None) -> str | None:
    """Return that a table without any room is critical."""
    if count is not None and most is not None and count >= most:
        return "critical"
    return None


def _connections(host: Host, network: Network) -> Iterator[Detection]:
    table = network.conntrack
    if table is None or not _is_nearly_full(table.count, table.max):
        return
    yield Detection(
        f"the kernel tracks {table.count} connections of {table.max} at most (conntrack). When the"
        " table is full, it drops the packets of new connections",
        (
            EvidenceRef(
                "file",
                host.host,
                path=f"/proc/sys/net/netfilter/{COUNT}",
                text=f"{COUNT} {table.count}, {MOST} {table.max}",
            ),
        ),
        "see what opens them (conntrack -S, conntrack -L | awk '{print $5}' | sort | uniq -c | sort"
        " -n | tail). kube-proxy sets the maximum at each start (conntrack.maxPerCore and"
        " conntrack.min of its configuration; 32768 for each CPU, and 131072 at least): raise it"
        " there, and restart its pod. A file of sysctl.d counts only where these are 0 or"
        f" kube-proxy does not run (net.netfilter.{MOST})",
        host=host.host,
        node=host.node,
        component=MOST,
        severity=_severity(table.count, table.max),
    )


def _neighbours(host: Host, table: Neighbours) -> Iterator[Detection]:
    if not _is_nearly_full(table.entries, table.most):
        return
    family = "ipv6" if table.family == "ipv6" else "ipv4"
    key = f"net.{family}.neigh.default.gc_thresh3"
    overflows = ""
    if table.overflows:
        overflows = f"; it was full {times(table.overflows)} since the boot"
    yield Detection(
        f"the kernel's table of neighbours ({family}) has {table.entries} of {table.most} entries:"
        f" beyond that packets to new addresses are dropped{overflows}",
        (
            EvidenceRef(
                "file",
                host.host,
                path=f"/proc/sys/{key.replace('.', '/')}",
                text=f"entries {table.entries}, gc_thresh3 {table.most}",
            ),
        ),
        f"raise {key}, and gc_thresh1 and gc_thresh2 below it, in a file of /etc/sysctl.d (sysctl"
        " --system applies it). The kernel counts the entries of all network namespaces together,"
        " those of pods too",
        host=host.host,
        node=host.node,
        component=key,
        severity=_severity(table.entries, table.most),
    )
