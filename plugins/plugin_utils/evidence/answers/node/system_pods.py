# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `system_pods`."""

from __future__ import annotations

from dataclasses import dataclass

from .repeated_errors import RepeatedError


@dataclass(frozen=True)
class OwnFile:
    """The last errors in a file of the host in which the program of a container logs."""

    path: str = ""
    lines: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class SystemPod:
    """A container of the cluster's own pods that was started again and again.

    own: None where the program has no such file, or an older release collected
    """

    namespace: str = ""
    pod: str = ""
    container: str = ""
    restart: int = 0
    begun: float | None = None
    written: float | None = None
    path: str | None = None
    first: float | None = None
    last: float | None = None
    lines: tuple[str, ...] = ()
    error: str | None = None
    own: OwnFile | None = None


@dataclass(frozen=True)
class RunningPod:
    """A container of the cluster's own pods that says an error again and again, or a device plugin.

    since: from when on its lines were counted
    told: the last lines in which a device plugin says what it misses
    """

    namespace: str = ""
    pod: str = ""
    container: str = ""
    path: str = ""
    told: tuple[str, ...] = ()
    since: float | None = None
    lines: int = 0
    errors: int = 0
    cut: bool = False
    error: str | None = None
    entries: tuple[RepeatedError, ...] = ()


@dataclass(frozen=True)
class SystemPods:
    """The cluster's own pods on this host whose containers end, or say an error, again and again.

    more, more_pods: how many that may end were not read, and some of their pods
    running: None in evidence of a release that did not read it
    read, unread, unread_pods: how many logs of those that run were read, were not, some of the pods
    """

    pods: tuple[SystemPod, ...] = ()
    more: int = 0
    more_pods: tuple[str, ...] = ()
    running: tuple[RunningPod, ...] | None = None
    read: int = 0
    unread: int = 0
    unread_pods: tuple[str, ...] = ()
