# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the node reaches the API server of its kubelet."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers.node import (
    api_way,
)
from tests.unit.support import answers

REFUSED = answers.recorded("v1.36.3-api-out-of-reach", "w1", "api_way")


def test_an_api_server_without_a_route():
    way = answers.typed(api_way.ApiWay, REFUSED)
    assert (way.server, way.address) == ("https://10.89.0.11:6443", "10.89.0.11")
    assert (way.failed, way.error) == ("connection", "[Errno 113] No route to host")


def test_an_api_server_that_answers():
    way = answers.typed(api_way.ApiWay, answers.recorded("v1.18.4-component-ends", "m1", "api_way"))
    assert way.server.startswith("https://")
    assert (way.failed, way.error) == (None, None)


def test_what_failed_is_a_text_and_no_boolean():
    decoded = answers.changed(api_way.ApiWay, REFUSED, "failed", value=True)
    assert (decoded.malformed, decoded.answer.failed) == (("failed",), None)
    assert decoded.answer.error == "[Errno 113] No route to host"
