# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `pending`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .api_pod import Toleration


@dataclass(frozen=True)
class PendingPods:
    """Pods of one owner that a scheduler finds no node for."""

    namespace: str | None = None
    names: tuple[str, ...] = ()
    pods: int | None = None
    since: str | None = None
    owner: str | None = None
    scheduler: str | None = None
    message: str | None = None
    targets: tuple[tuple[str, str], ...] = ()  # pod, node
    asks: Mapping[str, int] | None = None
    tolerations: tuple[Toleration, ...] | None = None
    off: tuple[str, ...] | None = None
    unfit: bool = False
    asked: bool = False


@dataclass(frozen=True)
class UnseenPods:
    """Pods that no scheduler has reported on."""

    scheduler: str | None = None
    pods: int | None = None
    names: tuple[str, ...] = ()
    since: str | None = None
    asked: bool = False


@dataclass(frozen=True)
class GatedPods:
    """Pods that wait for a scheduling gate."""

    namespace: str | None = None
    owner: str | None = None
    gates: tuple[str, ...] = ()
    pods: int | None = None
    names: tuple[str, ...] = ()
    since: str | None = None
    asked: bool = False


@dataclass(frozen=True)
class BoundPods:
    """Pods that wait for the kubelet of their node."""

    node: str | None = None
    pods: int | None = None
    names: tuple[str, ...] = ()
    since: str | None = None
    asked: bool = False
    absent: bool = False


@dataclass(frozen=True)
class Pending:
    """The pods that do not start."""

    items: tuple[PendingPods, ...] = ()
    total: int | None = None
    read: int | None = None
    taken: int | None = None
    unseen: tuple[UnseenPods, ...] | None = None
    gated: tuple[GatedPods, ...] | None = None
    bound: tuple[BoundPods, ...] | None = None
    largest: Mapping[str, int] | None = None
    full: tuple[str, ...] | None = None
