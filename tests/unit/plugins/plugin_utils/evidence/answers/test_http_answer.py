# Copyright (c) kubemend contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers to HTTP requests of collectors."""

from __future__ import annotations

from ansible_collections.kubemend.remediation.plugins.plugin_utils.evidence.answers import (
    http_answer,
)
from tests.unit.support import answers

HEALTHZ = answers.recorded("v1.36.3-kubelet-masked", "w1", "kubelet")["healthz"]
REFUSED = answers.recorded("v1.36.3-unit-environment-file", "w1", "kubelet")["healthz"]
CLOCK = answers.recorded("v1.36.3-etcd-no-space", "m1.cluster", "server")["clock"]


def test_an_answer_of_a_healthy_kubelet():
    found = answers.typed(http_answer.HttpAnswer, HEALTHZ)
    assert found.url == "http://127.0.0.1:10248/healthz"
    assert (found.status, found.body, found.error) == (200, "ok", None)


def test_a_refused_connection_has_no_status():
    found = answers.typed(http_answer.HttpAnswer, REFUSED)
    assert (found.status, found.body, found.error) == (None, None, "Connection refused")


def test_a_status_is_a_number_and_no_boolean_or_text():
    for value in (True, "200", 200.0):
        decoded = answers.changed(http_answer.HttpAnswer, HEALTHZ, "status", value=value)
        assert (decoded.malformed, decoded.answer.status) == (("status",), None)
        assert decoded.answer.body == "ok"


def test_the_clock_of_the_api_between_two_of_the_node():
    clock = answers.typed(http_answer.Clock, CLOCK)
    assert clock.date == "Wed, 25 Nov 2026 13:41:09 GMT"
    assert clock.asked_at < clock.read_at < clock.asked_at + 1


def test_a_time_that_is_no_finite_number_is_unknown():
    decoded = answers.changed(http_answer.Clock, CLOCK, "asked_at", value=float("inf"))
    assert (decoded.malformed, decoded.answer.asked_at) == (("asked_at",), None)
    assert answers.changed(http_answer.Clock, CLOCK, "asked_at", value=1795614069).malformed == ()
