# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `path_states`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PathState:
    """What lies at a path that a program could not open.

    kind: missing or denied where nothing is told
    target: where a link leads, None where there is none; the rest is of what it leads to
    entries: how many a folder has
    above and what begins so: the deepest folder above a missing path that is there
    closed, closed_mode, closed_owner: the first folder above it that not every user may pass
    mount, mount_type, mount_options: what it lies on
    program: the processor that a program is for, or empty, script or none; None: not looked at
    """

    path: str = ""
    kind: str = ""
    target: str | None = None
    uid: int | None = None
    gid: int | None = None
    owner: str | None = None
    group: str | None = None
    mode: str | None = None
    entries: int | None = None
    changed: float | None = None
    immutable: bool | None = None
    above: str | None = None
    above_kind: str | None = None
    above_owner: str | None = None
    above_mode: str | None = None
    closed: str | None = None
    closed_mode: str | None = None
    closed_owner: str | None = None
    mount: str | None = None
    mount_type: str | None = None
    mount_options: str | None = None
    program: str | None = None


@dataclass(frozen=True)
class PathStates:
    """The paths that messages of this host name with an error.

    processor: that of this machine
    """

    processor: str = ""
    paths: tuple[PathState, ...] = ()
