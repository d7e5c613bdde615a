# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `rejected`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .api_pod import OwnedPod


@dataclass(frozen=True)
class PluginContainer:
    """One container of a device plugin."""

    name: str | None = None
    ready: bool | None = None
    restarts: int | None = None
    waiting: str | None = None
    exit_code: int | None = None
    message: str | None = None


@dataclass(frozen=True)
class DevicePlugin:
    """One pod of a device plugin."""

    namespace: str | None = None
    name: str | None = None
    containers: tuple[PluginContainer, ...] = ()


@dataclass(frozen=True)
class NodePods:
    """The pods of a node that rejected one."""

    pods: tuple[OwnedPod, ...] = ()
    plugins: tuple[DevicePlugin, ...] = ()
    rejected: int | None = None


@dataclass(frozen=True)
class Rejected:
    """The pods that a kubelet rejected, and the pods of their nodes."""

    items: tuple[OwnedPod, ...] = ()
    total: int | None = None
    nodes: Mapping[str, NodePods] | None = None
