# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""File systems of a node that take no more writes, and what lies on each of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..evidence.answers.node.space import Store
from .pressure import size

# What lies there, and whether Kubernetes stops without it.
USES: Mapping[str, tuple[str, bool]] = {
    "etcd": ("the data and the log of etcd", True),
    "kubelet": ("the kubelet's pods and state", True),
    "runtime": ("the runtime's images and containers", True),
    "run": ("the runtime's sockets and sandboxes, and systemd's own files", True),
    "cni": ("the addresses that the network plugin reserved", True),
    "pod_logs": ("the logs of pods", False),
    "journal": ("the journal", False),
}
# Nearly full is pressure (KM523), and many machines are. etcd makes the next file of its log with
# 64 MB; a small file system, such as /run, is full where one percent is left.
FULL_BYTES, FULL_INODES, FULL_SHARE = 64 * 1024**2, 500, 100


@dataclass(frozen=True)
class Unwritable:
    """One file system that takes no more writes.

    stores: its folders that the node needs. why: a clause. full: whether space is what lacks
    """

    stores: tuple[Store, ...]
    why: str
    full: bool

    @property
    def severe(self) -> bool:
        """Return whether Kubernetes stops without writes there."""
        return any(USES.get(store.use, ("", False))[1] for store in self.stores)

    @property
    def uses(self) -> str:
        """Return what lies there, in words."""
        return "; ".join(
            f"{USES[store.use][0]} ({store.path})" for store in self.stores if store.use in USES
        )


def unwritable(stores: Iterable[Store]) -> list[Unwritable]:
    """Return the file systems that are full or read-only."""
    groups: dict[int | str, list[Store]] = {}
    for store in stores:
        key: int | str = store.path if store.device is None else store.device
        groups.setdefault(key, []).append(store)
    return [full for full in map(_unwritable, groups.values()) if full is not None]


def _unwritable(group: list[Store]) -> Unwritable | None:
    """Return the file system of these folders if it takes no writes."""
    if group[0].read_only:
        return Unwritable(tuple(group), "is read-only", False)
    reason = _full(group[0])
    if reason:
        return Unwritable(tuple(group), reason, True)
    return None


def _full(store: Store) -> str:
    """Return what is used up on the file system of a folder, as a clause, or ""."""
    if _is_less(store.free_bytes, store.total_bytes, FULL_BYTES):
        return f"is full: {size(store.free_bytes or 0)} of {size(store.total_bytes or 0)} are free"
    if _is_less(store.free_inodes, store.inodes, FULL_INODES):
        return f"has no inodes left: {store.free_inodes} of {store.inodes} are free"
    return ""


def _is_less(free: int | None, total: int | None, most: int) -> bool:
    return free is not None and bool(total) and free < min(most, (total or 0) / FULL_SHARE)
