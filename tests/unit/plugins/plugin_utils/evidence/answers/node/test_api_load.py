# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The load of API servers, as the collector writes it."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    api_load,
)
from tests.unit.support import answers

LOAD = {
    "servers": [
        {
            "pid": 511,
            "seconds": 2.3,
            "levels": [
                {"name": "global-default", "running": 1, "waiting": 0, "limit": 49, "rejected": 0}
                | {"reasons": []}
            ],
            "clients": [
                {"user": "kubernetes-admin", "level": "global-default", "verb": "get"}
                | {"resource": "", "requests": 1}
            ],
            "terminated": 0,
            "dumped": True,
            "error": None,
        }
    ]
}


def test_a_level_and_a_client():
    (server,) = answers.typed(api_load.ApiLoad, LOAD).servers
    assert (server.levels[0].name, server.levels[0].limit) == ("global-default", 49)
    assert (server.clients[0].user, server.clients[0].requests) == ("kubernetes-admin", 1)
    assert (server.dumped, server.error) == (True, None)


def test_a_number_that_is_a_text_is_malformed():
    decoded = answers.changed(
        api_load.ApiLoad, LOAD, "servers", 0, "levels", 0, "rejected", value="12"
    )
    assert decoded.malformed == ("servers[0].levels[0].rejected",)
    assert decoded.answer.servers[0].levels[0].running == 1
