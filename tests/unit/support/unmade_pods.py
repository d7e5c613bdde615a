# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that the API refuses to make, in evidence that is written by hand."""

from __future__ import annotations

from typing import Any

WEBHOOK = "sidecars.example.com"
MESSAGE = (
    f'Internal error occurred: failed calling webhook "{WEBHOOK}": failed to call webhook: Post'
    ' "https://injector.mesh.svc:443/inject?timeout=10s": no endpoints available for service'
    ' "injector"'
)


def refuse(world: Any, message: str = MESSAGE, **changed: Any) -> None:
    """Let an owner have no pods, because the API refuses them."""
    world.data("api", "unmade")["refused"].append(
        {
            "kind": "ReplicaSet",
            "namespace": "shop",
            "name": "cart-1",
            "owner": None,
            "message": message,
            "first": "2027-01-15T07:00:00Z",
            "last": "2027-01-15T07:59:00Z",
            "wanted": 2,
            "has": 0,
            **changed,
        }
    )


def add_dead_webhook(world: Any, **changed: Any) -> None:
    """Add the webhook that refuses them, whose Service has no ready address."""
    row = {
        "kind": "MutatingWebhookConfiguration",
        "configuration": "sidecars",
        "name": WEBHOOK,
        "index": 0,
        "namespace": "mesh",
        "service": "injector",
        "port": 443,
        "found": True,
        "ready": 0,
        "other": 0,
        "objects": False,
        "own": False,
        "system": True,
        "rules": [{"groups": [""], "resources": ["pods"], "operations": ["CREATE"], "scope": "*"}],
        "created": "2027-01-01T00:00:00Z",
        **changed,
    }
    data = {"listed": 1, "items": [row]}
    world.api["collectors"]["webhooks"] = {"status": "ok", "data": data, "truncated": False}
