# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that the API server refuses to make because a webhook has no server. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...module_utils.shared import system_namespaces
from ..evidence.answers.cluster.unmade import RefusedOwner, Unmade
from ..evidence.answers.cluster.webhooks import Webhooks
from .cluster import Cluster

_WEBHOOK = re.compile(r'failed calling (?:admission )?webhook "([^"]{1,253})"')


def webhook_of(row: RefusedOwner) -> str:
    """Return the name of the webhook that could not be called, or ""."""
    return webhook_in(row.message or "")


def webhook_in(text: str) -> str:
    """Return the name of the webhook that a text says could not be called, or ""."""
    match = _WEBHOOK.search(text)
    return match.group(1) if match else ""


def dead_webhooks(cluster: Cluster) -> frozenset[str]:
    """Return the names of the webhooks whose service has no ready address."""
    return frozenset(item.name for item in cluster.typed(Webhooks).items if item.ready == 0)


def by_webhooks(cluster: Cluster, names: Iterable[str]) -> tuple[RefusedOwner, ...]:
    """Return who lacks pods because one of these webhooks could not be called."""
    webhooks = frozenset(names)
    rows = cluster.typed(Unmade).refused or ()
    return tuple(row for row in rows if webhook_of(row) in webhooks)


def is_by_dead_webhook(cluster: Cluster, row: RefusedOwner) -> bool:
    """Tell whether a refusal is that of a webhook whose service has no ready address."""
    name = webhook_of(row)
    return bool(name) and name in dead_webhooks(cluster)


def daemons_of_system(cluster: Cluster) -> tuple[RefusedOwner, ...]:
    """Return the DaemonSets of the cluster itself that lack pods because they are refused."""
    rows = cluster.typed(Unmade).refused or ()
    return tuple(
        row
        for row in rows
        if row.kind == "DaemonSet" and system_namespaces.is_one(row.namespace or "")
    )
