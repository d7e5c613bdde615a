# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `pod`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .api_pod import Event, OwnedPod


@dataclass(frozen=True)
class FieldManager:
    """Who wrote an object, and which fields."""

    manager: str | None = None
    operation: str | None = None
    time: str | None = None
    subresource: str | None = None
    spec: bool | None = None
    node: bool | None = None


@dataclass(frozen=True)
class Condition:
    """One condition of a pod or its owner."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    time: str | None = None


@dataclass(frozen=True)
class ContainerState:
    """One state of a container."""

    reason: str | None = None
    message: str | None = None
    started: str | None = None
    finished: str | None = None
    exit_code: int | None = None


@dataclass(frozen=True)
class PodContainer:
    """One container of a pod, with its present and its last state."""

    name: str | None = None
    init: bool | None = None
    restarts: int | None = None
    state: str | None = None
    now: ContainerState | None = None
    before: ContainerState | None = None


@dataclass(frozen=True)
class TimedPod(OwnedPod):
    """A pod with the times of everything that happened to it."""

    grace: int | None = None
    finalizers: tuple[str, ...] = ()
    managers: tuple[FieldManager, ...] = ()
    asks: Mapping[str, str] | None = None
    conditions: tuple[Condition, ...] = ()
    containers: tuple[PodContainer, ...] = ()


@dataclass(frozen=True)
class PodOwner:
    """The controller of the pod."""

    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None
    state: str | None = None
    created: str | None = None
    deleted: str | None = None
    managers: tuple[FieldManager, ...] = ()
    completions: int | None = None
    parallelism: int | None = None
    replicas: int | None = None
    started: str | None = None
    completed: str | None = None
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class PodEvent(Event):
    """An event about the pod or its owner, with its source."""

    type: str | None = None
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    component: str | None = None
    host: str | None = None


@dataclass(frozen=True)
class Pod:
    """The pod that was asked for, its owner, siblings and events."""

    asked: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None
    pod: TimedPod | None = None
    owner: PodOwner | None = None
    siblings: tuple[TimedPod, ...] = ()
    siblings_total: int | None = None
    events: tuple[PodEvent, ...] = ()
