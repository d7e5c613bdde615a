# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How large the database of each member of etcd is, against its quota. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ..evidence.answers.node.etcd import LocalMember, MemberStatus, Metrics
from .cluster import Cluster, Host

MEBIBYTE = 1024**2


@dataclass(frozen=True)
class Size:
    """The database of one member, in bytes.

    host: that read it. used: what is in use, None where it is not known. quota: None where etcd
    keeps none, or where it is not known.
    """

    host: Host
    size: float
    used: float | None = None
    quota: float | None = None

    @property
    def share(self) -> float:
        """Return which share of the quota the database has; 0 without a quota."""
        if not self.quota:
            return 0.0
        return self.size / self.quota

    @property
    def free(self) -> float:
        """Return how much of the file holds nothing."""
        if self.used is None:
            return 0.0
        return max(0.0, self.size - self.used)

    @property
    def text(self) -> str:
        """Return the numbers in words."""
        text = f"{self.host.host} {self.size / MEBIBYTE:.1f} MiB"
        if self.quota:
            text += f" of {self.quota / MEBIBYTE:.1f} MiB ({self.share:.0%})"
        if self.used is not None:
            text += f", {self.used / MEBIBYTE:.1f} MiB in use"
        return text


def sizes(cluster: Cluster) -> list[Size]:
    """Return the database of each member that was read, each once."""
    rows: dict[str, Size] = {}
    for host in cluster.hosts:
        local = host.etcd_said.local or LocalMember()
        metrics, status = local.metrics or Metrics(), host.etcd_said.status or MemberStatus()
        size = metrics.db_size if metrics.db_size is not None else status.db_size
        if size is None or size < 0:
            continue
        row = Size(host, size, _used(metrics, status), _quota(metrics, status, local))
        rows.setdefault(metrics.member_id or status.member_id or host.host, row)
    return list(rows.values())


def _used(metrics: Metrics, status: MemberStatus) -> float | None:
    if metrics.db_size is not None:
        return metrics.db_size_in_use
    return status.db_size_in_use


def _quota(metrics: Metrics, status: MemberStatus, local: LocalMember) -> float | None:
    """Return the quota, which etcd itself tells better than its flag."""
    for value in (status.quota, metrics.quota, local.quota):
        if value is not None and value > 0:
            return float(value)
    return None
