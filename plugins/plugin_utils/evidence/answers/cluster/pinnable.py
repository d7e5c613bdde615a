# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `pinnable`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Owner:
    """The controller of a pod."""

    kind: str | None = None
    api_version: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class Manager:
    """The tool that manages an object."""

    tool: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class PodResources:
    """CPU and memory of a whole pod."""

    cpu_request: str | None = None
    cpu_limit: str | None = None
    memory_request: str | None = None
    memory_limit: str | None = None


@dataclass(frozen=True)
class ContainerResources(PodResources):
    """CPU and memory of one container."""

    name: str | None = None
    kind: str | None = None
    injected: bool | None = None


@dataclass(frozen=True)
class PinnableItem:
    """A pod or workload that looks meant for CPU pinning."""

    kind: str | None = None
    api_version: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None
    node: str | None = None
    phase: str | None = None
    qos: str | None = None
    owner: Owner | None = None
    manager: Manager | None = None
    expected: bool | None = None
    pod_level: PodResources | None = None
    containers: tuple[ContainerResources, ...] = ()
    resources: str | None = None
    alike: int | None = None


@dataclass(frozen=True)
class Pinnable:
    """The pods and workloads that look meant for CPU pinning."""

    items: tuple[PinnableItem, ...] = ()
