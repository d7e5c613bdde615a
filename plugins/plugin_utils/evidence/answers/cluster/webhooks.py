# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of the collector `webhooks`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """What a webhook is asked about."""

    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    scope: str = "*"


@dataclass(frozen=True)
class Webhook:
    """A webhook that fails closed, and its service.

    index: its place in its configuration
    found: whether the service is there, None where that was not asked
    ready, other: addresses of the service that are ready, and those that are not; None: not known
    objects: whether it has a selector of objects, or conditions
    own, system: whether its selector of namespaces takes its own namespace, and kube-system; None
    where that is not known
    """

    kind: str = ""
    configuration: str = ""
    name: str = ""
    index: int = 0
    namespace: str = ""
    service: str = ""
    port: int | None = None
    found: bool | None = None
    ready: int | None = None
    other: int | None = None
    objects: bool = False
    own: bool | None = None
    system: bool | None = None
    rules: tuple[Rule, ...] = ()
    created: str | None = None


@dataclass(frozen=True)
class Webhooks:
    """The webhooks of a cluster that fail closed and are served in it."""

    listed: int = 0
    items: tuple[Webhook, ...] = ()
