# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `runtime`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..systemd_unit import Unit


@dataclass(frozen=True)
class SocketUnit:
    """The socket that starts a unit."""

    name: str = ""
    active_state: str = ""
    unit_file_state: str = ""


@dataclass(frozen=True)
class RuntimeUnit(Unit):
    """One unit of the container runtime, with what starts it."""

    absent: bool = False
    wanted_by: tuple[str, ...] = ()
    brought_by: tuple[str, ...] | None = None  # None: an older release collected
    trigger: SocketUnit | None = None
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuntimeConfig:
    """The plugins that containerd's configuration disables."""

    path: str | None = None
    disabled_plugins: tuple[str, ...] | None = None
    line: int | None = None


@dataclass(frozen=True)
class Metadata:
    """The database of containerd."""

    path: str | None = None
    size: int | None = None
    valid: bool | None = None


@dataclass(frozen=True)
class ServingUnit:
    """The sockets at which the runtime of a unit listens."""

    unit: str = ""
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Runtime:
    """The container runtime that the kubelet uses."""

    endpoint: str | None = None
    docker: bool | None = None
    kind: str | None = None
    path: str | None = None
    socket: str | None = None
    error: str | None = None
    asked: bool = False
    calls: Mapping[str, int | str] | None = None  # a gRPC status, or why there is none
    config: RuntimeConfig | None = None
    metadata: Metadata | None = None
    emptied: str | None = None
    plugin_failures: tuple[str, ...] | None = None  # None: not needed, or not read
    units: tuple[RuntimeUnit, ...] = ()
    # of the runtimes that run, where nothing is at the path; empty of an older release too
    serving: tuple[ServingUnit, ...] = ()
    flags: Mapping[str, str] | None = None  # of cri-dockerd
    # of its process: HTTPS_PROXY without credentials, NO_PROXY; None: not known
    proxy: Mapping[str, str] | None = None
