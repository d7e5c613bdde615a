# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `object_events`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ObjectEvent:
    """Events with the same text but for names and numbers.

    namespace, name, message: of the newest one
    objects: how many objects they are about
    component: who reported the newest one
    texts: how many different messages there are; 0 in evidence of an older release
    """

    kind: str = ""
    reason: str = ""
    type: str = ""
    component: str = ""
    namespace: str = ""
    name: str = ""
    message: str = ""
    objects: int = 0
    texts: int = 0
    count: int = 0
    first: str | None = None
    last: str | None = None


@dataclass(frozen=True)
class ObjectEvents:
    """Events about Nodes, Services and volumes."""

    items: tuple[ObjectEvent, ...] = ()
