# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `devices`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Socket:
    """One socket in the kubelet's device plugin directory."""

    name: str = ""
    made: float | None = None
    answers: bool | None = None


@dataclass(frozen=True)
class Allocation:
    """Devices that the kubelet gave to a container."""

    pod_uid: str = ""
    container: str = ""
    resource: str = ""
    devices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Checkpoint:
    """The kubelet's record of devices."""

    path: str | None = None
    mtime: float | None = None
    size: int | None = None
    error: str | None = None
    format: str | None = None
    checksum: str | None = None
    entries: tuple[Allocation, ...] = ()
    registered: Mapping[str, tuple[str, ...]] | None = None


@dataclass(frozen=True)
class Devices:
    """The kubelet's device plugins and its record of devices."""

    folder: str | None = None
    kubelet_socket: Socket | None = None
    sockets: tuple[Socket, ...] = ()
    checkpoint: Checkpoint | None = None
    # None: an older release collected, or the checkpoint cannot be read
    running: tuple[str, ...] | None = None
    names: tuple[str, ...] | None = None
