# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How large the database of each member of etcd is, against its quota. Pure.

A member that does not run, or tells nothing, has the size of its file. That may be up to 16 MiB
more: bbolt makes the file longer in steps of that size.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..evidence.answers.node.etcd import Database, DataFolder, LocalMember, MemberStatus, Metrics
from ..evidence.answers.node.space import DatabaseFile
from ..parsers import pflag
from . import etcd_members
from .cluster import Cluster, Host
from .control_plane import ControlPlane

MEBIBYTE = 1024**2
DEFAULT_QUOTA = 2 * 1024**3  # etcd's own, where the flag is missing or 0


@dataclass(frozen=True)
class Size:
    """The database of one member, in bytes.

    host: that read it. used: what is in use, None where it is not known. quota: None where etcd
    keeps none, or where it is not known. path: of the file where etcd itself told no size.
    """

    host: Host
    size: float
    used: float | None = None
    quota: float | None = None
    path: str = ""

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
        if self.path:
            text += " by its file"
        return text


def sizes(cluster: Cluster) -> list[Size]:
    """Return the database of each member that was read, each once."""
    rows: dict[str, Size] = {}
    files = []
    for host in cluster.hosts:
        member_id, row = _told(host)
        if row is not None:
            rows.setdefault(member_id or host.host, row)
        if row is None or host.etcd_said.local is None:  # another member may have told it
            files.append(_of_file(host))
    return [*rows.values(), *(row for row in files if row is not None)]


def _told(host: Host) -> tuple[str | None, Size | None]:
    """Return the id of the member that answered a host, and the size that it told."""
    if host.etcd_said.local is None and host.etcd_said.status is None:
        return None, None
    local = host.etcd_said.local or LocalMember()
    metrics, status = local.metrics or Metrics(), host.etcd_said.status or MemberStatus()
    size = metrics.db_size if metrics.db_size is not None else status.db_size
    member_id = metrics.member_id or status.member_id
    if size is None or size < 0:
        return member_id, None
    return member_id, Size(host, size, _used(metrics, status), _quota(metrics, status, local))


def _of_file(host: Host) -> Size | None:
    """Return the size of the file of a member that tells none, None where there is no file."""
    local = host.etcd_said.local
    if local is not None:
        folder = local.folder or DataFolder()
        size = (folder.database or Database()).bytes
        path, quota = f"{folder.path}/member/snap/db", local.quota
    elif etcd_members.has_manifest(host) and etcd_members.has_no_process(host):
        file = host.database or DatabaseFile()
        size, path, quota = file.bytes, file.path, _quota_of_manifest(host)
    else:
        return None
    if size is None:
        return None
    return Size(host, float(size), quota=quota or None, path=path)


def _quota_of_manifest(host: Host) -> int | None:
    """Return the quota that a manifest of etcd sets, None where a file of settings may set it."""
    plane = host.control_plane or ControlPlane()
    for use in plane.files:
        if use.component != "etcd":
            continue
        if pflag.string_flag(use.words, "config-file"):
            return None
        value = pflag.string_flag(use.words, "quota-backend-bytes") or "0"
        if not value.isdecimal():
            return None
        return int(value) or DEFAULT_QUOTA
    return None


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
