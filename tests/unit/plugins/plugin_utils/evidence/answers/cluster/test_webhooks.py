# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Webhooks, as the collector writes them."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    webhooks,
)
from tests.unit.support import answers

WEBHOOKS = {
    "listed": 1,
    "items": [
        {
            "kind": "ValidatingWebhookConfiguration",
            "configuration": "gate",
            "name": "pods.gate.example.com",
            "index": 0,
            "namespace": "default",
            "service": "gate",
            "port": 443,
            "found": True,
            "ready": 0,
            "other": 0,
            "objects": False,
            "own": True,
            "system": True,
            "rules": [
                {"groups": [""], "resources": ["pods"], "operations": ["CREATE"], "scope": "*"}
            ],
            "created": "2026-11-27T04:43:29Z",
        }
    ],
}


def test_a_webhook():
    answer = answers.typed(webhooks.Webhooks, WEBHOOKS)
    (item,) = answer.items
    assert (answer.listed, item.ready, item.own, item.system) == (1, 0, True, True)
    assert item.rules == (webhooks.Rule(("",), ("pods",), ("CREATE",), "*"),)


def test_an_unknown_number_of_addresses():
    decoded = answers.changed(webhooks.Webhooks, WEBHOOKS, "items", 0, "ready", value=None)
    assert (decoded.malformed, decoded.answer.items[0].ready) == ((), None)
    decoded = answers.changed(webhooks.Webhooks, WEBHOOKS, "items", 0, "ready", value="0")
    assert decoded.malformed == ("items[0].ready",)
