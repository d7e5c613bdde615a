# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `unmade`."""

from __future__ import annotations

from dataclasses import dataclass

from .api_pod import Toleration


@dataclass(frozen=True)
class RefusedOwner:
    """A controller whose pods the API refuses to create."""

    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    owner: str | None = None
    message: str | None = None
    first: str | None = None
    last: str | None = None
    wanted: int | None = None
    has: int | None = None


@dataclass(frozen=True)
class DaemonSet:
    """A DaemonSet without pods on tainted nodes."""

    namespace: str | None = None
    name: str | None = None
    nodes: tuple[str, ...] = ()
    more: int | None = None
    desired: int | None = None
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True)
class Unmade:
    """The pods that were not created."""

    refused: tuple[RefusedOwner, ...] | None = None
    daemonsets: tuple[DaemonSet, ...] | None = None
    unlooked: int | None = None
