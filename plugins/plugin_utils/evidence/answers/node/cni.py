# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `cni`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ipam:
    """How a plugin gets the addresses of pods."""

    type: str = ""
    data_dir: str = ""
    subnets: tuple[str, ...] = ()


@dataclass(frozen=True)
class CniFile:
    """A CNI configuration: the names and types in it."""

    name: str = ""
    size: int | None = None
    mtime: float | None = None
    uid: int | None = None
    network: str = ""
    plugins: tuple[str, ...] = ()
    ipam: tuple[Ipam, ...] = ()
    missing: tuple[str, ...] = ()  # files that a plugin is told to read; empty of an older release
    error: str | None = None


@dataclass(frozen=True)
class Reservations:
    """The addresses that host-local reserved for one network."""

    network: str = ""
    folder: str = ""
    addresses: int = 0
    held: int | None = None  # for a sandbox that is there; None: the sandboxes are not known
    leaked: int | None = None  # None: the sandboxes are not known
    empty: int = 0
    oldest: float | None = None
    names: tuple[str, ...] = ()
    truncated: bool = False


@dataclass(frozen=True)
class Cni:
    """The network configuration of a node's pods."""

    folder: str = ""
    error: str | None = None
    files: tuple[CniFile, ...] = ()
    aside: tuple[str, ...] = ()  # what Cilium renamed
    multus: bool | None = None  # whether the node has a pod of Multus; None: not known
    bin_dirs: tuple[str, ...] | None = None  # None: not known
    programs: tuple[str, ...] | None = None
    reservations: tuple[Reservations, ...] = ()
