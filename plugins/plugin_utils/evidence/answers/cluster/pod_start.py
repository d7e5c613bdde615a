# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `pod_start`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class LastEvent:
    """The event that says most of why pods wait."""

    reason: str = ""
    message: str = ""
    last: str | None = None


@dataclass(frozen=True)
class WaitingPods:
    """Pods of one owner that wait on one node in one state.

    agent: whether their containers are those of an agent of networks, storage or devices
    """

    node: str = ""
    namespace: str | None = None
    owner: str | None = None
    state: str = ""
    pods: int = 0
    names: tuple[str, ...] = ()
    since: str | None = None  # the oldest of them
    times: tuple[str, ...] = ()  # since when each of the oldest waits
    message: str = ""
    event: LastEvent | None = None
    agent: bool = False


@dataclass(frozen=True)
class PodEvents:
    """Events about pods of one node with one reason and one message."""

    node: str = ""
    reason: str = ""
    message: str = ""
    pod: str | None = None
    count: int = 0
    pods: int = 0
    waiting: int = 0  # of these pods, how many still wait
    first: str | None = None
    last: str | None = None


@dataclass(frozen=True)
class NodePods:
    """All pods of a node, by the state that kubectl shows."""

    node: str = ""
    waiting: int = 0
    states: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Attachment:
    """A volume that the API has as attached to a node."""

    name: str = ""
    node: str = ""
    attacher: str = ""
    volume: str = ""
    attached: bool = False
    deleted: str | None = None
    error: str = ""


@dataclass(frozen=True)
class Unhealthy:
    """Failed probes of a container of the cluster's own pods.

    message: of the newest event
    """

    namespace: str = ""
    pod: str = ""
    container: str = ""
    node: str = ""
    message: str = ""
    count: int = 0
    first: str | None = None
    last: str | None = None


@dataclass(frozen=True)
class PodStart:
    """The pods that their nodes accepted and that do not start."""

    read: int | None = None
    pods: tuple[WaitingPods, ...] = ()
    events: tuple[PodEvents, ...] = ()
    nodes: tuple[NodePods, ...] = ()
    attachments: tuple[Attachment, ...] | None = None  # None: not needed, or not read
    unhealthy: tuple[Unhealthy, ...] | None = None  # None: not read
    unhealthy_cut: bool = False  # there are more of them than these
