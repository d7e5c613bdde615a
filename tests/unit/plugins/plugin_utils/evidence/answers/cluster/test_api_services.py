# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""API groups of other servers, as the collector writes them."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.cluster import (
    api_services,
)
from tests.unit.support import answers

GROUPS = {
    "listed": 1,
    "items": [
        {
            "name": "v1.gone.example.com",
            "namespace": "default",
            "service": "gone",
            "reason": "ServiceNotFound",
            "message": 'service/gone in "default" is not present',
            "since": "2026-11-27T04:43:29Z",
        }
    ],
}


def test_a_group_that_is_not_available():
    answer = answers.typed(api_services.ApiServices, GROUPS)
    (item,) = answer.items
    assert (answer.listed, item.name, item.reason) == (1, "v1.gone.example.com", "ServiceNotFound")


def test_a_time_that_is_a_number_is_malformed():
    decoded = answers.changed(api_services.ApiServices, GROUPS, "items", 0, "since", value=5)
    assert decoded.malformed == ("items[0].since",)
